"""What the tests of guests share."""

import pytest
from support.component_files import ComponentFile
from support.waiting import NEVER

from torchx_tui.guest import host


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Give a guest on a busy machine the time that it takes; tests of its limits set their own."""
    monkeypatch.setattr(host, "START_TIMEOUT_S", NEVER)
    monkeypatch.setattr(host.guests.settings, "timeout_s", NEVER)


@pytest.fixture
def component_file(tmp_path):
    return ComponentFile(tmp_path / "jobs.py")
