"""Why a job ended: by its state, exit code, signal and memory, and by what srun and slurmstepd wrote."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from support.slurm_commands import SlurmCommands

from torchx_tui.backends.slurm.ends import TaskEnd, task_ends
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.slurm.values import format_size
from torchx_tui.backends.types import DescribeAppResponse, Stream
from torchx_tui.specs.status import AppState


def ended(slurm: SlurmScheduler, commands: SlurmCommands, *steps: dict[str, str], **fields: str) -> DescribeAppResponse:
    """Return the description of a job that has left the queue, by what sacct says of it and its steps."""
    commands.queue()
    commands.accounted(fields, *steps)
    described = slurm.describe("7")
    assert described is not None
    return described


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"State": "FAILED", "ExitCode": "3:0"}, "exit 3"),
        ({"State": "FAILED", "ExitCode": "0:9"}, "killed by SIGKILL"),
        ({"State": "FAILED", "ExitCode": "0:11"}, "killed by SIGSEGV"),
        # sacct cuts the code of a script that exits with 128 and a signal's number, as srun does.
        ({"State": "FAILED", "ExitCode": "9:0", "DerivedExitCode": "0:9"}, "killed by SIGKILL"),
        (
            {"State": "TIMEOUT", "TimelimitRaw": "90"},
            "its time limit of 1h 30m was reached: ask for more time, or resume from a checkpoint",
        ),
        (
            {"State": "OUT_OF_MEMORY", "ExitCode": "0:125"},
            "out of memory: it used more than the 200M that it asked for: ask for more memory",
        ),
        ({"State": "NODE_FAIL"}, "a node failed (it ran on n1): launch it again and exclude that node"),
        ({"State": "NODE_FAIL", "FailedNode": "n1"}, "the node n1 failed: launch it again and exclude that node"),
        ({"State": "PREEMPTED"}, "a job of higher priority took its nodes"),
        ({"State": "DEADLINE"}, "it could not end before its deadline"),
        ({"State": "BOOT_FAIL"}, "a node did not boot (it ran on n1): launch it again"),
        (
            {"State": "FAILED", "ExitCode": "1:0", "Reason": "BadConstraints"},
            "no node has what it asked for: change its constraint or resources",
        ),
        ({"State": "CANCELLED"}, "cancelled after 1m"),
        ({"State": f"CANCELLED by {os.getuid()}"}, f"cancelled by {pwd.getpwuid(os.getuid()).pw_name} after 1m"),
        ({"State": "CANCELLED by 4000000000", "Start": "None"}, "cancelled by user 4000000000"),
        ({"State": "COMPLETED"}, "<NONE>"),
    ],
)
def test_a_state(slurm, commands, fields, told):
    assert ended(slurm, commands, **fields).msg == told


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


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"State": "COMPLETED"},
            {
                "cpu used": "12 % of 8 cpu: 1 would have been enough",
                "memory used": "500M of 4G, 12 %: 600M would have been enough",
            },
        ),
        # One CPU a node is the least.
        (
            {"State": "COMPLETED", "NNodes": "6", "AllocTRES": "cpu=8,mem=700M,node=6"},
            {"cpu used": "12 % of 8 cpu: 6 would have been enough", "memory used": "500M of 700M, 71 %"},
        ),
        # A job that did not get far may need more the next time.
        ({"State": "COMPLETED", "ElapsedRaw": "59"}, {"cpu used": "21 % of 8 cpu", "memory used": "500M of 4G, 12 %"}),
        ({"State": "TIMEOUT"}, {"cpu used": "12 % of 8 cpu", "memory used": "500M of 4G, 12 %"}),
    ],
)
def test_what_would_have_been_enough(slurm, commands, fields, told):
    step = {"JobIDRaw": "7.0", "JobName": "train", "MaxRSS": "500M", "NTasks": "1", "TotalCPU": "01:39.000"}
    described = ended(slurm, commands, step, **{"NCPUS": "8", "AllocTRES": "cpu=8,mem=4G,node=1", **fields})
    assert {name: described.metadata[name] for name in told} == told


@pytest.mark.parametrize("missing", ["folder", "output"])
def test_a_job_that_could_not_be_launched(slurm, commands, tmp_path, missing):
    commands.queue({
        "State": "FAILED", "exit_code": "0:53", "WorkDir": str(tmp_path / "no" if missing == "folder" else tmp_path),
        "STDOUT": str(tmp_path / "no" / "out"),
    })  # fmt: skip
    described = slurm.describe("7")
    assert described is not None
    assert described.msg == (
        f"it could not be launched: the folder {tmp_path / 'no'} does not exist: create it, or choose another one"
    )


def test_job_in_a_folder_that_cannot_be_checked(slurm, commands):
    folder = "/" + "x" * 300
    commands.queue({"State": "FAILED", "exit_code": "0:53", "WorkDir": folder, "STDOUT": f"{folder}/out"})
    described = slurm.describe("7")
    assert described is not None
    assert described.msg.startswith(f"it could not be launched: its folder {folder}")


def test_what_srun_says_of_its_tasks(slurm, commands, tmp_path):
    (tmp_path / "slurm-7.out").write_text(
        "noise\nsrun: error: n1: task 0: Exited with exit code 4\nsrun: error: Unable to open file: no space left\n"
    )
    commands.queue({"State": "FAILED", "exit_code": "4:0", "WorkDir": str(tmp_path), "STDOUT": "slurm-%j.out"})
    described = slurm.describe("7")
    assert described is not None
    assert described.msg == "exit 4: Unable to open file: no space left"
    assert described.roles_statuses[0].replicas[0].exit_code == 4


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("768", "exit 3"),
        ("9", "killed by SIGKILL"),
        ("139", "killed by SIGSEGV"),
        ("3:0", "exit 3"),
        ("0:9", "killed by SIGKILL"),
    ],
)
def test_exit_codes_of_squeue(slurm, commands, status, told):
    # Before 23.02 it prints the raw status of wait().
    commands.queue({"State": "FAILED", "exit_code": status})
    described = slurm.describe("7")
    assert described is not None
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


def test_nobody_knows_how_it_ended(slurm, commands):
    commands.queue({})
    commands.answer("sacct")
    assert slurm.list()[0].state is AppState.RUNNING
    commands.queue()
    (row,) = slurm.list()
    assert row.state is AppState.UNKNOWN
    assert row.msg == "it has left the queue, and accounting does not say how it ended"


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
        described = slurm.describe("7")
        assert described is not None
        assert described.metadata["earlier runs"] == "NODE_FAIL on n3 after 5m, PREEMPTED on n2"
    assert len([call for call in commands.calls("sacct") if "--duplicates" in call]) == 1


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            "cpu=00:01:00,gres/gpumem=62G,gres/gpuutil=340",
            {"gpu used": "85 % of 4 gpu", "gpu memory used": "62G in all tasks"},
        ),
        ("gres/gpuutil=12", {"gpu used": "3 % of 4 gpu: ask for fewer GPUs, or give them more to do"}),
        # Processes of several tasks on a GPU count each.
        ("gres/gpuutil=900", {"gpu used": "100 % of 4 gpu"}),
        ("cpu=00:01:00,mem=5M", {}),
        ("gres/gpuutil=,gres/gpumem=garbage", {}),
    ],
)
def test_gpu_efficiency(slurm, commands, usage, expected):
    tres = "cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1"
    commands.accounted(
        {"AllocTRES": tres},
        {"JobIDRaw": "7.0", "JobID": "7.0", "JobName": "python", "NTasks": "1", "TRESUsageInTot": usage},
    )
    described = slurm.describe("7")
    assert described is not None
    assert {name: value for name, value in described.metadata.items() if name.startswith("gpu")} == expected
