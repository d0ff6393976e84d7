"""Workspaces become images of a real engine."""

import threading
from contextlib import suppress
from unittest.mock import Mock

import docker.errors
import pytest
from backend.projects import fill
from support.background import in_background
from support.docker_containers import output_of
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker_engine import images
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.backends.workspace.build_context import DOCKERFILE
from torchx_tui.backends.workspace.docker_workspace import DockerWorkspaceMixin
from torchx_tui.specs.errors import (
    BackendUnavailableError,
    InvalidRunConfigException,
    LaunchCancelledError,
    SchedulerError,
)
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.workspace import Workspace

# What is built


@pytest.fixture
def builder(docker_engine):
    made = Builder()
    yield made
    with made.workspace_engine() as client:
        for image in made.images:
            with suppress(docker.errors.NotFound):  # two tests may build the same one
                client.images.remove(image, force=True)


class Builder(DockerWorkspaceMixin):
    def __init__(self):
        self.images = set()

    def build_workspace_image(self, img, workspace, cfg=None):
        image = super().build_workspace_image(img, workspace, cfg)
        self.images.add(image)
        return image

    def build(self, project, **cfg):
        """Build an image on busybox, which is not pulled."""
        return self.build_workspace_image("busybox:local", str(project), {"pull": False, **cfg})

    def output(self, image, *command):
        with self.workspace_engine() as client:
            return output_of(client, image, *command)


@pytest.fixture
def progress():
    """Return the list of the reports of progress."""
    reports = []
    with shown_progress(Progress(reports.append)):
        yield reports


def test_files_are_laid_over_the_image(builder, tmp_path):
    texts = {"train.sh": "echo trained", ".dockerignore": "secret\n"}
    project = fill(tmp_path / "p", "secret", **texts)
    image = builder.build(project)
    assert image.startswith("sha256:")
    assert builder.output(image, "sh", "train.sh") == "trained\n"
    assert "secret" not in builder.output(image, "ls")
    with builder.workspace_engine() as client:
        assert client.images.get(image).labels["torchx.pytorch.org/version"]
    assert builder.build(project) == image


HEAD = "ARG IMAGE\nFROM $IMAGE\n"


def test_a_dockerfile_of_its_own(builder, tmp_path, progress):
    dockerfile = f"{HEAD}ARG WORKSPACE\nWORKDIR /work\nCOPY a b\nRUN echo $WORKSPACE >> b\n"
    project = fill(tmp_path / "p", **{"a": "a\n", DOCKERFILE: dockerfile})
    assert builder.output(builder.build(project), "cat", "/work/b") == f"a\n{project}\n"
    assert progress[0] == f"building the image of {project}"
    assert any(": Step 4/7 : WORKDIR /work" in words for words in progress)
    progress.clear()
    builder.build(project, quiet=True)
    assert set(progress) == {f"building the image of {project}"}


def test_a_base_that_cannot_be_pulled_is_used(builder, tmp_path, progress):
    builder.build(fill(tmp_path / "p", "a"), pull=True)
    assert any(words.startswith("busybox:local is used as it is here") for words in progress)


def test_roles_of_several_projects(builder, tmp_path):
    fill(tmp_path, "a/x", "b/y")
    both = Workspace({str(tmp_path / "a"): "", str(tmp_path / "b"): "lib"})
    roles = [Role(name, "busybox:local", workspace=both) for name in "rs"] + [Role("t", "i")]
    assert builder.planned_builds(roles) == [
        f"role {name}: its workspace is built first, of {tmp_path}/a, {tmp_path}/b as lib on top of busybox:local"
        for name in "rs"
    ]
    builder.build_workspaces(roles, {"pull": False})
    assert roles[0].image == roles[1].image != "busybox:local"
    assert roles[2].image == "i"
    assert builder.output(roles[0].image, "cat", "x", "lib/y") == "a/xb/y"


def test_a_failed_build_shows_its_last_lines(builder, tmp_path):
    project = fill(tmp_path / "p", **{DOCKERFILE: f"{HEAD}RUN echo the cause; exit 3\n"})
    with pytest.raises(SchedulerError, match=r"(?s)the image of .*/p cannot be built:.*the cause.*code: 3"):
        builder.build(project)
    with pytest.raises(SchedulerError, match=r"cannot be built: .*NONSENSE"):
        builder.build(fill(project, **{DOCKERFILE: "NONSENSE\n"}))


def test_a_cancelled_build_ends_at_once(builder, tmp_path):
    project = fill(tmp_path / "p", **{DOCKERFILE: f"{HEAD}RUN echo begun; sleep 3600\n"})
    begun = threading.Event()
    progress = Progress(lambda text: begun.set() if "begun" in text and "Step" not in text else None)

    def launch():
        with shown_progress(progress):
            builder.build(project)

    launching = in_background(launch)
    assert begun.wait(PATIENCE)
    progress.cancel()
    assert isinstance(launching.exception(PATIENCE), LaunchCancelledError)
    with builder.workspace_engine() as client:

        def commands():
            return [str(one.attrs["Config"]["Cmd"]) for one in client.containers.list(ignore_removed=True)]

        wait_until(lambda: not any("sleep 3600" in command for command in commands()), "the end of the build")


def test_a_missing_engine_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BackendUnavailableError, match="leave the workspace out"):
        Builder().build(fill(tmp_path / "p", "a"), pull=True)


# What is pushed


def test_a_given_engine_is_left_open(monkeypatch):
    client = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41")
    monkeypatch.setattr(client, "close", lambda: pytest.fail("its owner closes it"))
    with DockerWorkspaceMixin(docker_client=client).workspace_engine() as engine:
        assert engine is client


def test_local_images_get_a_remote_name():
    app = AppDef("a", [Role("r", "sha256:abc"), Role("s", "busybox")])
    with pytest.raises(InvalidRunConfigException, match="image_repo"):
        Builder().dryrun_push_images(app, {})
    pushes = Builder().dryrun_push_images(app, {"image_repo": "example.com/me"})
    assert pushes == {"sha256:abc": ("example.com/me", "abc")}
    assert [role.image for role in app.roles] == ["example.com/me:abc", "busybox"]


def test_run_options():
    assert [name for name, _ in Builder().workspace_opts()] == ["image_repo", "quiet"]


@pytest.fixture
def build(monkeypatch):
    """Return a function that builds an image on an engine that only reads what it is sent."""
    monkeypatch.setattr(images, "build", lambda client, context, *_, **__: b"".join(context))
    return DockerWorkspaceMixin(docker_client=Mock()).build_workspace_image


@pytest.mark.parametrize(
    ("image", "dockerfile", "pulled"),
    [
        ("busybox", "FROM $IMAGE\n", ["busybox"]),
        ("busybox", "FROM scratch\n", []),
        ("sha256:abc", "FROM $IMAGE\n", []),
        ("", "FROM $IMAGE\n", []),
    ],
)
def test_a_base_is_pulled_if_the_build_uses_it(build, tmp_path, monkeypatch, progress, image, dockerfile, pulled):
    asked = Mock(return_value="it is gone")
    monkeypatch.setattr(images, "try_to_pull", asked)
    build(image, str(fill(tmp_path, **{DOCKERFILE: dockerfile})))
    assert [call.args[1] for call in asked.mock_calls] == pulled
    assert progress == [f"{name} is used as it is here: it is gone" for name in pulled]


def test_sent_megabytes_are_reported(build, tmp_path, progress):
    assert len(build("", str(fill(tmp_path, a=b"x" * 10_000_000)))) > 10_000_000
    assert progress == [f"sending the image of {tmp_path}: {size} MB" for size in (4, 8)]
