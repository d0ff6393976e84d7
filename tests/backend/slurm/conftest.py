"""The scheduler slurm over programs that stand for Slurm's commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.slurm_commands import SlurmCommands

from torchx_tui.backends.slurm import shared_answer
from torchx_tui.backends.slurm.scheduler import SlurmScheduler


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmCommands:
    """Give programs in the place of Slurm's commands."""
    return SlurmCommands(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def slurm(commands: SlurmCommands, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmScheduler]:
    """Give a scheduler that asks these programs anew each time, however long they take."""
    monkeypatch.setattr(shared_answer, "_SLOW_FACTOR", 0.0)
    monkeypatch.setattr(shared_answer, "_QUICK_FACTOR", 0.0)
    made = SlurmScheduler("torchx", interval=0, quick_interval=0)
    yield made
    made.close()
