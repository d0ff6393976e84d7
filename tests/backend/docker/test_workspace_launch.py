"""Apps that take local folders along, launched on a real engine."""

import threading

import pytest
from support.background import in_background
from support.waiting import PATIENCE

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.progress import Progress
from torchx_tui.specs.errors import LaunchCancelledError
from torchx_tui.specs.handles import parse_app_handle
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

NO_PULL = {"pull": False}


@pytest.fixture
def runner(docker_engine, tmp_path):
    with Runner(journal=Journal(tmp_path / "journal")) as made:
        yield made
        scheduler = made.scheduler("local_docker")
        for record in made.journal.records():
            if record.app_id:
                scheduler.delete(record.app_id)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.sh").write_text("echo trained; ls\n")
    (folder / "secret").write_text("no")
    (folder / ".dockerignore").write_text("secret\n")
    return folder


def app():
    resource = Resource(cpu=1, gpu=0, memMB=64)
    return AppDef("shipped", [Role("worker", "busybox:local", entrypoint="sh", args=["train.sh"], resource=resource)])


def test_a_folder_travels_with_a_launch_and_with_its_relaunch(runner, project):
    said = []
    handle = runner.run(app(), "local_docker", NO_PULL, str(project), progress=Progress(said.append))
    assert any(words.startswith(f"building the image of {project}: Step 1/") for words in said)
    ended = runner.job(handle).wait()
    assert ended.state is AppState.SUCCEEDED
    lines = list(runner.job(handle).log_lines("worker", 0))
    assert lines[0] == "trained\n"
    assert "secret\n" not in lines
    (project / "train.sh").write_text("echo better\n")
    again = runner.relaunch(handle)
    ended = runner.job(again).wait()
    assert ended.state is AppState.SUCCEEDED
    assert list(runner.job(again).log_lines("worker", 0)) == ["better\n"]


def test_a_preview_says_what_would_be_built(runner, project):
    text = str(runner.dryrun(app(), "local_docker", NO_PULL, str(project)))
    assert text.startswith(f"# role worker: its workspace is built first, of {project} on top of busybox:local\n")


def test_a_launch_that_is_cancelled_in_mid_build_leaves_nothing(runner, project):
    (project / "Dockerfile.torchx").write_text("ARG IMAGE\nFROM $IMAGE\nRUN echo begun; sleep 3600\n")
    begun = threading.Event()
    progress = Progress(lambda text: begun.set() if text.endswith(": begun") else None)
    launching = in_background(lambda: runner.run(app(), "local_docker", NO_PULL, str(project), progress=progress))
    assert begun.wait(PATIENCE)
    progress.cancel()
    assert isinstance(launching.exception(PATIENCE), LaunchCancelledError)
    (record,) = runner.journal.records()
    assert (record.state, record.app_id) == ("CANCELLED", "")
    expected = parse_app_handle(record.handle).app_id
    assert not runner.scheduler("local_docker").exists(expected)
