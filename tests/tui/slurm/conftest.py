"""The dashboard on the scheduler slurm, over programs that stand for Slurm's commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboard import slurm_app
from support.slurm_commands import SlurmCommands

from torchx_tui.tui.app import TorchXTuiApp


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmCommands:
    return SlurmCommands(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def app(commands: SlurmCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchXTuiApp]:
    """Give the application, in a folder of its own."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with slurm_app(tmp_path, monkeypatch) as made:
        yield made
