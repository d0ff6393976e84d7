"""Slurm's commands: where they are set up, and what happens when they fail, hang or print too much."""

import time

import pytest

from torchx_tui.backends.slurm import commands as slurm_commands
from torchx_tui.backends.slurm.commands import CommandError, ask, is_set_up, run
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError


def test_it_is_set_up_where_its_commands_and_settings_are(commands, tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_CONF")
    assert is_set_up()
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    assert not is_set_up()
    monkeypatch.setenv("SLURM_CONF", str(tmp_path))
    assert is_set_up()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not is_set_up()


def test_a_command_that_hangs_is_ended(commands):
    commands.answer("squeue", seconds=600)
    began = time.monotonic()
    with pytest.raises(BackendUnavailableError, match=r"squeue did not answer within 0\.5 s"):
        ask(["squeue"], timeout=0.5)
    assert time.monotonic() - began < 60


def test_a_command_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailableError, match=r"squeue cannot be run: .*: put Slurm's commands on the PATH"):
        ask(["squeue"])


def test_a_command_that_prints_without_end(commands, monkeypatch):
    monkeypatch.setattr(slurm_commands, "MAX_BYTES", 1 << 20)
    with pytest.raises(BackendUnavailableError, match="more than 1 MB"):
        run(["cat", "/dev/zero"])


def test_what_it_reads_is_more_than_a_pipe_holds(commands):
    text = "x" * 500_000
    assert run(["cat"], stdin=text).out == text
    # One that does not read what it is given is no fault.
    assert run(["true"], stdin=text).code == 0


@pytest.mark.parametrize(
    ("err", "kind"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", BackendUnavailableError),
        ("sacct: error: Problem talking to the database: Connection refused", BackendUnavailableError),
        ("slurm_load_jobs error: Connection reset by peer", BackendUnavailableError),
        ("slurm_load_jobs error: Invalid job id specified", CommandError),
    ],
)
def test_an_error_says_what_the_command_said(commands, err, kind):
    commands.answer("squeue", err=f"{err}\n", code=1)
    with pytest.raises(SchedulerError) as raised:
        ask(["squeue"])
    assert type(raised.value) is kind
    assert err.rpartition("error: ")[2] in str(raised.value)


def test_errors_are_masked_and_free_of_control_characters(commands):
    commands.answer("sbatch", err="sbatch: error: odd --token=hunter2 \x1b[31mred\n", code=1)
    with pytest.raises(SchedulerError) as raised:
        ask(["sbatch"])
    assert "hunter2" not in str(raised.value)
    assert "\x1b" not in str(raised.value)
