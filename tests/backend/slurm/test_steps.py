"""Steps of a user's own batch script: a replica a task, with its file, its node and how it ended."""

from pathlib import Path

import pytest

from torchx_tui.backends.api import Stream
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState

SCRIPT = """#!/bin/bash
#SBATCH --ntasks=2
srun -n 1 -o prepare.log ./prepare.sh
srun --output="out/%x-%t-%s.log" \\
    --error=out/%3t.err python train.py
srun hostname
"""
ROWS = (
    {"JobIDRaw": "7", "State": "FAILED", "ExitCode": "3:0"},
    {"JobIDRaw": "7.batch", "JobID": "7.batch", "JobName": "batch"},
    {"JobIDRaw": "7.0", "JobID": "7.0", "JobName": "prepare.sh", "NTasks": "1", "NodeList": "n1"},
    {
        "JobIDRaw": "7.1", "JobID": "7.1", "JobName": "python", "NTasks": "2", "NodeList": "n[1-2]",
        "State": "FAILED", "ExitCode": "3:0",
    },
    {"JobIDRaw": "7.2", "JobID": "7.2", "JobName": "hostname", "NTasks": "1", "NodeList": "n1", "State": "RUNNING"},
)  # fmt: skip


@pytest.fixture
def job(commands):
    commands.queue({"State": "FAILED", "exit_code": "768", "EndTime": "1795258110", "NodeList": "n[1-2]"})
    commands.accounted(*ROWS)
    commands.answer("scontrol-write-batch_script", SCRIPT)
    return "7"


def test_each_task_is_a_replica(slurm, job):
    described = slurm.describe(job)
    told = [
        (status.role, replica.id, replica.node, replica.state, replica.exit_code, replica.reason)
        for status in described.roles_statuses
        for replica in status.replicas
    ]
    assert told == [
        ("batch", 0, "", AppState.FAILED, 3, "exit 3"),
        ("step0", 0, "n1", AppState.SUCCEEDED, 0, ""),
        ("step1", 0, "n1", AppState.FAILED, None, "a task of python: exit 3"),
        ("step1", 1, "n2", AppState.FAILED, None, "a task of python: exit 3"),
        ("step2", 0, "n1", AppState.RUNNING, None, ""),
    ]


@pytest.mark.parametrize(
    ("role", "number", "stream", "path"),
    [
        ("step0", 0, Stream.STDOUT, "/home/alice/prepare.log"),
        ("step1", 1, Stream.STDOUT, "/home/alice/out/train-1-1.log"),
        ("step1", 1, Stream.STDERR, "/home/alice/out/001.err"),
        ("batch", 0, Stream.STDOUT, "/home/alice/slurm-7.out"),
    ],
)
def test_the_files_of_a_task(slurm, job, role, number, stream, path):
    assert slurm.log_files(job, role, number)[stream] == Path(path)


def test_a_step_without_a_file_says_where_its_output_is(slurm, job):
    with pytest.raises(SchedulerError, match="its output is in that of batch/0"):
        [*slurm.log_iter(job, "step2", 0)]


def test_steps_are_asked_for_only_when_the_job_is_opened(slurm, commands, job):
    commands.queue({})
    slurm.list()
    assert not any("7" in words for words in commands.calls("sacct"))
    for _ in range(3):
        slurm.describe(job)
    assert sum("7" in words for words in commands.calls("sacct")) == 1


def test_a_script_of_a_single_task_has_no_steps(slurm, commands, job):
    commands.accounted(ROWS[0], ROWS[1], ROWS[2])
    assert [status.role for status in slurm.describe(job).roles_statuses] == ["batch"]
