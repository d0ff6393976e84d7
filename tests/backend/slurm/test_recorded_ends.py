"""How jobs ended by what srun, slurmstepd and shells wrote, as recorded on Slurm 22.05, 24.11 and 26.05."""

import json
import os
import subprocess
import sys

import pytest
from support.tables import tables

from torchx_tui.backends.slurm import scheduler
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

table = tables(__file__)

FAILED = {"State": "FAILED", "ReqMem": "60M", "AllocTRES": "cpu=1,mem=60M,node=1"}
STEP = {"JobIDRaw": "7.0", "JobName": "python3", "NTasks": "1", "State": "OUT_OF_MEMORY", "ExitCode": "0:125"}
MORE_MEMORY = "it used more than the 60M that it asked for: ask for more memory"


def ends(found):
    """Return exit code, signal and reason of each replica, by role."""
    return {
        status.role: [[replica.exit_code, replica.signal, replica.reason] for replica in status.replicas]
        for status in found.roles_statuses
    }


@table("message of a log", "code log message")
def test_message_of_a_log(slurm, commands, tmp_path, code, log, message):
    (tmp_path / "slurm-7.out").write_text(f"start\n{log}")
    commands.accounted({**FAILED, "ExitCode": f"{code}:0", "WorkDir": str(tmp_path), "StdOut": "slurm-%j.out"})
    assert slurm.describe("7").msg == message


@pytest.mark.parametrize(
    "log",
    [
        # 22.05, 24.11, 26.05.
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have been killed "
        "by the cgroup out-of-memory handler.\nsrun: error: n1: task 0: Out Of Memory\n",
        "slurmstepd-n1: error: Detected 1 oom_kill event in StepId=2211.0. Some of the step tasks have been OOM Killed."
        "\nsrun: error: n1: task 0: Out Of Memory\n",
        "[2026-11-26T15:00:26.818] error: Detected 1 oom_kill event in StepId=268.0. Some of the step tasks have been "
        "OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n",
    ],
)
def test_out_of_memory_by_the_log(slurm, commands, tmp_path, log):
    (tmp_path / "slurm-7.out").write_text(log)
    job = {"State": "FAILED", "exit_code": "1:0", "tres-alloc": "cpu=1,mem=60M", "WorkDir": str(tmp_path)}
    commands.queue({**job, "STDOUT": "slurm-%j.out"})
    found = slurm.describe("7")
    assert found.msg == f"out of memory: {MORE_MEMORY}"
    assert ends(found) == {"batch": [[None, "SIGKILL", "out of memory"]]}


@pytest.mark.parametrize(
    ("max_rss", "message"),
    [
        ("", f"out of memory in step 0 (python3): {MORE_MEMORY}"),
        (
            "59M",
            "out of memory in step 0 (python3): 59M was measured in one task, of the 60M that it asked for: "
            "ask for more memory",
        ),
    ],
)
def test_out_of_memory_by_accounting(slurm, commands, max_rss, message):
    commands.accounted({**FAILED, "ExitCode": "1:0", "DerivedExitCode": "0:125"}, {**STEP, "MaxRSS": max_rss})
    (row,) = slurm.list()
    assert row.msg == f"out of memory: {MORE_MEMORY}"
    assert slurm.describe("7").msg == message


@pytest.mark.parametrize("status", ["125", "0:125"])
def test_out_of_memory_of_a_step_in_the_queue(slurm, commands, status):
    commands.queue({"State": "FAILED", "exit_code": "1:0", "DerivedEC": status, "tres-alloc": "mem=60M"})
    assert slurm.list()[0].msg == f"out of memory: {MORE_MEMORY}"


def test_another_exit_code_stays_beside_the_memory(slurm, commands):
    commands.accounted({**FAILED, "ExitCode": "5:0", "DerivedExitCode": "0:125"})
    assert slurm.list()[0].msg == f"exit 5: out of memory: {MORE_MEMORY}"


