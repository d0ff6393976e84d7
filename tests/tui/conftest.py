import threading
import time

import pytest
from support import loop_audit
from support.canned import busy_scheduler
from support.command import command_runner
from support.dashboard import make_app
from support.undrawn import nothing_that_cannot_be_drawn as nothing_that_cannot_be_drawn
from support.waiting import PATIENCE


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Return what runs a command of the shell in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def scheduler(tmp_path):
    """Return a scheduler with jobs in every state."""
    return busy_scheduler(tmp_path / "logs")


@pytest.fixture
def app(scheduler, tmp_path):
    """Return the dashboard of these jobs."""
    return make_app(scheduler, tmp_path)


@pytest.fixture(autouse=True)
def nothing_that_waits_on_the_event_loop():
    """Fail a test in which the product opens a file, or starts a process, where keys are handled."""
    loop_audit.calls.clear()
    yield
    assert not loop_audit.calls


class Held:
    """Calls that wait until `go` is set; `begun` is set once one waits."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()


@pytest.fixture
def hold(monkeypatch):
    """Return a function that lets calls of another one wait, at the latest until the end of the test."""
    made = []

    def hold_calls(owner, name, is_held=lambda *_: True):
        held, function = Held(), getattr(owner, name)

        def wait(*arguments, **named):
            if is_held(*arguments):
                held.begun.set()
                assert held.go.wait(PATIENCE)
            return function(*arguments, **named)

        monkeypatch.setattr(owner, name, wait)
        made.append(held)
        return held

    yield hold_calls
    for held in made:
        held.go.set()


@pytest.fixture
def zone(monkeypatch):
    """Return what sets the time zone."""

    def set_zone(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()
