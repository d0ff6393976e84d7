"""Jobs on a real cluster of the module's own: roles, arrays, retries, ends of every kind, actions, and outages."""

import re
import sys
import threading
import time
from importlib.util import find_spec
from typing import Any

import pexpect
import pytest
from support.background import in_background
from support.docker_registry import free_port
from support.services import NoServiceError
from support.slurm_cluster import HAS_MEMORY_LIMITS, private_slurm
from support.terminal import Terminal
from support.waiting import CLUSTER_PATIENCE, PATIENCE, TORCH_PATIENCE, wait_until

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm import usage
from torchx_tui.backends.slurm.commands import run
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.types import Stream
from torchx_tui.diagnosis.stacks.collect import take_snapshot
from torchx_tui.diagnosis.stacks.conclusion import conclude
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role, macros
from torchx_tui.specs.status import AppState

pytestmark = pytest.mark.slow

SMALL, LARGE = Resource(cpu=1, gpu=0, memMB=64), Resource(cpu=1, gpu=0, memMB=500)


def role(script, name="worker", **changes):
    changes.setdefault("resource", SMALL)
    return Role(name, "", entrypoint="sh", args=["-c", script], **changes)


def in_state(slurm, app_id, *states):
    """Wait until a job is in one of these states."""

    def look():
        described = slurm.describe(app_id)
        return described if described.state in states else None

    try:
        return wait_until(look, f"{app_id} is {states}", CLUSTER_PATIENCE)
    except AssertionError as error:
        known = [run(command).out for command in (["scontrol", "show", "job", app_id], ["sinfo", "-R"])]
        raise AssertionError("\n".join([str(error), *known])) from error


def end_of(slurm, app_id):
    return in_state(slurm, app_id, AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED)


def lines(slurm, app_id, name="worker", k=0, **more):
    return list(slurm.log_iter(app_id, name, k, **more))


# Launching


def test_four_replicas_on_two_nodes(real):
    script = f"echo {macros.replica_id} of {macros.app_id} on $SLURMD_NODENAME, first on $${macros.rank0_env}"
    app_id = real.submit(
        AppDef("job", [role(script, num_replicas=4)]), {"nodes": "2", "sbatch_args": ["--ntasks-per-node=2"]}
    )
    described = end_of(real, app_id)
    assert described.state is AppState.SUCCEEDED
    assert [replica.exit_code for replica in described.roles_statuses[0].replicas] == [0] * 4
    told = [lines(real, app_id, k=k) for k in range(4)]
    nodes = {line.split()[4].rstrip(",") for (line,) in told}
    assert len(nodes) == 2
    assert [line.split()[:3] for (line,) in told] == [[str(k), "of", app_id] for k in range(4)]


def test_roles_that_differ_in_resources_are_one_job(real):
    large = Resource(cpu=2, gpu=0, memMB=64)
    script = f"echo {macros.replica_id} of {macros.app_id}"
    app = AppDef("het", [role(script, "a", num_replicas=2), role(script, "b", resource=large), role(script, "c")])
    app_id = real.submit(app, {})
    described = end_of(real, app_id)
    assert described.state is AppState.SUCCEEDED
    assert [(status.role, len(status.replicas)) for status in described.roles_statuses] == [
        ("a", 2),
        ("b", 1),
        ("c", 1),
    ]
    for name, k in (("a", 0), ("a", 1), ("b", 0), ("c", 0)):
        assert lines(real, app_id, name, k) == [f"{k} of {app_id}\n"]
    assert [row.replicas_wanted for row in real.list() if row.app_id == app_id] == [4]
    assert str(int(app_id) + 1) not in {row.app_id for row in real.list()}


def test_an_array(real):
    app_id = real.submit(
        AppDef("job", [role(f"echo task {macros.replica_id}; exit {macros.replica_id}")]), {"array": "0-3%2"}
    )
    described = end_of(real, app_id)
    assert described.state is AppState.FAILED
    (status,) = described.roles_statuses
    assert [(replica.id, replica.exit_code) for replica in status.replicas] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert [lines(real, app_id, k=k) for k in range(4)] == [[f"task {k}\n"] for k in range(4)]
    (row,) = [row for row in real.list() if row.app_id == app_id]
    assert (row.replicas_wanted, row.replicas_succeeded, row.name) == (4, 1, "job")


