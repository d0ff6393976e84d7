"""How jobs ended by what srun, slurmstepd and shells wrote, as recorded on Slurm 22.05, 24.11 and 26.05."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from torchx_tui.backends.slurm import scheduler
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

FAILED = {"State": "FAILED", "ReqMem": "60M", "AllocTRES": "cpu=1,mem=60M,node=1"}
STEP = {"JobIDRaw": "7.0", "JobName": "python3", "NTasks": "1", "State": "OUT_OF_MEMORY", "ExitCode": "0:125"}
MORE_MEMORY = "it used more than the 60M that it asked for: ask for more memory"


def described(slurm: SlurmScheduler, app_id: str = "7") -> DescribeAppResponse:
    found = slurm.describe(app_id)
    assert found is not None
    return found


def ends(found: DescribeAppResponse) -> dict[str, list[tuple[int | None, str, str]]]:
    """Return exit code, signal and reason of each replica, by role."""
    return {
        status.role: [(replica.exit_code, replica.signal, replica.reason) for replica in status.replicas]
        for status in found.roles_statuses
    }


@pytest.mark.parametrize(
    ("code", "log", "message"),
    [
        # 24.11, and 26.05 with the time in the place of the name.
        (
            "2",
            "srun: error: n3: task 0: Exited with exit code 2\n"
            "slurmstepd-n3: error: execve(): /nosuch/binary: No such file or directory\n",
            "exit 2: it could not be started: /nosuch/binary: No such file or directory: check the path on the node",
        ),
        (
            "2",
            "[2026-11-26T14:31:12.781] error: execve(): /nosuch/binary: No such file or directory\n"
            "srun: error: n2: task 0: Exited with exit code 2\n",
            "exit 2: it could not be started: /nosuch/binary: No such file or directory: check the path on the node",
        ),
        (
            "2",
            "[2026-11-26T14:31:12.090] error: execve(): bad interpreter(/usr/bin/nosuchpython): "
            "No such file or directory\n",
            "exit 2: it could not be started: bad interpreter(/usr/bin/nosuchpython): No such file or directory: "
            "check the path on the node",
        ),
        (
            "127",
            "/srv/spool/n3/job00110/slurm_script: 4: torchrunx: not found\n",
            "exit 127: no command torchrunx: load its module or activate its environment in the script",
        ),
        (
            "127",
            "srun: error: n1: task 1: Exited with exit code 3\n"
            "[2026-11-27T00:29:26.318] error: execve(): /nosuch/binary: No such file or directory\n"
            "/srv/spool/n1/job00016/slurm_script: line 5: torchrunx: command not found\n",
            "exit 127: no command torchrunx: load its module or activate its environment in the script",
        ),
        # A task is blamed for the end of the script only if that has its code.
        ("5", "srun: error: n1: task 0: Exited with exit code 3\nsrun: error: n1: task 1: Killed\n", "exit 5"),
        (
            "17",
            "srun: error: n1: task 2: Exited with exit code 17\nsrun: Terminating StepId=104.0\n"
            "slurmstepd-n1: error: *** STEP 104.0 ON n1 CANCELLED AT 2026-11-26T14:31:11 ***\n"
            "srun: error: n1: tasks 0-1: Terminated\n",
            "task 2: exit 17",
        ),
    ],
)
def test_message_of_a_log(slurm, commands, tmp_path, code, log, message):
    (tmp_path / "slurm-7.out").write_text(f"start\n{log}")
    commands.accounted({**FAILED, "ExitCode": f"{code}:0", "WorkDir": str(tmp_path), "StdOut": "slurm-%j.out"})
    assert described(slurm).msg == message


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
    found = described(slurm)
    assert found.msg == f"out of memory: {MORE_MEMORY}"
    assert ends(found) == {"batch": [(None, "SIGKILL", "out of memory")]}


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
    assert described(slurm).msg == message


@pytest.mark.parametrize("status", ["125", "0:125"])
def test_out_of_memory_of_a_step_in_the_queue(slurm, commands, status):
    commands.queue({"State": "FAILED", "exit_code": "1:0", "DerivedEC": status, "tres-alloc": "mem=60M"})
    assert slurm.list()[0].msg == f"out of memory: {MORE_MEMORY}"


def test_another_exit_code_stays_beside_the_memory(slurm, commands):
    commands.accounted({**FAILED, "ExitCode": "5:0", "DerivedExitCode": "0:125"})
    assert slurm.list()[0].msg == f"exit 5: out of memory: {MORE_MEMORY}"


def test_a_job_that_ran_out_of_memory_says_so_of_its_replica(slurm, commands):
    commands.accounted({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"})
    assert ends(described(slurm)) == {"batch": [(None, "SIGKILL", "out of memory")]}


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
    assert ends(described(slurm)) == {
        "batch": [(127, "", "exit 127")],
        # Nothing tells how its first task ended.
        "step0": [(None, "", "a task of a: exit 3"), (3, "", "exit 3")],
        "step1": [(7, "", "exit 7")],
        "step2": [(2, "", "exit 2")],
    }


@pytest.mark.parametrize(
    ("log", "reader", "expected"),
    [
        # Both steps were ended by signals; the same srun names its step next.
        (
            "srun: error: n1: task 1: Exited with exit code 3\nsrun: Terminating StepId=7.0\n",
            {"State": "CANCELLED", "ExitCode": "0:15"},
            {"trainer": [(None, "", ""), (3, "", "exit 3")], "reader": [(None, "", ""), (None, "", "")]},
        ),
        (
            "srun: error: n1: task 1: Exited with exit code 3\n",
            {"State": "COMPLETED", "ExitCode": "0:0"},
            {"trainer": [(None, "", ""), (3, "", "exit 3")], "reader": [(0, "", ""), (0, "", "")]},
        ),
        # Either may have ended so: nothing is claimed.
        (
            "srun: error: n1: task 1: Exited with exit code 3\n",
            {"State": "FAILED", "ExitCode": "4:0"},
            {"trainer": [(None, "", "")] * 2, "reader": [(None, "", "")] * 2},
        ),
    ],
)
def test_tasks_of_several_roles(
    slurm,
    commands,
    tmp_path,
    log,
    reader,
    expected,
):
    roles = [Role(name, "", entrypoint="true", num_replicas=2) for name in ("trainer", "reader")]
    slurm.submit(AppDef("job", roles), {"job_dir": str(tmp_path)})
    (comment,) = (option for option in commands.calls("sbatch")[-1] if option.startswith("--comment="))
    (tmp_path / "slurm-7.out").write_text(log)
    commands.queue()
    job = {**FAILED, "ExitCode": "3:0", "Comment": comment.partition("=")[2], "WorkDir": str(tmp_path)}
    commands.accounted(
        {**job, "StdOut": "slurm-%j.out"},
        {"JobIDRaw": "7.0", "JobName": "trainer", "NTasks": "2", "State": "FAILED", "ExitCode": "3:0"},
        {"JobIDRaw": "7.1", "JobName": "reader", "NTasks": "2", **reader},
    )
    assert ends(described(slurm)) == expected


@pytest.mark.parametrize(
    ("job", "message"),
    [
        # squeue shows an end that is the start; accounting has no start, and not the reason.
        (
            {"Reason": "JobHeldUser", "StartTime": "1795258010", "EndTime": "1795258010"},
            "cancelled while it waited",
        ),
        (
            {"Reason": "DependencyNeverSatisfied", "Dependency": "afterok:12(failed)", "EndTime": "1795258010"},
            "Slurm cancelled it: its dependency afterok:12(failed) can no longer be satisfied: launch it again "
            "without it",
        ),
    ],
)
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
    without_rights: list[str] = []
    if os.geteuid() == 0:
        os.chown(restricted, 65534, 65534)
        capabilities = "-dac_override,-dac_read_search"
        without_rights = ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
    restricted.chmod(0o700 if without_rights else 0)
    failed = {"State": "FAILED", "exit_code": "0:53", "WorkDir": str(restricted / "logs")}
    commands.queue({**failed, "JobID": "7", "STDOUT": str(restricted / "logs" / "%N-%j.out")}, {"JobID": "8"})
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
