import pytest
from backend.docker.support import Docker
from support.docker_containers import replicas
from support.scripted_engine import scripted_engine


@pytest.fixture
def make_docker(docker_engine):
    """Return what makes schedulers on the engine; what they launched is removed afterwards."""
    made = []

    def make(**arguments):
        made.append(Docker(**arguments))
        return made[-1]

    yield make
    for docker in made:
        docker.remove_all()


@pytest.fixture
def docker(make_docker):
    """Return a scheduler whose cancelled replicas have two seconds."""
    return make_docker(grace_seconds=2)


@pytest.fixture
def app(docker_engine):
    """Give replicas of an app on the engine, which a test starts."""
    with replicas() as made:
        yield made


@pytest.fixture
def scripted():
    """Give an engine that answers as the test scripts it."""
    with scripted_engine() as made:
        yield made
