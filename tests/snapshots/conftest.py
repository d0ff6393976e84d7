"""Pictures are the same on every machine."""

import time

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app


@pytest.fixture(autouse=True)
def frozen(monkeypatch):
    """Freeze what differs between machines: the time zone and where the builtins' image comes from."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def app(tmp_path):
    return make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
