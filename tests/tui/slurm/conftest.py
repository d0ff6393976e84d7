"""The dashboard on the scheduler slurm, over programs that stand for Slurm's commands."""

import pytest
from support.dashboard import slurm_app
from support.slurm_commands import SlurmCommands


@pytest.fixture
def commands(tmp_path, monkeypatch):
    return SlurmCommands(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def app(commands, tmp_path, monkeypatch):
    """Give the application, in a folder of its own."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with slurm_app(tmp_path, monkeypatch) as made:
        yield made
