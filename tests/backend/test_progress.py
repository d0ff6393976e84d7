"""Words of progress from a launch, and its end before anything runs."""

import threading

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.kubernetes.request.manifest import app_to_resource
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.shared.progress import Progress, current_progress, shown_progress
from torchx_tui.backends.shared.readable_yaml import readable_yaml
from torchx_tui.specs import AppDef, LaunchCancelledError, Role


def test_words_reach_who_launches():
    said = []
    with shown_progress(Progress(said.append)):
        current_progress().report("pulling 1 of 3")
    current_progress().report("nobody hears this")
    assert said == ["pulling 1 of 3"]


def test_a_cancelled_launch_ends_at_its_next_word():
    progress = Progress(lambda text: None)
    progress.cancel()
    with pytest.raises(LaunchCancelledError):
        progress.report("building")


def test_what_waits_is_ended_at_once():
    progress, closed = Progress(lambda text: None), threading.Event()
    entered = threading.Event()

    def launch():
        with progress.ended_by(closed.set):
            entered.set()
            assert closed.wait(PATIENCE)
            raise OSError("the connection was closed")

    failures = []

    def run():
        try:
            launch()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(PATIENCE)
    progress.cancel()
    thread.join(PATIENCE)
    assert [type(failure) for failure in failures] == [LaunchCancelledError]


def test_what_is_over_is_not_ended():
    progress = Progress(lambda text: None)
    with progress.ended_by(lambda: pytest.fail("it was ended")):
        pass
    progress.cancel()


def test_a_failure_of_its_own_stays_one():
    with pytest.raises(OSError, match="refused"), Progress(lambda text: None).ended_by(lambda: None):
        raise OSError("refused")


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
    "dry_run",
    [
        lambda app: LocalScheduler("mine").submit_dryrun(app, {}),
        lambda app: DockerScheduler("mine").submit_dryrun(app, {}),
        lambda app: app_to_resource(app, "default", None),
    ],
    ids=["local", "docker", "kubernetes"],
)
def test_a_request_of_many_replicas_can_be_given_up(dry_run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = AppDef("job", [Role("r", str(tmp_path), entrypoint="true", num_replicas=10**12)])
    progress = StopsAfter(20)
    with shown_progress(progress), pytest.raises(LaunchCancelledError):
        dry_run(app)
    assert progress.checks == 21


def test_writing_a_long_request_can_be_given_up():
    progress = StopsAfter(20)
    with shown_progress(progress), pytest.raises(LaunchCancelledError):
        readable_yaml(["text"] * 100)
    assert progress.checks == 21
