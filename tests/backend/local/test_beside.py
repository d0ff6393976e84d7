"""Commands beside a replica of this machine: their environment, and refusals."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.local.beside import run_beside_replica
from torchx_tui.backends.local.record import Run
from torchx_tui.backends.shared.bounded_command import REPLICA_PID
from torchx_tui.base.processes import read_process
from torchx_tui.specs.errors import SchedulerError


@pytest.fixture
def replica():
    """Return a replica that runs, as a state file has it."""
    process = subprocess.Popen(["sleep", "300"])
    found: Any = read_process(process.pid)
    yield {"role": "r", "id": 0, "pid": process.pid, "pid_started": found.start, "exit_code": None}
    process.kill()
    process.wait()


def beside(replica, script, **of_run):
    run = Run("job-1", Path("/none"), {"replicas": [replica], "host": "node7"}, **of_run)
    return run_beside_replica(run, "r", 0, ["sh", "-c", script], 60.0)


def test_command_knows_its_replica(replica, monkeypatch):
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("TORCHX_JOB_ID", "of this process")
    answer = beside(replica, f'echo "${REPLICA_PID} $INHERITED ${{TORCHX_JOB_ID-none}}"; pwd')
    assert (answer.code, answer.out.decode()) == (0, f"{replica['pid']} yes none\n/\n")


@pytest.mark.parametrize(
    ("of_replica", "of_run", "words"),
    [
        ({"exit_code": 0}, {}, "r/0 of job-1 is not running"),
        ({"pid_started": "1"}, {}, "r/0 of job-1 is not running"),
        ({}, {"here": False}, "r/0 of job-1 runs on node7: run it there"),
    ],
)
def test_command_needs_a_running_replica_here(replica, of_replica, of_run, words):
    with pytest.raises(SchedulerError, match=words):
        beside({**replica, **of_replica}, "true", **of_run)


def test_one_that_prints_without_end_is_stopped(replica):
    with pytest.raises(SchedulerError, match="sh printed more than 64 MB and was stopped"):
        beside(replica, "exec cat /dev/zero")