def test_a_job_that_ran_out_of_memory_says_so_of_its_replica(slurm, commands):
    commands.accounted({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"})
    assert ends(slurm.describe("7")) == {"batch": [[None, "SIGKILL", "out of memory"]]}


STEPS = (
    {**FAILED, "ExitCode": "127:0", "DerivedExitCode": "7:0"},
    {"JobIDRaw": "7.batch", "JobName": "batch"},
    {"JobIDRaw": "7.0", "JobName": "a", "NTasks": "2", "State": "FAILED", "ExitCode": "3:0"},
    {"JobIDRaw": "7.1", "JobName": "b", "NTasks": "1", "State": "FAILED", "ExitCode": "7:0"},
    {"JobIDRaw": "7.2", "JobName": "binary", "NTasks": "1", "State": "FAILED", "ExitCode": "2:0"},
)
LOG = """srun: error: n1: task 1: Exited with exit code 3
srun: error: n1: task 0: Exited with exit code 7
srun: error: n1: task 0: Exited with exit code 2
"""


def test_tasks_of_several_steps(slurm, commands, tmp_path):
    (tmp_path / "slurm-7.out").write_text(LOG)
    (job, *steps) = STEPS
    commands.accounted({**job, "WorkDir": str(tmp_path), "StdOut": "slurm-%j.out"}, *steps)
    assert ends(slurm.describe("7")) == {
        "batch": [[127, "", "exit 127"]],
        # Nothing tells how its first task ended.
        "step0": [[None, "", "a task of a: exit 3"], [3, "", "exit 3"]],
        "step1": [[7, "", "exit 7"]],
        "step2": [[2, "", "exit 2"]],
    }


@table("several roles", "log reader expected")
def test_tasks_of_several_roles(slurm, commands, tmp_path, log, reader, expected):
    roles = [Role(name, "", entrypoint="true", num_replicas=2) for name in ("trainer", "reader")]
    slurm.submit(AppDef("job", roles), {"job_dir": str(tmp_path)})
    (tmp_path / "slurm-7.out").write_text(log)
    commands.queue()
    job = {**FAILED, "ExitCode": "3:0", "Comment": commands.comment, "WorkDir": str(tmp_path)}
    commands.accounted(
        {**job, "StdOut": "slurm-%j.out"},
        {"JobIDRaw": "7.0", "JobName": "trainer", "NTasks": "2", "State": "FAILED", "ExitCode": "3:0"},
        {"JobIDRaw": "7.1", "JobName": "reader", "NTasks": "2", **reader},
    )
    assert ends(slurm.describe("7")) == expected


@table("job that never ran in the queue", "job message")
def test_a_job_that_never_ran_in_the_queue(slurm, commands, job, message):
    commands.queue({"State": "CANCELLED", "NodeList": "", **job})
    (row,) = slurm.list()
    assert (row.state, row.msg, row.started_at) == (AppState.CANCELLED, message, None)
    with pytest.raises(Exception, match="7 was cancelled before it started: it has no log"):
        slurm.log_iter("7", "batch")


@pytest.mark.parametrize(
    ("state", "line", "message"),
    [
        ("CANCELLED by 0", "sbatch l.sh", "cancelled by root while it waited"),
        (
            "CANCELLED",
            "sbatch -J depn -d afterok:12 --kill-on-invalid-dep=yes l.sh",
            "Slurm cancelled it: its dependency afterok:12 can no longer be satisfied: launch it again without it",
        ),
        ("CANCELLED by 0", "sbatch -d afterok:12 --kill-on-invalid-dep=yes l.sh", "cancelled by root while it waited"),
    ],
)
def test_a_job_that_never_ran_in_accounting(slurm, commands, state, line, message):
    commands.accounted({"State": state, "Start": "None", "NodeList": "None assigned", "SubmitLine": line})
    assert slurm.list()[0].msg == message


def test_a_row_that_cannot_be_made_costs_itself(slurm, commands, monkeypatch):
    list_row = scheduler.list_row

    def fails_for_seven(app, *args):
        if app.app_id == "7":
            raise PermissionError(13, "Permission denied", "/restricted")
        return list_row(app, *args)

    monkeypatch.setattr(scheduler, "list_row", fails_for_seven)
    commands.queue({"JobID": "7"}, {"JobID": "8"})
    rows = {row.app_id: row.msg for row in slurm.list()}
    assert rows["7"].startswith("its record cannot be read: PermissionError")
    assert rows["8"] == ""


_LIST = """
import json
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
slurm = SlurmScheduler("torchx", interval=0, quick_interval=0)
print(json.dumps([{row.app_id: row.msg for row in slurm.list()}, slurm.describe("7").msg]))
"""


def test_a_folder_that_may_not_be_read_costs_one_row(commands, tmp_path):
    restricted = tmp_path / "restricted"
    restricted.mkdir()
    without_rights = []
    if os.geteuid() == 0:
        os.chown(restricted, 65534, 65534)
        capabilities = "-dac_override,-dac_read_search"
        without_rights = ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
    restricted.chmod(0o700 if without_rights else 0)
    failed = {"State": "FAILED", "exit_code": "0:53", "WorkDir": str(restricted / "logs")}
    commands.queue({**failed, "JobID": "7", "STDOUT": str(restricted / "logs/%N-%j.out")}, {"JobID": "8"})
    command = [*without_rights, sys.executable, "-c", _LIST]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, ended.stderr
    rows, message = json.loads(ended.stdout)
    assert rows["8"] == ""
    assert rows["7"] == message
    assert message == (
        f"it could not be launched: its folder {restricted / 'logs'}, or that of its output, cannot be used on the "
        "node n1"
    )
