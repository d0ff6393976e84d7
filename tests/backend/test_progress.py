"""Words of progress from a launch, and its end before anything runs."""

import threading

import pytest
from support.background import in_background
from support.waiting import PATIENCE

from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.kubernetes.volcano.manifest import app_to_resource
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.shared.progress import Progress, current_progress, shown_progress
from torchx_tui.backends.shared.readable_yaml import readable_yaml
from torchx_tui.specs.errors import LaunchCancelledError
from torchx_tui.specs.roles import AppDef, Role


def test_reports_reach_the_launch():
    reports = []
    with shown_progress(Progress(reports.append)):
        current_progress().report("pulling 1 of 3")
    current_progress().report("nobody reads this")
    assert reports == ["pulling 1 of 3"]


def test_a_cancelled_launch_ends_at_its_next_report(progress):
    progress.cancel()
    with pytest.raises(LaunchCancelledError):
        progress.report("building")


@pytest.fixture
def progress():
    return Progress(lambda text: None)


def test_a_cancel_ends_a_blocked_step(progress):
    closed, entered = threading.Event(), threading.Event()

    def run():
        with progress.ended_by(closed.set):
            entered.set()
            assert closed.wait(PATIENCE)
            raise OSError("the connection was closed")

    running = in_background(run)
    assert entered.wait(PATIENCE)
    progress.cancel()
    assert isinstance(running.exception(PATIENCE), LaunchCancelledError)


def test_other_steps_are_not_ended(progress):
    with progress.ended_by(lambda: pytest.fail("it was ended")):
        pass
    with pytest.raises(OSError, match="refused"), progress.ended_by(lambda: None):
        raise OSError("refused")
    progress.cancel()


class StopsAfter(Progress):
    """Counts how often it is asked whether to go on, and is not wanted any more after some of them."""

    def __init__(self, checks):
        super().__init__(lambda text: None)
        self.checks, self.left = 0, checks

    def check(self):
        self.checks += 1
        if self.checks > self.left:
            self.cancel()
        super().check()


@pytest.mark.parametrize(
    "step",
    [
        lambda app: LocalScheduler("mine").submit_dryrun(app, {}),
        lambda app: DockerScheduler("mine").submit_dryrun(app, {}),
        lambda app: app_to_resource(app, "default", None),
        lambda app: readable_yaml(["text"] * 100),
    ],
    ids=["local", "docker", "kubernetes", "yaml"],
)
def test_a_long_request_can_be_cancelled(step, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = AppDef("job", [Role("r", str(tmp_path), entrypoint="true", num_replicas=10**12)])
    progress = StopsAfter(20)
    with shown_progress(progress), pytest.raises(LaunchCancelledError):
        step(app)
    assert progress.checks == 21
