"""What the tests of guests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.waiting import NEVER

from torchx_tui.guest import host


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a guest on a busy machine the time that it takes; tests of its limits set their own."""
    monkeypatch.setattr(host, "START_TIMEOUT_S", NEVER)
    monkeypatch.setattr(host.guests.settings, "timeout_s", NEVER)


@pytest.fixture
def component_file(tmp_path: Path) -> ComponentFile:
    return ComponentFile(tmp_path / "jobs.py")
