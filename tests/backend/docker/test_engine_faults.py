"""An engine that stops, is killed, and comes back, while apps run on it."""

import pytest
from backend.docker.support import Docker
from support.waiting import wait_until

from torchx_tui.backends.types import Finding
from torchx_tui.specs.errors import BackendUnavailableError
from torchx_tui.specs.status import AppState


@pytest.fixture
def docker(own_engine):
    made = Docker(grace_seconds=2)
    yield made
    made.scheduler.close()


def test_stopped_and_started_in_mid_run(docker, own_engine):
    app_id = docker.launch("sleep 600", replicas=2)
    ended = docker.launch("exit 0")
    docker.running(app_id)
    docker.ended(ended)
    own_engine.stop()
    for ask in (docker.scheduler.list, lambda: docker.scheduler.describe(app_id)):
        with pytest.raises(BackendUnavailableError, match=r"was not found|has stopped"):
            ask()
    (finding,) = docker.scheduler.check()
    assert (finding.level, finding.hint.startswith("Start it (`systemctl start docker`")) == ("error", True)
    own_engine.start()
    described = docker.ended(app_id)
    assert described.state == AppState.FAILED
    # Its containers are ended as at any shutdown: SIGTERM, which `sleep` as the first process does not hear, SIGKILL.
    assert "SIGKILL" in described.msg
    assert docker.describe(ended).state == AppState.SUCCEEDED
    assert docker.scheduler.check()[0] == Finding("ok", docker.scheduler.check()[0].what)
    assert docker.ended(docker.launch("exit 0")).state == AppState.SUCCEEDED


def test_killed_in_mid_run(docker, own_engine):
    app_id = docker.launch("sleep 600", replicas=2)
    docker.running(app_id)
    own_engine.kill()

    def is_away():
        try:
            docker.scheduler.list()
        except BackendUnavailableError as error:
            return "has stopped" in str(error)
        return False

    wait_until(is_away, "an engine that is away")
    own_engine.start()
    described = docker.ended(app_id)
    assert described.state == AppState.FAILED
    assert described.msg.startswith("exit 255: its own exit code, or the engine was killed: worker/")
    (row,) = docker.scheduler.list()
    assert (row.state, row.msg) == (described.state, described.msg)
    docker.scheduler.delete(app_id)
    assert docker.containers() == []


def test_retries_go_on_after_the_engine_was_killed(docker, own_engine):
    app_id = docker.launch("sleep 600", max_retries=3)
    docker.running(app_id)
    own_engine.kill()
    own_engine.start()
    docker.running(app_id)
    docker.scheduler.delete(app_id)
    assert docker.containers() == []
