import pytest
from support.hook import Hook


@pytest.fixture
def hook():
    made = Hook()
    yield made
    made.close()
