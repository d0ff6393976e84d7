"""Local jobs that TorchX's own command line launched: found, read and ended by us, whichever process launched them."""

from __future__ import annotations

import importlib.util
import json
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from interop.local_jobs import LOOP, TorchXRun
from interop.oracle import hold, outcome, theirs
from interop.seen import reached, row
from support.processes import processes_of_job
from support.shell import shell
from support.waiting import wait_until

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import Stream
from torchx_tui.settings.config import Settings
from torchx_tui.specs.status import AppState

Launch = Callable[..., TorchXRun]

TWO_ROLES = """
from torchx import specs

def pair(folder: str) -> specs.AppDef:
    '''Two roles that write until they are told to end.

    Args:
        folder: is not looked at
    '''
    def role(name: str, count: int) -> specs.Role:
        script = "echo hello from " + name + "; LOOP"
        return specs.Role(name=name, image=folder, entrypoint="sh", args=["-c", script, "${replica_id}"],
                          num_replicas=count, env={"HF_TOKEN": "s3cret", "ROLE": name, "JOB": "${app_id}.$$"})
    return specs.AppDef(name="pair", roles=[role("leader", 1), role("worker", 2)])
""".replace("LOOP", LOOP)


@pytest.fixture
def torchx_run(torchx, monkeypatch, tmp_path):
    """Return what runs ``torchx run`` in the test's folder; jobs of TorchX are looked for."""
    monkeypatch.setenv("TORCHX_TUI_SHOWS_TORCHX_JOBS", "1")
    started: list[TorchXRun] = []

    def launch(*arguments: str, **options: Any) -> TorchXRun:
        started.append(TorchXRun(tmp_path, arguments, **options))
        return started[-1]

    yield launch
    for one in started:
        one.close()


@pytest.fixture
def runner(tmp_path):
    params = {**Settings().scheduler_params()["local_cwd"], "grace_seconds": 2.0}
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params={"local_cwd": params}) as made:
        yield made


@pytest.fixture
def pair(torchx_run, tmp_path):
    """Launch a job of two roles, three replicas in all."""
    (tmp_path / "jobs.py").write_text(TWO_ROLES)
    return torchx_run("jobs.py:pair", "--folder", "none")


def until_there(path: Path) -> str:
    """Return what a shell waits with until a file is there."""
    return f"while [ ! -e {path} ]; do sleep 0.1; done"


def test_listed_described_and_tailed(pair, runner):
    described = reached(runner, pair.handle, AppState.RUNNING, running=3)
    leader, worker = described.roles
    assert (leader.name, leader.num_replicas, leader.entrypoint) == ("leader", 1, "sh")
    # The values that TorchX gave macros belong to this job: a relaunch needs its own.
    assert (worker.name, worker.num_replicas, worker.args, worker.env) == (
        "worker",
        2,
        ["-c", f"echo hello from worker; {LOOP}", "${replica_id}"],
        {"HF_TOKEN": "s3cret", "ROLE": "worker", "JOB": "${app_id}.$$"},
    )
    folder = pair.logs / "torchx" / pair.app_id
    assert (described.name, described.log_dir, described.cfg) == ("pair", str(folder), {"log_dir": str(pair.logs)})
    pids = {one.pid for role in described.roles_statuses for one in role.replicas}
    assert pids <= set(processes_of_job(f"TORCHX_JOB_ID={pair.handle}"))
    found = row(runner, pair.handle)
    assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 3, 3)
    assert (found.foreign, found.msg) == (False, "")
    native = runner.job(pair.handle).describe_native()
    assert "HF_TOKEN" in native
    assert "s3cret" not in native
    wait_until(lambda: len(runner.job(pair.handle).usage()) == 3, "what three replicas use")

    for k, stream, expected in (
        (1, None, ["hello from worker\n", "line 20\n"]),
        (1, Stream.STDOUT, ["hello from worker\n", "line 20\n"]),
        (0, Stream.STDERR, ["wrong 1\n", "wrong 2\n"]),
    ):
        lines: Any = runner.job(pair.handle).log_lines("worker", k, should_tail=True, streams=stream)
        with closing(lines):
            assert [next(lines), next(line for line in lines if line == expected[1])] == expected
    files = runner.scheduler("local_cwd").log_files(pair.app_id, "leader", 0)
    assert files == {stream: folder / "leader" / "0" / f"{stream.value}.log" for stream in Stream}


