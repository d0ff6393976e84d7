import pytest
from backend.contract import SchedulerContract

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.specs.status import AppState


class TestDocker(SchedulerContract):
    image = "busybox:local"
    cancelled = AppState.FAILED

    @pytest.fixture
    def scheduler(self, docker):
        return docker.scheduler

    @pytest.fixture
    def cfg(self):
        return {"pull": False}

    def purge_log(self, scheduler, described):
        # The engine keeps a log as long as its container.
        client = Engine().client()
        for one in client.api.containers(all=True, filters={"label": f"{labels.APP_ID}={described.app_id}"}):
            client.api.remove_container(one["Id"])


class TestDockerThatPulls(TestDocker):
    """Pulling fails where no registry is reached; what is there is taken then."""

    image = "python:local"

    @pytest.fixture
    def cfg(self):
        return {}
