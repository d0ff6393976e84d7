"""Local jobs of TorchX as the scheduler shows and ends them; TorchX itself is in tests/interop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from backend.local.support import Local
from support.processes import processes_of_job
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import ListAppResponse, Stream
from torchx_tui.backends.local.torchx import jobs
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.handles import make_unique
from torchx_tui.specs.status import MISSING, AppState

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")

Spawn = Callable[..., "subprocess.Popen[Any]"]
# Tests that run beside this one see its processes.
APP, OTHER = make_unique("job"), make_unique("other")
SLEEP = ("sleep", "300")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start such a process")


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    monkeypatch.setenv("TORCHX_TUI_SHOWS_TORCHX_JOBS", "1")


@pytest.fixture
def spawn(tmp_path):
    """Return what starts a process as TorchX starts a replica: in a session of its own, its logs in a folder."""
    started: list[subprocess.Popen[Any]] = []

    def start(
        role: str = "r", number: int = 0, *, app_id: str = APP, job_id: str | None = None,
        error_file: str | None = None, arguments: tuple[str, ...] = SLEEP, **options: Any,
    ) -> subprocess.Popen[Any]:  # fmt: skip
        folder = tmp_path / "logs" / "torchx" / app_id / role / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        for stream in Stream:
            (folder / f"{stream.value}.log").touch()
        env = {
            "PATH": os.environ["PATH"],
            "SPAWNED_IN": str(tmp_path),
            "TORCHX_JOB_ID": f"local_cwd://torchx/{app_id}" if job_id is None else job_id,
            "TORCHELASTIC_ERROR_FILE": str(folder / "error.json") if error_file is None else error_file,
        }
        started.append(subprocess.Popen(arguments, env=env, start_new_session=True, **options))
        return started[-1]

    yield start
    for pid in processes_of_job(f"SPAWNED_IN={tmp_path}"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in started:
        process.wait(PATIENCE)


def find(local: Local, app_id: str = APP) -> ListAppResponse | None:
    return next((row for row in local.scheduler.list() if row.app_id == app_id), None)


def wait_for(local: Local, test: Callable[[ListAppResponse], object], app_id: str = APP) -> ListAppResponse:
    return wait_until(lambda: (row := find(local, app_id)) and test(row) and row, app_id)


def wait_for_running(local: Local, count: int = 1, app_id: str = APP) -> ListAppResponse:
    return wait_for(local, lambda row: row.replicas_running == count, app_id)


def wait_for_state(local: Local, state: AppState) -> ListAppResponse:
    return wait_for(local, lambda row: row.state is state)


def end(process: subprocess.Popen[Any]) -> None:
    process.kill()
    process.wait()


def pids(local: Local) -> dict[tuple[str, int], int | None]:
    statuses = local.describe(APP).roles_statuses
    return {(one.role, one.id): one.pid for role in statuses for one in role.replicas}


def write_success(base: Path) -> Path:
    """Write what TorchX leaves of a job that has ended."""
    folder = base / "torchx" / APP
    (folder / "r" / "0").mkdir(parents=True)
    for stream in Stream:
        (folder / "r" / "0" / f"{stream.value}.log").write_text("" if stream is Stream.STDERR else "once\n")
    replica = {"replica_id": 0, "pid": 1, "exitcode": 0, "stdout": "/etc/passwd", "stderr": "", "error_file": ""}
    success = {"app_id": APP, "log_dir": "/etc", "final_state": "SUCCEEDED", "last_updated": time.time()}
    (folder / "SUCCESS").write_text(json.dumps({**success, "roles": {"r": [replica]}}))
    return folder


def test_group_leaders_are_the_replicas(local, spawn):
    # A child with the same environment, and one in a session of its own, as torchrun's workers are.
    first = spawn(arguments=("sh", "-c", "sleep 300 & setsid sleep 300 & wait"))
    second = spawn(number=1)
    other = spawn("b")
    # A worker has an error file of its own.
    spawn("x", 7, error_file="/tmp/torchelastic/r/run_abc/attempt_0/0/error.json")
    wait_for_running(local, 3)
    assert {place: pid for place, pid in pids(local).items() if place[0] != "x"} == {
        ("r", 0): first.pid, ("r", 1): second.pid, ("b", 0): other.pid,
    }  # fmt: skip
    described = local.describe(APP)
    assert [(role.name, role.num_replicas, role.entrypoint, role.args) for role in described.roles[:2]] == [
        ("r", 2, "sh", ["-c", "sleep 300 & setsid sleep 300 & wait"]),
        ("b", 1, "sleep", ["300"]),
    ]
    assert described.name == "job"


def test_process_that_becomes_a_replica_by_exec(local, spawn):
    # Between fork and exec a process has its parent's environment.
    env = {"TORCHX_JOB_ID": f"local_cwd://torchx/{APP}"}
    code = f"import os, time; time.sleep(1); os.execvpe('sleep', ['sleep', '300'], dict(os.environ) | {env!r})"
    process = spawn(job_id="", error_file="", arguments=(sys.executable, "-c", code))
    assert find(local) is None
    wait_for_running(local)
    assert list(pids(local).values()) == [process.pid]


def test_ended_replica_is_not_counted(local, spawn):
    end(spawn(number=2))  # known by its folder alone
    first = spawn()
    spawn(number=1)
    wait_for_running(local, 2)
    end(first)
    row = wait_for_running(local, 1)
    assert (row.state, row.replicas_wanted) == (AppState.RUNNING, 3)


@needs_root
def test_processes_of_another_user_are_ignored(local, spawn):
    spawn(user=65534)
    spawn(app_id=OTHER)
    wait_for_running(local, 1, OTHER)
    assert find(local) is None


@needs_root
@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is missing")
def test_processes_in_a_container_are_ignored(local, spawn):
    parted = spawn(arguments=("unshare", "--mount", "--propagation", "unchanged", *SLEEP))
    here = os.stat("/proc/self/ns/mnt").st_ino
    wait_until(lambda: os.stat(f"/proc/{parted.pid}/ns/mnt").st_ino != here, "files of its own")
    spawn(app_id=OTHER)
    wait_for_running(local, 1, OTHER)
    assert find(local) is None


def test_own_apps_elsewhere_are_not_torchxs(local, make_local, tmp_path):
    other = make_local(tmp_path / "other")
    app_id = other.start_running()
    assert find(other, app_id) is not None
    assert find(local, app_id) is None


def test_odd_id_is_as_good_as_another(local, spawn):
    app_id = f"😀 '; rm -rf ~; '[red]%s{{0}}$HOME-{APP}"
    spawn(app_id=app_id)
    wait_for_running(local, 1, app_id)
    assert Stream.STDOUT in local.scheduler.log_files(app_id, "r", 0)
    local.scheduler.cancel(app_id)
    wait_for(local, lambda row: row.state is AppState.CANCELLED, app_id)


@pytest.mark.parametrize("error_file", ["", "/" + "x" * 4000], ids=["none", "long"])
def test_job_without_a_log_folder(local, spawn, error_file):
    process = spawn(error_file=error_file)
    wait_for_running(local)
    assert pids(local) == {("job", 0): process.pid}
    with pytest.raises(SchedulerError, match="do not tell where"):
        local.scheduler.log_iter(APP, "job")
    local.scheduler.cancel(APP)
    wait_for_state(local, AppState.CANCELLED)
    assert process.wait(PATIENCE) == -signal.SIGTERM


def test_relative_error_file_is_beside_the_output(local, spawn, tmp_path):
    folder = tmp_path / "logs" / "torchx" / APP / "r" / "0"
    folder.mkdir(parents=True)
    with (folder / "stdout.log").open("w") as out:
        out.write("hello\n")
        out.flush()
        # The process has gone to another folder since.
        spawn(error_file=f"logs/torchx/{APP}/r/0/error.json", stdout=out, cwd="/")
    wait_for_running(local)
    assert local.lines(APP, streams=Stream.STDOUT) == ["hello\n"]


def test_two_folders_with_one_id_are_not_mixed(local, spawn, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "AGAIN_SECONDS", 0.0)
    first = spawn()
    wait_for_running(local)
    spawn(number=5, error_file=str(tmp_path / "elsewhere" / "torchx" / APP / "r" / "5" / "error.json"))
    wait_for_running(local)
    assert pids(local)["r", 0] == first.pid
    assert local.describe(APP).log_dir == str(tmp_path / "logs" / "torchx" / APP)


def test_only_the_job_is_signalled(local, spawn):
    job = spawn(arguments=("sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300"))
    other, bystander = spawn(app_id=OTHER), spawn(job_id="", error_file="")
    wait_for_running(local)
    local.scheduler.cancel(APP)
    local.scheduler.cancel(APP)
    assert wait_for_state(local, AppState.CANCELLED).msg.startswith("cancelled by ")
    assert job.wait(PATIENCE) == -signal.SIGKILL
    assert (other.poll(), bystander.poll()) == (None, None)


def test_failed_cancel_leaves_nothing(local, spawn, monkeypatch):
    job = spawn()
    wait_for_running(local)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(SchedulerError, match="cannot be cancelled"):
            local.scheduler.cancel(APP)
    assert [path for path in local.root.rglob("*") if "cancel" in path.name] == []
    wait_for_state(local, AppState.RUNNING)
    local.scheduler.cancel(APP)
    assert job.wait(PATIENCE) == -signal.SIGTERM


def test_end_without_a_record_is_not_known_at_once(local, spawn):
    process = spawn()
    assert "orphaned" not in wait_for_running(local).notes  # the Python that launched it lives
    end(process)
    # TorchX may be about to write how it ended.
    assert wait_for_running(local, 0).state is AppState.RUNNING


def test_end_of_an_orphan_is_unknown(local, spawn):
    # The shell between is gone at once, so that the replica's parent is no Python.
    spawn(arguments=("sh", "-c", "setsid sleep 300 & exit")).wait(PATIENCE)
    row = wait_for(local, lambda row: "orphaned" in row.notes)
    assert row.msg == "the torchx process that ran it has ended: how its replicas end will not be known"
    (pid,) = pids(local).values()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    row = wait_for_state(local, AppState.UNKNOWN)
    assert row.msg == "the torchx process that ran it ended without a record: how it ended is not known"
    assert local.describe(APP).has_ended


@pytest.mark.parametrize("cancelled", [False, True])
def test_deleted_job_keeps_its_logs(local, spawn, tmp_path, cancelled):
    job = spawn()
    wait_for_running(local)
    if cancelled:
        local.scheduler.cancel(APP)
        job.wait(PATIENCE)
        wait_for_state(local, AppState.CANCELLED)
    local.scheduler.delete(APP)
    assert job.wait(PATIENCE) == -signal.SIGTERM
    wait_until(lambda: find(local) is None, "its row to go")
    assert not local.scheduler.exists(APP)
    assert (tmp_path / "logs" / "torchx" / APP / "r" / "0" / "stdout.log").exists()
    assert list((local.root / "torchx").iterdir()) == []


def test_finished_job(make_local, tmp_path):
    logs = tmp_path / "finished"
    finished = make_local(torchx_log_dirs=lambda: [logs])
    assert find(finished) is None
    folder = write_success(logs)
    row = wait_for_state(finished, AppState.SUCCEEDED)
    assert (row.replicas_succeeded, row.replicas_wanted) == (1, 1)
    assert finished.lines(APP) == ["once\n"]
    described = finished.describe(APP)
    # What ran is not known; where its logs went is.
    assert (described.roles[0].entrypoint, described.cfg) == (MISSING, {"log_dir": str(logs)})
    finished.scheduler.delete(APP)
    assert (finished.scheduler.exists(APP), find(finished)) == (False, None)
    assert (folder / "r" / "0" / "stdout.log").read_text() == "once\n"
    assert find(make_local(torchx_log_dirs=lambda: [logs])) is None  # another process knows as well


def test_log_dir_of_a_launch_here_is_searched(local, tmp_path):
    local.finish("true", {"log_dir": str(tmp_path / "shared")})
    write_success(tmp_path / "shared")
    wait_for_state(local, AppState.SUCCEEDED)