def test_a_retry_keeps_the_log(real, tmp_path):
    script = 'echo run "${SLURM_RESTART_COUNT:-0}"; [ -n "$SLURM_RESTART_COUNT" ] || exit 7'
    app_id = real.submit(AppDef("job", [role(script.replace("$", "$$"), max_retries=1)]), {})
    # It is read on while it is queued again.
    wait_until(lambda: lines(real, app_id)[:1] == ["run 0\n"], "the first run")
    reading = in_background(lambda: lines(real, app_id, should_tail=True))
    described = end_of(real, app_id)
    assert (described.state, described.num_restarts) == (AppState.SUCCEEDED, 1)
    assert reading.result(PATIENCE) == ["run 0\n", "run 1\n"]


# Ends


def test_each_replica_says_how_it_ended(real):
    script = f"[ {macros.replica_id} = 0 ] || sleep 600; kill -9 $$$$"
    app_id = real.submit(AppDef("job", [role(script, num_replicas=2)]), {})
    described = end_of(real, app_id)
    assert described.state is AppState.FAILED
    first, second = described.roles_statuses[0].replicas
    assert (first.signal, second.state) == ("SIGKILL", AppState.FAILED)
    assert "SIGKILL" in described.msg


def test_one_role_that_fails_ends_the_others(real):
    app_id = real.submit(AppDef("job", [role("sleep 600", "a"), role("exit 3", "b")]), {})
    described = end_of(real, app_id)
    assert described.state is AppState.FAILED
    assert described.msg.startswith("exit 3")


def add_daemon(cluster):
    """Let the user daemon submit jobs, and cancel those of others; Slurm 26.05 refuses the user nobody."""
    if not cluster.run("sacctmgr", "-n", "show", "user", "daemon"):
        cluster.run("sacctmgr", "-i", "add", "user", "daemon", "account=root", "adminlevel=admin")


_ENDS = {
    "code": ("exit 3", "exit 3"),
    "signal": ("kill -9 $$", "killed by SIGKILL"),
    "limit": ("echo begun; sleep 600", "its time limit of 1m was reached: ask for more time"),
    "node": ("echo begun; sleep 600", r"(?:a node failed \(it ran on n3\)|the node n3 failed): launch it again"),
    "other": ("sleep 600", r"cancelled by daemon after \d+s"),
    "again": (
        '[ -n "$SLURM_RESTART_COUNT" ] || scontrol requeue $SLURM_JOB_ID; sleep 5',
        r"earlier runs +REQUEUED on n\d",
    ),
    "busy": ("timeout 3 sh -c 'while :; do :; done'; true", r"cpu used +\d+ % of 2 cpu"),
}
"""What a script does, and what its job says of its end."""
_OPTIONS = {
    "limit": ["--time=1"],
    "node": ["--no-requeue", "--nodelist=n3"],
    "again": ["--requeue"],
    "busy": ["--cpus-per-task=2"],
}


def test_every_end_is_said_on_the_screen(cluster, tmp_path):
    add_daemon(cluster)
    ids = {
        name: cluster.run("sbatch", "--parsable", f"--job-name={name}-end", *_OPTIONS.get(name, []), f"--wrap={script}")
        for name, (script, _) in _ENDS.items()
    }

    def running(name):
        return cluster.run("squeue", "-h", "-o", "%T", "-j", ids[name]) == "RUNNING"

    wait_until(lambda: running("node") and running("other"), "what is ended from outside")
    cluster.stop("slurmd-n3")
    cluster.run("scontrol", "update", "nodename=n3", "state=down", "reason=no answer")
    # Accounting tells the controller of an administrator a moment later.
    cancel = ("runuser", "-u", "daemon", "--", "scancel", ids["other"])
    wait_until(lambda: cluster.run(*cancel, "--verbose") is not None and not running("other"), "its end")
    with Terminal() as app:
        for name in sorted(ids, key="limit".__eq__):
            app.wait("STATE")
            app.press("/", f"{name}-end", "enter")
            app.wait(rf"^  +. \w+ +{name}-end")
            app.press("enter")
            # The row has the words, too.
            app.wait(rf"Jobs +›  {name}-end")
            # Slurm enforces time limits with a delay of up to two minutes.
            app.wait(_ENDS[name][1], PATIENCE + (120.0 if name == "limit" else 0.0))
            if name == "limit":
                app.wait("DUE TO TIME LIMIT")
            app.press("escape")
            app.wait("STATE")
            app.press("escape")
        app.press("q")
        assert app.wait_for_end() == 0