def test_cancelled(pair, runner):
    reached(runner, pair.handle, AppState.RUNNING, running=3)
    tail: Any = runner.job(pair.handle).log_lines("leader", 0, should_tail=True)
    assert next(line for line in tail if line == "line 1\n")
    runner.job(pair.handle).cancel()
    assert reached(runner, pair.handle, AppState.CANCELLED).msg.startswith("cancelled by ")
    assert pair.wait() == 1  # TorchX prints that the job failed
    assert processes_of_job(f"TORCHX_JOB_ID={pair.handle}") == []
    assert row(runner, pair.handle).state is AppState.CANCELLED
    list(tail)  # it ends
    # Nothing of ours is among TorchX's files.
    folder = pair.logs / "torchx" / pair.app_id
    assert {one.name for one in folder.iterdir()} <= {"leader", "worker", "torchelastic", "SUCCESS"}
    with Runner() as another:  # that did not see it run
        assert another.job(pair.handle).describe().state is AppState.CANCELLED  # type: ignore[union-attr]


def test_what_torchx_says_of_local_jobs_is_another(pair, runner, tmp_path):
    described = reached(runner, pair.handle, AppState.RUNNING, running=3)
    specs = theirs()
    with closing(theirs("torchx.schedulers.local_scheduler").create_scheduler("torchx")) as scheduler:
        ours = [one.app_handle for one in runner.list("local_cwd") if one.app_handle == pair.handle]
        hold("local jobs", outcome(scheduler.list), ours, lambda _, ours: "list" if ours == [pair.handle] else None)
        known = scheduler.describe(pair.app_id)
        assert known is None
        hold("local jobs", known, described.state.name, lambda *_: "another process's job")
        role = specs.Role("r", "", entrypoint="sleep", args=["300"])
        app_id = scheduler.submit(specs.AppDef("theirs", [role]), {"log_dir": str(tmp_path / "logs")})
        their, our = (
            [len(one.replicas) for one in made.roles_statuses] for made in (scheduler.describe(app_id), described)
        )
        hold("local jobs", their, our, lambda *both: "replicas" if both == ([], [1, 2]) else None)


