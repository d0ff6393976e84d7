"""Local jobs that TorchX's own command line launched: found, read and ended by us, whichever process launched them."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
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
from torchx_tui.specs import AppDef, AppState, Role, parse_app_handle

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
def torchx_run(torchx: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Launch]:
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
def runner(tmp_path: Path) -> Iterator[Runner]:
    params = {**Settings().scheduler_params()["local_cwd"], "grace_seconds": 2.0}
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params={"local_cwd": params}) as made:
        yield made


@pytest.fixture
def pair(torchx_run: Launch, tmp_path: Path) -> TorchXRun:
    """Launch a job of two roles, three replicas in all."""
    (tmp_path / "jobs.py").write_text(TWO_ROLES)
    return torchx_run("jobs.py:pair", "--folder", "none")


def until_there(path: Path) -> str:
    """Return what a shell waits with until a file is there."""
    return f"while [ ! -e {path} ]; do sleep 0.1; done"


def test_listed_described_tailed_and_cancelled(pair: TorchXRun, runner: Runner) -> None:
    described = reached(runner, pair.handle, AppState.RUNNING, running=3)
    assert [(one.name, one.num_replicas, one.entrypoint) for one in described.roles] == [
        ("leader", 1, "sh"),
        ("worker", 2, "sh"),
    ]
    # What TorchX put in place of macros is the job's own: another launch must have its own.
    assert described.roles[1].args == ["-c", f"echo hello from worker; {LOOP}", "${replica_id}"]
    assert described.roles[1].env == {"HF_TOKEN": "s3cret", "ROLE": "worker", "JOB": "${app_id}.$$"}
    assert described.log_dir == str(pair.logs / "torchx" / pair.app_id)
    assert described.cfg == {"log_dir": str(pair.logs)}
    assert described.name == "pair"
    pids = {one.pid for role in described.roles_statuses for one in role.replicas}
    assert pids <= set(processes_of_job(f"TORCHX_JOB_ID={pair.handle}"))
    found = row(runner, pair.handle)
    assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 3, 3)
    assert (found.foreign, found.msg) == (False, "")
    native = runner.describe_native(pair.handle)
    assert "HF_TOKEN" in native
    assert "s3cret" not in native
    wait_until(lambda: len(runner.usage(pair.handle)) == 3, "what three replicas use")

    # Read while it writes.
    for stream in (None, Stream.STDOUT):
        lines: Any = runner.log_lines(pair.handle, "worker", 1, should_tail=True, streams=stream)
        assert next(lines) == "hello from worker\n"
        assert wait_until(lambda lines=lines: next(lines) == "line 20\n", "line 20")
        lines.close()
    errors: Any = runner.log_lines(pair.handle, "worker", 0, should_tail=True, streams=Stream.STDERR)
    assert next(errors) == "wrong 1\n"
    errors.close()
    scheduler, app_id = runner.scheduler("local_cwd"), parse_app_handle(pair.handle).app_id
    paths = [scheduler.log_path(app_id, "leader", 0, stream) for stream in Stream]
    folder = pair.logs / "torchx" / pair.app_id / "leader" / "0"
    assert paths == [folder / f"{stream.value}.log" for stream in Stream]

    # Cancelled.
    tail: Any = runner.log_lines(pair.handle, "leader", 0, should_tail=True)
    runner.cancel(pair.handle)
    described = reached(runner, pair.handle, AppState.CANCELLED)
    assert described.msg.startswith("cancelled by ")
    assert pair.wait() == 1  # TorchX says that the job failed
    assert processes_of_job(f"TORCHX_JOB_ID={pair.handle}") == []
    assert row(runner, pair.handle).state is AppState.CANCELLED
    assert "line 1\n" in list(tail)
    # What TorchX wrote is as it was, and nothing of ours is among it.
    folder = pair.logs / "torchx" / pair.app_id
    assert {one.name for one in folder.iterdir()} <= {"leader", "worker", "torchelastic", "SUCCESS"}
    with Runner() as another:  # who did not see it
        assert another.describe(pair.handle).state is AppState.CANCELLED  # type: ignore[union-attr]


def test_what_torchx_says_of_local_jobs_is_another(pair: TorchXRun, runner: Runner, tmp_path: Path) -> None:
    described = reached(runner, pair.handle, AppState.RUNNING, running=3)
    local: Any = theirs("torchx.schedulers.local_scheduler")
    specs: Any = theirs("torchx.specs")
    scheduler = local.create_scheduler("torchx")
    try:
        listed = outcome(scheduler.list)
        ours = [one.app_handle for one in runner.list("local_cwd") if one.app_handle == pair.handle]
        hold("local jobs", listed, ours, lambda theirs, ours: "list" if ours == [pair.handle] else None)
        known = scheduler.describe(pair.app_id)
        assert known is None
        hold("local jobs", known, described.state.name, lambda *_: "another process's job")
        role = specs.Role("r", "", entrypoint="sleep", args=["300"])
        app_id = scheduler.submit(specs.AppDef("theirs", [role]), {"log_dir": str(tmp_path / "logs")})
        statuses = [len(one.replicas) for one in scheduler.describe(app_id).roles_statuses]
        replicas = [len(one.replicas) for one in described.roles_statuses]
        hold(
            "local jobs",
            statuses,
            replicas,
            lambda theirs, ours: "replicas" if (theirs, ours) == ([], [1, 2]) else None,
        )
    finally:
        scheduler.close()


def test_one_that_ignores_sigterm_is_cancelled_too(torchx_run: Launch, runner: Runner) -> None:
    job = torchx_run("utils.sh", "sh", "-c", f"trap '' TERM; {LOOP}")
    reached(runner, job.handle, AppState.RUNNING)
    runner.cancel(job.handle)
    reached(runner, job.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={job.handle}") == []


def test_an_orphan(pair: TorchXRun, runner: Runner) -> None:
    reached(runner, pair.handle, AppState.RUNNING, running=3)
    followed: Any = runner.log_lines(pair.handle, "worker", 0, should_tail=True)
    # Which of the two streams comes first into combined.log is a race of TorchX's own.
    seen = [next(followed)]
    pair.process.send_signal(signal.SIGKILL)
    pair.wait()
    described = wait_until(
        lambda: (found := runner.describe(pair.handle)) and "orphaned" in found.notes and found, "an orphan"
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
    lines = list(runner.log_lines(pair.handle, "worker", 0))
    assert f"line {after}\n" in lines
    assert "wrong 1\n" in lines
    runner.cancel(pair.handle)
    reached(runner, pair.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={pair.handle}") == []


def test_lost_without_a_record(pair: TorchXRun, runner: Runner) -> None:
    described = reached(runner, pair.handle, AppState.RUNNING, running=3)
    pair.process.kill()
    pair.wait()
    for role in described.roles_statuses:
        for one in role.replicas:
            os.killpg(one.pid, signal.SIGKILL)
    described = reached(runner, pair.handle, AppState.UNKNOWN)
    assert described.msg == "the torchx process that ran it ended without a record: how it ended is not known"
    assert described.has_ended
    assert "line 1\n" in list(runner.log_lines(pair.handle, "leader", 0))


def test_ended_as_its_record_says(torchx_run: Launch, runner: Runner, tmp_path: Path) -> None:
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
    assert list(runner.log_lines(job.handle, "sh", 1, should_tail=True)) == ["once\n"]
    again = runner.relaunch(job.handle)
    assert reached(runner, again, AppState.FAILED).msg in ("exit 3: sh/0", "exit 3: sh/1")
    assert row(runner, again).notes == []


def test_ended_before_we_came(
    torchx_run: Launch, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = torchx_run("utils.echo", "--msg", "once", "--num_replicas", "2")
    assert job.wait() == 0
    assert row(runner, job.handle) is None  # nobody has said where its logs are
    monkeypatch.delenv("TORCHXCONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".torchxconfig").write_text("[local_cwd]\nlog_dir = logs\n")
    found = wait_until(lambda: row(runner, job.handle), "the row")
    assert (found.state, found.replicas_succeeded, found.replicas_wanted) == (AppState.SUCCEEDED, 2, 2)
    assert found.finished_at >= found.started_at > time.time() - 600
    assert list(runner.log_lines(job.handle, "echo", 1)) == ["once\n"]
    success = pair_of_files(job)
    runner.delete(job.handle)
    assert runner.describe(job.handle) is None
    assert row(runner, job.handle) is None
    assert pair_of_files(job) == success  # TorchX's folder is TorchX's


def pair_of_files(job: TorchXRun) -> tuple[str, str]:
    folder = job.logs / "torchx" / job.app_id
    return (folder / "SUCCESS").read_text(), (folder / "echo" / "0" / "combined.log").read_text()


def test_deleted_while_it_runs(pair: TorchXRun, runner: Runner) -> None:
    reached(runner, pair.handle, AppState.RUNNING, running=3)
    runner.delete(pair.handle)
    wait_until(lambda: runner.describe(pair.handle) is None, "its end")
    assert row(runner, pair.handle) is None
    assert processes_of_job(f"TORCHX_JOB_ID={pair.handle}") == []
    assert (pair.logs / "torchx" / pair.app_id / "worker" / "1" / "stdout.log").exists()


def test_in_a_folder_that_torchx_removes(torchx_run: Launch, runner: Runner, tmp_path: Path) -> None:
    job = torchx_run("utils.sh", "sh", "-c", f"echo hello; {until_there(tmp_path / 'end')}", log_dir=False)
    described = reached(runner, job.handle, AppState.RUNNING)
    assert described.cfg == {}
    lines: Any = runner.log_lines(job.handle, "sh", 0, should_tail=True)
    assert next(lines) == "hello\n"
    lines.close()
    (tmp_path / "end").touch()
    assert job.wait() == 0
    described = reached(runner, job.handle, AppState.SUCCEEDED, AppState.UNKNOWN)
    if described.state is AppState.UNKNOWN:
        assert described.msg == "it has ended, and TorchX removed its log folder: how it ended is not known"


def test_ours_are_not_taken_for_theirs(torchx: str, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHX_TUI_SHOWS_TORCHX_JOBS", "1")
    role = Role("r", "", entrypoint="sh", args=["-c", "sleep 300 & sleep 300"], num_replicas=2)
    handle = runner.run(AppDef("ours", [role]), "local_cwd", {})
    try:
        reached(runner, handle, AppState.RUNNING, running=2)
        rows = [one for one in runner.list("local_cwd") if one.app_handle == handle]
        assert [one.notes for one in rows] == [[]]
        # Another home, which has no record of it.
        monkeypatch.setenv("XDG_STATE_HOME", os.environ["XDG_STATE_HOME"] + "-other")
        with Runner() as another:
            assert row(another, handle) is None
    finally:
        runner.cancel(handle)
        reached(runner, handle, AppState.CANCELLED)


@pytest.mark.torch
def test_the_workers_of_torchrun_belong_to_their_replica(
    torchx_run: Launch, runner: Runner, require: Callable[..., None], tmp_path: Path
) -> None:
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
    runner.cancel(job.handle)
    reached(runner, job.handle, AppState.CANCELLED)
    assert processes_of_job(f"TORCHX_JOB_ID={job.handle}") == []


def test_by_the_commands_of_the_shell(pair: TorchXRun, runner: Runner) -> None:
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