@pytest.mark.skipif(not HAS_MEMORY_LIMITS, reason="needs control groups of version 1")
def test_a_job_that_ran_out_of_memory(require, monkeypatch, tmp_path):
    """On a cluster of its own: jobs of two clusters would have the same control groups."""
    try:
        with private_slurm("TaskPlugin=task/cgroup\n") as cluster:
            monkeypatch.setenv("SLURM_CONF", cluster.settings)
            monkeypatch.chdir(tmp_path)
            command = f"--wrap={sys.executable} -c 'bytearray(200_000_000)'"
            cluster.run("sbatch", "--parsable", "--job-name=large", "--mem=30M", command)
            with Terminal() as app:
                app.wait(r"Failed +large")
                app.press("enter")
                app.wait(r"Jobs +›  large")
                app.wait("out of memory: it used more than the 30M that it asked for")
                app.press("q")
                assert app.wait_for_end() == 0
    except NoServiceError as error:
        require("slurm", False, str(error))


def test_a_folder_that_is_missing(real, cluster):
    # Slurm 24.11 makes a folder that is missing; it cannot make this one.
    app_id = cluster.run("sbatch", "--parsable", "--output=/proc/none/out", "--wrap=true")
    described = end_of(real, app_id)
    assert described.msg == (
        "it could not be launched: the folder /proc/none does not exist: create it, or choose another one"
    )


def test_somebody_else_cancelled_it(real, cluster):
    add_daemon(cluster)
    submit = (
        "runuser",
        "-u",
        "daemon",
        "--",
        "sbatch",
        "--parsable",
        "--output=/dev/null",
        "--chdir=/",
        "--wrap=sleep 600",
    )
    # Accounting tells the controller of the user a moment later.
    show = ("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc")
    wait_until(lambda: "UserName=daemon" in cluster.run(*show), "the user")
    app_id = cluster.run(*submit)
    in_state(real, app_id, AppState.RUNNING)
    assert app_id not in {row.app_id for row in real.list()}
    everybody = SlurmScheduler("torchx", all_users=True, quick_interval=0.2)
    assert {row.app_id: row.user for row in everybody.list()}[app_id] == "daemon"
    real.cancel(app_id)
    described = end_of(real, app_id)
    # Accounting hears of it a moment later than the controller.
    wait_until(lambda: "cancelled by root" in getattr(real.describe(app_id), "msg", ""), "who cancelled it")
    assert (described.state, described.user) == (AppState.CANCELLED, "daemon")


def test_accounting_knows_what_has_left_the_queue(real, cluster):
    app_id = real.submit(AppDef("job", [role("sleep 2; exit 3")]), {})
    end_of(real, app_id)
    # The controller forgets it, see MinJobAge.
    listed = lambda: cluster.run("squeue", "-h", "-t", "all", "-o", "%i").split()  # noqa: E731
    wait_until(lambda: app_id not in listed(), "it is gone", CLUSTER_PATIENCE)
    later = SlurmScheduler("torchx", quick_interval=0.2)
    described: Any = later.describe(app_id)
    assert (described.state, described.msg, described.name) == (AppState.FAILED, "exit 3", "job")
    assert described.metadata["cpu used"].endswith("of 1 cpu")


# Scripts of the user's

SCRIPT = """#!/bin/bash
#SBATCH --output=%x-%j.log
#SBATCH --time=5
echo "script of $SLURM_JOB_NAME with $TOKEN"
"""


@pytest.fixture
def runner(cluster, tmp_path):
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params={"slurm": {"quick_interval": 0.2}}) as made:
        yield made


