import pytest
from support.scripted_server import scripted_server

from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler


@pytest.fixture
def server():
    """Give an API server that answers as the test scripts it."""
    with scripted_server() as made:
        yield made


@pytest.fixture
def scheduler(server):
    """Give a scheduler on this server that lists the namespace jobs."""
    made = KubernetesScheduler("test", server.client(), namespace="jobs")
    yield made
    made.close()
