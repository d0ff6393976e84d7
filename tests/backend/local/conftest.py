import pytest
from backend.local.support import Local, document


@pytest.fixture
def make_local(tmp_path):
    made = []

    def make(root=None, **arguments):
        made.append(Local(root or tmp_path / "state", **arguments))
        return made[-1]

    yield make
    for local in made:
        local.end_all()
        local.scheduler.close()


@pytest.fixture
def local(make_local):
    return make_local()


@pytest.fixture
def make(local):
    """Return a function that writes the state file of the app job-1, and reads it."""

    def made(*replicas, **fields):
        local.put("job-1", document(*replicas, **fields))
        return local.run("job-1")

    yield made
    # Its processes may be this one.
    (local.root / "session/job-1/state.json").unlink(missing_ok=True)
