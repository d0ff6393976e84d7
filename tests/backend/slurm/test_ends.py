"""Why a job ended: by its state, exit code, signal and memory, and by what srun and slurmstepd wrote."""

import os
import pwd
from pathlib import Path

import pytest
from support.tables import tables

from torchx_tui.backends.slurm.ends import TaskEnd, task_ends
from torchx_tui.backends.slurm.values import format_size
from torchx_tui.backends.types import Stream
from torchx_tui.specs.status import AppState

table = tables(__file__)


def ended(slurm, commands, *steps, **fields):
    """Return the description of a job that has left the queue, by what sacct says of it and its steps."""
    commands.queue()
    commands.accounted(fields, *steps)
    described = slurm.describe("7")
    assert described is not None
    return described


@table("states", "fields told")
def test_a_state(slurm, commands, fields, told):
    own = {"uid": os.getuid(), "user": pwd.getpwuid(os.getuid()).pw_name}
    fields = {name: value.format(**own) for name, value in fields.items()}
    assert ended(slurm, commands, **fields).msg == told.format(**own)


def test_memory_that_was_measured(slurm, commands):
    steps = (
        {"JobIDRaw": "7.batch", "JobName": "batch", "MaxRSS": "3200K", "NTasks": "1", "TotalCPU": "00:01.500"},
        {"JobIDRaw": "7.0", "JobName": "train", "MaxRSS": "199.50M", "NTasks": "1", "TotalCPU": "01:38.500"},
    )
    described = ended(slurm, commands, *steps, State="OUT_OF_MEMORY", ExitCode="0:125")
    assert described.msg == (
        "out of memory: 199.5M was measured in one task, of the 200M that it asked for: ask for more memory"
    )
    assert described.metadata["cpu used"] == "50 % of 2 cpu"
    assert described.metadata["memory used"] == "199.5M of 200M, 100 %"


@table("what would have been enough", "fields told")
def test_what_would_have_been_enough(slurm, commands, fields, told):
    step = {"JobIDRaw": "7.0", "JobName": "train", "MaxRSS": "500M", "NTasks": "1", "TotalCPU": "01:39.000"}
    described = ended(slurm, commands, step, **{"NCPUS": "8", "AllocTRES": "cpu=8,mem=4G,node=1", **fields})
    assert {name: described.metadata[name] for name in told} == told


@pytest.mark.parametrize("missing", ["folder", "output"])
def test_a_job_that_could_not_be_launched(slurm, commands, tmp_path, missing):
    commands.queue({
        "State": "FAILED", "exit_code": "0:53", "WorkDir": str(tmp_path / "no" if missing == "folder" else tmp_path),
        "STDOUT": str(tmp_path / "no/out"),
    })  # fmt: skip
    described = slurm.describe("7")
    assert described.msg == (
        f"it could not be launched: the folder {tmp_path / 'no'} does not exist: create it, or choose another one"
    )


def test_job_in_a_folder_that_cannot_be_checked(slurm, commands):
    folder = "/" + "x" * 300
    commands.queue({"State": "FAILED", "exit_code": "0:53", "WorkDir": folder, "STDOUT": f"{folder}/out"})
    assert slurm.describe("7").msg.startswith(f"it could not be launched: its folder {folder}")


def test_what_srun_says_of_its_tasks(slurm, commands, tmp_path):
    (tmp_path / "slurm-7.out").write_text(
        "noise\nsrun: error: n1: task 0: Exited with exit code 4\nsrun: error: Unable to open file: no space left\n"
    )
    commands.queue({"State": "FAILED", "exit_code": "4:0", "WorkDir": str(tmp_path), "STDOUT": "slurm-%j.out"})
    described = slurm.describe("7")
    assert described.msg == "exit 4: Unable to open file: no space left"
    assert described.roles_statuses[0].replicas[0].exit_code == 4


@table("exit codes of squeue", "status told")
def test_exit_codes_of_squeue(slurm, commands, status, told):
    # Before 23.02 it prints the raw status of wait().
    commands.queue({"State": "FAILED", "exit_code": status})
    described = slurm.describe("7")
    assert described.state is AppState.FAILED
    assert described.msg == told


def test_the_controller_forgets_and_accounting_says_how_it_ended(slurm, commands, clock):
    commands.queue({"State": "RUNNING", "STDOUT": "/logs/%x-%j.out", "Comment": "mine"})
    commands.accounted()
    (row,) = slurm.list()
    assert row.state is AppState.RUNNING
    commands.queue()
    commands.accounted({"State": "TIMEOUT"})
    clock.now += 3
    (row,) = slurm.list()
    assert (row.state, row.msg[:12]) == (AppState.FAILED, "its time lim")
    # What only the queue knew is kept.
    assert slurm.log_files("7", "batch", 0) == {Stream.STDOUT: Path("/logs/train-7.out")}


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1, "1K"), ((1 << 20) - 1, "1M"), (3 << 19, "1.5M"), ((1 << 30) - 1, "1G"), (1 << 40, "1T")],
)
def test_size_never_reads_1024_of_a_unit(size, shown):
    assert format_size(size) == shown


def test_several_tasks_in_one_line_of_srun():
    told = task_ends(
        "srun: error: n1: tasks 1-3,5: Killed\nsrun: error: n2: task 0: Exited with exit code 4\n"
        "srun: error: n1: task 1: Terminated\nsrun: error: n1: task 7: Something else\n"
    )
    assert told == {**dict.fromkeys((1, 2, 3, 5), TaskEnd(None, 9)), 0: TaskEnd(4, 0)}


def test_earlier_runs_of_a_job_that_was_requeued(slurm, commands):
    commands.queue({"RestartCnt": "2"})
    commands.accounted(
        {"State": "NODE_FAIL", "ElapsedRaw": "300", "NodeList": "n3"},
        {"State": "PREEMPTED", "ElapsedRaw": "0", "NodeList": "n2"},
        {"State": "RUNNING"},
    )
    for _ in range(2):
        assert slurm.describe("7").metadata["earlier runs"] == "NODE_FAIL on n3 after 5m, PREEMPTED on n2"
    assert len(commands.calls("sacct", "--duplicates")) == 1


@table("gpu efficiency", "usage expected")
def test_gpu_efficiency(slurm, commands, usage, expected):
    tres = "cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1"
    commands.accounted(
        {"AllocTRES": tres},
        {"JobIDRaw": "7.0", "JobID": "7.0", "JobName": "python", "NTasks": "1", "TRESUsageInTot": usage},
    )
    described = slurm.describe("7")
    assert {name: value for name, value in described.metadata.items() if name.startswith("gpu")} == expected
