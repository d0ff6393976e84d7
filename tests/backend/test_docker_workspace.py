"""Workspaces become images of a real engine."""

from __future__ import annotations

import io
import os
import tarfile
import threading
import time
from contextlib import suppress

import docker.errors
import pytest
from support.docker_containers import output_of
from support.waiting import PATIENCE

from torchx_tui.backends.docker_engine import images
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.backends.workspace import docker_workspace
from torchx_tui.backends.workspace.build_context import build_context
from torchx_tui.backends.workspace.docker_workspace import DockerWorkspaceMixin
from torchx_tui.specs import (
    AppDef,
    BackendUnavailableError,
    InvalidRunConfigException,
    LaunchCancelledError,
    Role,
    SchedulerError,
    Workspace,
)

NO_PULL = {"pull": False}


def fill(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(workspace):
    return tarfile.open(fileobj=io.BytesIO(b"".join(build_context(workspace))))


# What is sent


def test_a_folder_is_packed_without_what_is_ignored(tmp_path):
    project = fill(tmp_path / "p", main_dot_py="print(1)", data__big="x", pkg__a_dot_pyc="", pkg__keep_dot_pyc="k")
    (project / ".dockerignore").write_text("data\n*.pyc\n!pkg/keep.pyc\n")
    (project / ".torchxignore").write_text("main.py\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "empty").mkdir()
    (project / "inside").symlink_to("main.py")
    (project / "outside").symlink_to(fill(tmp_path / "other", file="content") / "file")
    (project / "dangling").symlink_to("/no/such/file")
    (project / ("long" * 40)).write_text("a long name")
    with packed(str(project)) as tar:
        assert set(tar.getnames()) == {
            ".dockerignore", ".torchxignore", "Dockerfile.torchx", "empty", "inside", "main.py", "outside",
            "pkg/keep.pyc", "run.sh", "long" * 40,
        }  # fmt: skip
        assert tar.getmember("run.sh").mode == 0o755
        assert tar.getmember("inside").issym()
        assert tar.extractfile("outside").read() == b"content"
        assert tar.getmember("empty").isdir()
        assert b"FROM $IMAGE" in tar.extractfile("Dockerfile.torchx").read()
        assert {entry.uid for entry in tar} == {0}


def test_the_dockerfile_travels_even_where_it_is_ignored(tmp_path):
    project = fill(tmp_path / "p", Dockerfile_dot_torchx="FROM scratch\n", a="a")
    (project / ".dockerignore").write_text("*\n")
    with packed(str(project)) as tar:
        assert tar.getnames() == ["Dockerfile.torchx"]
        assert tar.extractfile("Dockerfile.torchx").read() == b"FROM scratch\n"


def test_a_url_is_packed(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    for name, text in (("a.py", b"a"), ("sub/b.py", b"b"), ("sub/c.pyc", b"c"), (".dockerignore", b"*.pyc")):
        memory.pipe(f"/{tmp_path.name}/{name}", text)
    with packed(f"memory://{tmp_path.name}") as tar:
        assert set(tar.getnames()) == {"a.py", "sub/b.py", ".dockerignore", "Dockerfile.torchx"}
        assert tar.extractfile("sub/b.py").read() == b"b"


def test_a_file_that_grows_meanwhile_is_as_long_as_it_was(tmp_path):
    project = fill(tmp_path / "p", a_dot_log="x" * 3_000_000, b="b")
    parts = build_context(str(project))
    sent = [next(parts)]
    with (project / "a.log").open("a") as growing:
        growing.write("more")
    sent += parts
    with tarfile.open(fileobj=io.BytesIO(b"".join(sent))) as tar:
        assert tar.getmember("a.log").size == 3_000_000
        assert tar.extractfile("b").read() == b"b"


def test_a_workspace_that_is_not_there(tmp_path):
    for workspace in (str(tmp_path / "gone"), f"memory://{tmp_path.name}-gone", "nonsense://x"):
        with pytest.raises(SchedulerError, match="workspace"):
            list(build_context(workspace))


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
        self.images: set[str] = set()

    def build_workspace_image(self, img, workspace, cfg=None):
        image = super().build_workspace_image(img, workspace, cfg)
        self.images.add(image)
        return image

    def output(self, image, *command):
        with self.workspace_engine() as client:
            return output_of(client, image, *command)


def test_files_are_laid_over_the_image(builder, tmp_path):
    project = fill(tmp_path / "p", train_dot_sh="echo trained", secret="no")
    (project / ".dockerignore").write_text("secret\n")
    image = builder.build_workspace_image("busybox:local", str(project), NO_PULL)
    assert image.startswith("sha256:")
    assert builder.output(image, "sh", "train.sh") == "trained\n"
    assert "secret" not in builder.output(image, "ls")
    with builder.workspace_engine() as client:
        assert client.images.get(image).labels["torchx.pytorch.org/version"]
    assert builder.build_workspace_image("busybox:local", str(project), NO_PULL) == image


def test_a_dockerfile_of_its_own(builder, tmp_path):
    dockerfile = "ARG IMAGE\nFROM $IMAGE\nARG WORKSPACE\nWORKDIR /work\nCOPY a b\nRUN echo $WORKSPACE >> b\n"
    project = fill(tmp_path / "p", a="a\n", Dockerfile_dot_torchx=dockerfile)
    said = []
    with shown_progress(Progress(said.append)):
        image = builder.build_workspace_image("busybox:local", str(project), NO_PULL)
    assert builder.output(image, "cat", "/work/b") == f"a\n{project}\n"
    assert said[0] == f"building the image of {project}"
    assert any(": Step 4/7 : WORKDIR /work" in words for words in said)
    said.clear()
    with shown_progress(Progress(said.append)):
        builder.build_workspace_image("busybox:local", str(project), {**NO_PULL, "quiet": True})
    assert set(said) == {f"building the image of {project}"}


def test_a_base_that_cannot_be_pulled_is_built_on_as_it_is(builder, tmp_path):
    said = []
    with shown_progress(Progress(said.append)):
        builder.build_workspace_image("busybox:local", str(fill(tmp_path / "p", a="a")))
    assert any(words.startswith("busybox:local is used as it is here") for words in said)


def test_roles_of_several_projects(builder, tmp_path):
    fill(tmp_path, a__x="x", b__y="y")
    both = Workspace({str(tmp_path / "a"): "", str(tmp_path / "b"): "lib"})
    roles = [Role("r", "busybox:local", workspace=both), Role("s", "busybox:local", workspace=both), Role("t", "i")]
    assert builder.planned_builds(roles) == [
        f"role {name}: its workspace is built first, of {tmp_path}/a, {tmp_path}/b as lib on top of busybox:local"
        for name in "rs"
    ]
    builder.build_workspaces(roles, NO_PULL)
    assert roles[0].image == roles[1].image != "busybox:local"
    assert roles[2].image == "i"
    assert builder.output(roles[0].image, "cat", "x", "lib/y") == "xy"


def test_a_build_that_fails_shows_its_last_lines(builder, tmp_path):
    dockerfile = "ARG IMAGE\nFROM $IMAGE\nRUN echo the cause; exit 3\n"
    project = fill(tmp_path / "p", Dockerfile_dot_torchx=dockerfile)
    with pytest.raises(SchedulerError, match=r"(?s)the image of .*/p cannot be built:.*the cause.*code: 3"):
        builder.build_workspace_image("busybox:local", str(project), NO_PULL)
    (project / "Dockerfile.torchx").write_text("NONSENSE\n")
    with pytest.raises(SchedulerError, match=r"cannot be built: .*NONSENSE"):
        builder.build_workspace_image("busybox:local", str(project), NO_PULL)


def test_a_build_that_nobody_waits_for_ends_at_once(builder, tmp_path):
    dockerfile = "ARG IMAGE\nFROM $IMAGE\nRUN echo begun; sleep 3600\n"
    project = fill(tmp_path / "p", Dockerfile_dot_torchx=dockerfile)
    begun = threading.Event()
    progress = Progress(lambda text: begun.set() if "begun" in text and "Step" not in text else None)
    failures = []

    def launch():
        with shown_progress(progress):
            try:
                builder.build_workspace_image("busybox:local", str(project), NO_PULL)
            except BaseException as error:
                failures.append(error)

    thread = threading.Thread(target=launch, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    began = time.monotonic()
    progress.cancel()
    thread.join(PATIENCE)
    assert time.monotonic() - began < PATIENCE
    assert [type(failure) for failure in failures] == [LaunchCancelledError]
    with builder.workspace_engine() as client:
        deadline = time.monotonic() + PATIENCE
        while any(
            "sleep 3600" in str(one.attrs["Config"]["Cmd"]) for one in client.containers.list(ignore_removed=True)
        ):
            assert time.monotonic() < deadline, "the engine goes on with the build"
            time.sleep(0.1)


def test_without_an_engine_it_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BackendUnavailableError, match="leave the workspace out"):
        Builder().build_workspace_image("busybox:local", str(fill(tmp_path / "p", a="a")))


# What is pushed


def test_the_engine_can_be_given_and_is_left_open(monkeypatch):
    client = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41")
    monkeypatch.setattr(client, "close", lambda: pytest.fail("who made it closes it"))
    with DockerWorkspaceMixin(docker_client=client).workspace_engine() as engine:
        assert engine is client


def test_local_images_get_a_name_that_can_be_pulled():
    app = AppDef("a", [Role("r", "sha256:abc"), Role("s", "busybox")])
    with pytest.raises(InvalidRunConfigException, match="image_repo"):
        Builder().dryrun_push_images(app, {})
    pushes = Builder().dryrun_push_images(app, {"image_repo": "example.com/me"})
    assert pushes == {"sha256:abc": ("example.com/me", "abc")}
    assert [role.image for role in app.roles] == ["example.com/me:abc", "busybox"]


def test_run_options():
    assert [name for name, _ in Builder().workspace_opts()] == ["image_repo", "quiet"]


def test_entries_are_the_same_wherever_they_are_packed(tmp_path):
    """An engine keeps layers of what has not changed."""
    project = fill(tmp_path / "p", a="a")
    (project / os.fsdecode(b"odd\xff")).write_text("odd")
    os.utime(project / "a", (77, 77))
    with packed(str(project)) as tar:
        made = tar.getmember("Dockerfile.torchx")
        assert (made.mode, made.mtime, made.type, made.linkname) == (0o644, 0, tarfile.REGTYPE, "")
        assert tar.getmember("a").mtime == 77
        assert os.fsdecode(b"odd\xff") in tar.getnames()


@pytest.mark.parametrize(
    ("image", "dockerfile", "pulled"),
    [
        ("busybox", b"FROM $IMAGE\n", ["busybox"]),
        ("busybox", b"FROM scratch\n", []),
        ("sha256:abc", b"FROM $IMAGE\n", []),
        ("", b"FROM $IMAGE\n", []),
    ],
)
def test_the_image_that_is_built_on_is_pulled_where_the_build_takes_it(monkeypatch, image, dockerfile, pulled):
    asked = []
    said = []

    def pull(_, name):
        asked.append(name)
        return "it is gone"

    monkeypatch.setattr(images, "try_to_pull", pull)
    with shown_progress(Progress(said.append)):
        docker_workspace._pull_base(None, image, dockerfile)
    assert asked == pulled
    assert said == [f"{name} is used as it is here: it is gone" for name in pulled]


def test_how_much_was_sent_is_said_now_and_then():
    said = []
    parts = [b"x" * 1_000_000] * 10
    sent = docker_workspace._counted(iter(parts), Progress(said.append), "it")
    assert b"".join(sent) == b"".join(parts)
    assert said == ["sending it: 5 MB", "sending it: 10 MB"]