def test_a_script_of_the_users_is_read_and_launched_again(runner, real, cluster, tmp_path):
    (tmp_path / "train.sbatch").write_text(SCRIPT)
    app_id = cluster.run("sbatch", "--parsable", "--job-name=odd name", "train.sbatch")
    end_of(real, app_id)
    assert lines(real, app_id, "batch") == ["script of odd name with \n"]
    assert real.log_files(app_id, "batch", 0)[Stream.STDOUT] == tmp_path / f"odd name-{app_id}.log"
    # Accounting, which has the sbatch command, lags behind.
    wait_until(lambda: real.describe(app_id).roles, "its sbatch command")
    again = runner.relaunch(f"slurm://torchx/{app_id}").rpartition("/")[2]
    assert again != app_id
    described = end_of(real, again)
    assert (described.name, described.state) == ("odd name", AppState.SUCCEEDED)
    assert lines(real, again, "batch") == ["script of odd name with \n"]
    # The script is as it was.
    assert cluster.run("scontrol", "write", "batch_script", again, "-") == SCRIPT.strip()


# Actions


def test_hold_release_and_another_limit(real):
    app_id = real.submit(AppDef("job", [role("sleep 600")]), {"begin": "now+1hour"})
    in_state(real, app_id, AppState.PENDING)
    assert [action.name for action in real.actions(app_id)] == ["hold", "limit"]
    real.act(app_id, "hold")
    described = in_state(real, app_id, AppState.PENDING)
    # Who runs the tests as root is an administrator.
    assert re.fullmatch(
        r"it is held by (?:its user: release it|an administrator: ask them to release it)", described.msg
    )
    real.act(app_id, "limit", "30")
    real.act(app_id, "release")
    # The scheduler looks at it a moment later.
    wait_until(lambda: "it may start at" in in_state(real, app_id, AppState.PENDING).msg, "the reason")
    described = in_state(real, app_id, AppState.PENDING)
    assert described.metadata["time limit"] == "30m"
    with pytest.raises(SchedulerError, match="is not a time"):
        real.act(app_id, "limit", "soon; rm")
    with pytest.raises(SchedulerError, match="is not possible now"):
        real.act(app_id, "requeue")
    real.cancel(app_id)
    assert real.actions(app_id) == []


def test_signal_requeue_and_a_shell(real, cluster):
    # The end of the batch script sends TERM to the tasks, maybe before they have looked at the signal.
    script = "trap '' TERM; trap 'echo told' USR1; echo run; while :; do sleep 0.1; done"
    app_id = real.submit(AppDef("job", [role(script)]), {})
    wait_until(lambda: lines(real, app_id) == ["run\n"], "the first line")
    in_state(real, app_id, AppState.RUNNING)
    real.act(app_id, "signal", "USR1")
    # The batch script does not trap it, and its end is the job's.
    wait_until(lambda: "told\n" in lines(real, app_id), "the signal")
    app_id = real.submit(AppDef("job", [role(script)]), {})
    wait_until(lambda: lines(real, app_id) == ["run\n"], "the first line")
    in_state(real, app_id, AppState.RUNNING)
    command = real.shell_command(app_id, "worker", 0)
    shell = pexpect.spawn(command[0], command[1:], timeout=PATIENCE, encoding="utf-8")
    shell.sendline("echo in=$SLURM_JOB_ID; test -t 0 && echo is-a-terminal")
    shell.expect(f"in={app_id}")
    shell.expect("is-a-terminal")
    shell.sendline("exit")
    shell.expect(pexpect.EOF)
    real.act(app_id, "requeue")
    wait_until(lambda: lines(real, app_id, streams=Stream.STDOUT) == ["run\n", "run\n"], "the second run")
    assert in_state(real, app_id, AppState.RUNNING).num_restarts == 1
    # Accounting hears of it a moment later.
    runs = wait_until(lambda: in_state(real, app_id, AppState.RUNNING).metadata.get("earlier runs"), "the first run")
    assert re.match(r"REQUEUED on n\d", runs)
    real.cancel(app_id)


def test_usage(real, monkeypatch):
    monkeypatch.setattr(usage, "KEPT_S", 1.0)
    busy, idle = role("while :; do :; done", "busy"), role("sleep 600", "idle", num_replicas=2)
    app_id = real.submit(AppDef("job", [idle, busy]), {})
    in_state(real, app_id, AppState.RUNNING)

    def measured():
        found = {(used.role, used.replica): used for used in real.usage(app_id)}
        return found if any((used.cpu or 0) > 0.05 for used in found.values()) else {}

    found = wait_until(measured, "what they use")
    assert {*found} == {("busy", 0), ("idle", 0), ("idle", 1)}
    assert found["busy", 0].cpu > found["idle", 0].cpu
    assert 0 < found["idle", 1].memory < found["idle", 1].memory_total == 64 << 20
    assert found["busy", 0].cpu_total == 1
    real.cancel(app_id)


