"""The dashboard on the scheduler slurm, over programs that stand for Slurm's commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboard import make_app
from support.slurm_commands import SlurmCommands

from torchx_tui.backends.slurm import accounting, shared_answer
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.tui.app import TorchXTuiApp


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmCommands:
    monkeypatch.setattr(accounting, "_known_from", 0)
    return SlurmCommands(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def app(commands: SlurmCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchXTuiApp]:
    """Give the application; every question is asked anew."""
    monkeypatch.setattr(shared_answer, "_SLOW_FACTOR", 0.0)
    monkeypatch.setattr(shared_answer, "_QUICK_FACTOR", 0.0)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    scheduler = SlurmScheduler("torchx", interval=0, quick_interval=0)
    made = make_app(scheduler, tmp_path, name="slurm")
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["slurm"])
    yield made
    scheduler.close()