def test_one_that_ignores_sigterm_is_cancelled_too(torchx_run, runner):
    job = torchx_run("utils.sh", "sh", "-c", f"trap '' TERM; {LOOP}")
    reached(runner, job.handle, AppState.RUNNING)
    runner.job(job.handle).cancel()
    reached(runner, job.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={job.handle}") == []


def test_an_orphan(pair, runner):
    reached(runner, pair.handle, AppState.RUNNING, running=3)
    followed: Any = runner.job(pair.handle).log_lines("worker", 0, should_tail=True)
    # Which of the two streams comes first into combined.log is a race of TorchX's own.
    seen = [next(followed)]
    pair.process.send_signal(signal.SIGKILL)
    pair.wait()
    described = wait_until(
        lambda: (found := runner.job(pair.handle).describe()) and "orphaned" in found.notes and found, "an orphan"
    )
    assert described.state is AppState.RUNNING
    assert described.msg == "the torchx process that ran it has ended: how its replicas end will not be known"
    # combined.log does not grow any more; both streams do.
    after = (pair.logs / "torchx" / pair.app_id / "worker" / "0" / "stdout.log").read_text().count("\n") + 10
    for line in followed:
        seen.append(line)
        if line == f"line {after}\n":
            break
    assert "hello from worker\n" in seen
    said = [line for line in seen if line.startswith("line ")]
    assert said == [f"line {number}\n" for number in range(1, after + 1)]
    followed.close()
    lines = list(runner.job(pair.handle).log_lines("worker", 0))
    assert f"line {after}\n" in lines
    assert "wrong 1\n" in lines
    runner.job(pair.handle).cancel()
    reached(runner, pair.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={pair.handle}") == []


def test_ended_as_its_record_says(torchx_run, runner, tmp_path):
    job = torchx_run(
        "utils.sh", "--num_replicas", "2", "sh", "-c", f"echo once; {until_there(tmp_path / 'end')}; exit 3"
    )
    reached(runner, job.handle, AppState.RUNNING)
    (tmp_path / "end").touch()
    described = reached(runner, job.handle, AppState.FAILED)
    assert job.wait() == 1
    assert described.msg in ("exit 3: sh/0", "exit 3: sh/1")
    assert [one.exit_code for one in described.roles_statuses[0].replicas] == [3, 3]
    assert described.roles[0].entrypoint == "sh"
    assert list(runner.job(job.handle).log_lines("sh", 1, should_tail=True)) == ["once\n"]
    again = runner.relaunch(job.handle)
    assert reached(runner, again, AppState.FAILED).msg in ("exit 3: sh/0", "exit 3: sh/1")
    assert row(runner, again).notes == []


def test_ended_before_we_came(torchx_run, runner, tmp_path, monkeypatch):
    job = torchx_run("utils.echo", "--msg", "once", "--num_replicas", "2")
    assert job.wait() == 0
    assert row(runner, job.handle) is None  # its log folder is not known yet
    monkeypatch.delenv("TORCHXCONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".torchxconfig").write_text("[local_cwd]\nlog_dir = logs\n")
    found = wait_until(lambda: row(runner, job.handle), "the row")
    assert (found.state, found.replicas_succeeded, found.replicas_wanted) == (AppState.SUCCEEDED, 2, 2)
    assert found.finished_at >= found.started_at > time.time() - 600
    assert list(runner.job(job.handle).log_lines("echo", 1)) == ["once\n"]
    folder = job.logs / "torchx" / job.app_id
    files = [folder / "SUCCESS", folder / "echo" / "0" / "combined.log"]
    texts = [file.read_text() for file in files]
    runner.job(job.handle).delete()
    assert runner.job(job.handle).describe() is None
    assert row(runner, job.handle) is None
    assert [file.read_text() for file in files] == texts  # TorchX's folder is TorchX's


def test_in_a_folder_that_torchx_removes(torchx_run, runner, tmp_path):
    job = torchx_run("utils.sh", "sh", "-c", f"echo hello; {until_there(tmp_path / 'end')}", log_dir=False)
    described = reached(runner, job.handle, AppState.RUNNING)
    assert described.cfg == {}
    lines: Any = runner.job(job.handle).log_lines("sh", 0, should_tail=True)
    assert next(lines) == "hello\n"
    lines.close()
    (tmp_path / "end").touch()
    assert job.wait() == 0
    described = reached(runner, job.handle, AppState.SUCCEEDED, AppState.UNKNOWN)
    if described.state is AppState.UNKNOWN:
        assert described.msg == "it has ended, and TorchX removed its log folder: how it ended is not known"


@pytest.mark.torch
def test_the_workers_of_torchrun_belong_to_their_replica(torchx_run, runner, require, tmp_path):
    require("torch", importlib.util.find_spec("torch") is not None, "`pip install -e .[examples]`")
    (tmp_path / "train.py").write_text("import time\nprint('worker starts', flush=True)\ntime.sleep(300)\n")
    job = torchx_run("dist.ddp", "-j", "1x2", "--script", "train.py")
    described = reached(runner, job.handle, AppState.RUNNING, running=1)
    wait_until(lambda: len(processes_of_job(f"TORCHX_JOB_ID={job.handle}")) >= 3, "torchrun and its workers")
    described = reached(runner, job.handle, AppState.RUNNING, running=1)
    assert [(one.role, [replica.id for replica in one.replicas]) for one in described.roles_statuses] == [
        ("train", [0])
    ]
    assert "torchrun" in " ".join([described.roles[0].entrypoint, *described.roles[0].args])
    runner.job(job.handle).cancel()
    reached(runner, job.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={job.handle}") == []


def test_by_the_commands_of_the_shell(pair, runner):
    reached(runner, pair.handle, AppState.RUNNING, running=3)
    assert pair.handle in shell("list", "-s", "local_cwd").stdout
    status = json.loads(shell("status", "--json", pair.handle).stdout)
    assert (status["state"], [len(role["replicas"]) for role in status["roles"]]) == ("RUNNING", [1, 2])
    assert "hello from worker" in shell("log", f"{pair.handle}/worker/1").stdout
    described = shell("describe", pair.handle)
    assert described.returncode == 0
    assert "s3cret" not in described.stdout
    assert shell("cancel", pair.handle).returncode == 0
    reached(runner, pair.handle, AppState.CANCELLED)
    assert pair.wait() == 1