# Outages and politeness


def test_the_controller_is_away_for_a_while(real, cluster):
    app_id = real.submit(AppDef("job", [role("for i in $$(seq 200); do echo $$i; sleep 0.1; done")]), {})
    told = []
    wait_until(lambda: lines(real, app_id), "the first line")

    stream = real.log_iter(app_id, "worker", should_tail=True)

    def read():
        # As the log pane does: what breaks off is taken up again.
        while len(told) < 200:
            try:
                for line in stream:
                    told.append(line)
                return
            except BackendUnavailableError:
                time.sleep(0.2)

    reader = threading.Thread(target=read)
    reader.start()
    cluster.stop("slurmctld")
    with pytest.raises(BackendUnavailableError, match=r"Slurm does not answer|did not answer"):
        wait_until(lambda: real.list() and False, "the outage")
    cluster.start()
    # The job starts 200 processes, which takes 20 seconds where nothing else runs.
    assert wait_until(lambda: _described(real, app_id), "the end", CLUSTER_PATIENCE).state is AppState.SUCCEEDED
    reader.join(PATIENCE)
    assert told == [f"{number}\n" for number in range(1, 201)]


def _described(slurm, app_id):
    try:
        described = slurm.describe(app_id)
    except BackendUnavailableError:
        return None
    return described if described is not None and described.has_ended else None


def test_accounting_is_away(real, cluster):
    cluster.stop("slurmdbd")
    app_id = real.submit(AppDef("job", [role("exit 3")]), {})
    assert end_of(real, app_id).msg == "exit 3"
    assert app_id in {row.app_id for row in real.list()}


def test_three_sessions_ask_the_controller_as_often_as_one(cluster, own_home):
    sessions = [SlurmScheduler("torchx") for _ in range(3)]
    sessions[0].list()
    # The srun of an ending job asks the controller as well.
    cluster.run("scancel", "--me")
    wait_until(lambda: not cluster.run("squeue", "--me", "--noheader"), "the end of the jobs before", CLUSTER_PATIENCE)
    cluster.run("sdiag", "--reset")
    end = time.monotonic() + 61
    while time.monotonic() < end:
        for session in sessions:
            session.list()
        time.sleep(0.5)
    asked = dict(re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\) count:(\d+)", cluster.run("sdiag")))
    assert int(asked.get("REQUEST_JOB_INFO", 0)) + int(asked.get("REQUEST_JOB_USER_INFO", 0)) <= 7
    assert {*asked} <= {"REQUEST_JOB_INFO", "REQUEST_JOB_USER_INFO", "REQUEST_PARTITION_INFO", "REQUEST_STATS_INFO"} | {
        # What the cluster's own nodes send, and who looks after them.
        name
        for name in asked
        if any(word in name for word in ("NODE_REGISTRATION", "UPDATE_NODE", "PING", "COMPLETE"))
    }


_HANG = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(5):
    if step == 3 and dist.get_rank() == 1:
        time.sleep(3600)
    dist.all_reduce(torch.ones(4))
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install torch")
def test_the_rank_that_holds_up_the_others_is_named(runner, tmp_path):
    (tmp_path / "hang.py").write_text(_HANG)
    env = {"RANK": macros.replica_id, "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    made = Role("trainer", "", entrypoint=sys.executable, args=["hang.py"], env=env, num_replicas=4, resource=LARGE)
    handle = runner.run(AppDef("job", [made]), "slurm", {"nodes": "2", "sbatch_args": ["--ntasks-per-node=2"]})

    taken = []

    def conclusion():
        try:
            taken.append(take_snapshot(runner, handle))
        except SchedulerError:  # it is still pending
            return None
        found = conclude(taken[-1], taken[-2] if len(taken) > 1 else None)
        return found if found.finding else None

    found = wait_until(conclusion, "the rank is named", TORCH_PATIENCE)
    assert found.blocking == (1,)
    assert len(taken[-1].ranks) == 4
    runner.job(handle).cancel()
