from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command, command_runner


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Return what runs a command of the shell in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return command_runner(capsys, monkeypatch)
