from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import loop_audit, undrawn
from support.canned import CannedScheduler, busy_scheduler
from support.command import Command, command_runner
from support.dashboard import make_app

from torchx_tui.tui.app import TorchXTuiApp


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Return what runs a command of the shell in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def scheduler(tmp_path: Path) -> CannedScheduler:
    """Return a scheduler with jobs in every state."""
    return busy_scheduler(tmp_path / "logs")


@pytest.fixture
def app(scheduler: CannedScheduler, tmp_path: Path) -> TorchXTuiApp:
    """Return the dashboard of these jobs."""
    return make_app(scheduler, tmp_path)


@pytest.fixture(autouse=True)
def nothing_that_waits_on_the_event_loop() -> Iterator[None]:
    """Fail a test in which the product opens a file, or starts a process, where keys are handled."""
    loop_audit.calls.clear()
    yield
    assert not loop_audit.calls


@pytest.fixture(autouse=True)
def nothing_that_cannot_be_drawn() -> Iterator[None]:
    """Fail a test in which drawing raised, although the product survives it."""
    undrawn.failures.clear()
    yield
    assert not undrawn.failures
