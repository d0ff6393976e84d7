"""Local jobs of TorchX by what processes carry and folders hold, however odd; TorchX itself is in tests/interop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from backend.local.support import Local
from support.processes import processes_of_job
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import ListAppResponse, Stream
from torchx_tui.backends.local.torchx import jobs as torchx_finished
from torchx_tui.backends.torchxconfig import configured_log_dirs
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs import MISSING, AppState, SchedulerError, make_unique

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")

Spawn = Callable[..., "subprocess.Popen[Any]"]
# Tests that run beside this one see its processes.
APP, OTHER = make_unique("job"), make_unique("other")
SLEEP = ("sleep", "300")


@pytest.fixture(autouse=True)
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHX_TUI_SHOWS_TORCHX_JOBS", "1")


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Return what starts a process as TorchX starts a replica: in a session of its own, its logs in a folder."""
    started: list[subprocess.Popen[Any]] = []

    def start(
        role: str = "r", number: int = 0, *, app_id: str = APP, job_id: str | bytes | None = None,
        error_file: str | bytes | None = None, arguments: tuple[str, ...] = SLEEP, **options: Any,
    ) -> subprocess.Popen[Any]:  # fmt: skip
        folder = tmp_path / "logs" / "torchx" / app_id / role / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        for stream in Stream:
            (folder / f"{stream.value}.log").touch()
        env: dict[Any, Any] = {
            "PATH": os.environ["PATH"],
            "SPAWNED_IN": str(tmp_path),
            "TORCHX_JOB_ID": job_id if job_id is not None else f"local_cwd://torchx/{app_id}",
            "TORCHELASTIC_ERROR_FILE": error_file if error_file is not None else str(folder / "error.json"),
            **options.pop("env", {}),
        }
        env = {name: value for name, value in env.items() if value != ""}
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


def pids(local: Local, app_id: str = APP) -> dict[tuple[str, int], int | None]:
    described = local.scheduler.describe(app_id)
    assert described is not None
    return {(one.role, one.id): one.pid for role in described.roles_statuses for one in role.replicas}


def write_success(base: Path, app_id: str = APP, session: str = "torchx", **changes: Any) -> Path:
    """Write what TorchX leaves of a job that has ended."""
    folder = base / session / app_id
    (folder / "r" / "0").mkdir(parents=True)
    for stream in Stream:
        (folder / "r" / "0" / f"{stream.value}.log").write_text("" if stream is Stream.STDERR else "once\n")
    replica = {"replica_id": 0, "pid": 1, "exitcode": 0, "stdout": "/etc/passwd", "stderr": "", "error_file": ""}
    success = {
        "app_id": app_id,
        "log_dir": "/etc",
        "final_state": "SUCCEEDED",
        "last_updated": time.time(),
        "roles": {"r": [replica]},
        **changes,
    }
    (folder / "SUCCESS").write_text(json.dumps(success, indent=2))
    return folder


class TestProcesses:
    def test_the_leader_of_the_group_stands_for_a_replica(self, local: Local, spawn: Spawn) -> None:
        # A child with the same environment, and one in a session of its own, as torchrun's workers are.
        first = spawn(arguments=("sh", "-c", "sleep 300 & setsid sleep 300 & wait"))
        second = spawn(number=1)
        other = spawn("b")
        wait_for(local, lambda row: row.replicas_running == 3)
        assert pids(local) == {("r", 0): first.pid, ("r", 1): second.pid, ("b", 0): other.pid}
        described = local.scheduler.describe(APP)
        assert described is not None
        assert [(role.name, role.num_replicas, role.entrypoint, role.args) for role in described.roles] == [
            ("r", 2, "sh", ["-c", "sleep 300 & setsid sleep 300 & wait"]),
            ("b", 1, "sleep", ["300"]),
        ]
        assert described.name == "job"

    def test_a_worker_with_an_error_file_of_its_own_is_no_replica(self, local: Local, spawn: Spawn) -> None:
        leader = spawn()
        spawn("x", 7, error_file="/tmp/torchelastic/r/run_abc/attempt_0/0/error.json")
        wait_for(local, lambda row: row.replicas_running == 1)
        assert pids(local)["r", 0] == leader.pid

    def test_what_becomes_a_replica_by_exec_is_found(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        # Between fork and exec a process has its parent's environment.
        env = {"TORCHX_JOB_ID": f"local_cwd://torchx/{APP}"}
        code = f"import os, time; time.sleep(1); os.execvpe('sleep', ['sleep', '300'], {env!r} | dict(os.environ))"
        process = spawn(job_id="", error_file="", arguments=(sys.executable, "-c", code))
        assert find(local) is None
        row = wait_for(local, lambda row: True)
        assert row.replicas_running == 1
        assert list(pids(local).values()) == [process.pid]

    def test_one_that_ends_is_not_counted_any_more(self, local: Local, spawn: Spawn) -> None:
        first = spawn()
        spawn(number=1)
        wait_for(local, lambda row: row.replicas_running == 2)
        first.kill()
        first.wait()
        row = wait_for(local, lambda row: row.replicas_running == 1)
        assert (row.state, row.replicas_wanted) == (AppState.RUNNING, 2)

    def test_a_replica_that_ended_before_we_came_is_known_by_its_folder(self, local: Local, spawn: Spawn) -> None:
        first = spawn(number=1)
        first.kill()
        first.wait()
        spawn()
        row = wait_for(local, lambda row: row.replicas_running == 1)
        assert row.replicas_wanted == 2

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
    def test_those_of_another_user_are_not_regarded(self, local: Local, spawn: Spawn) -> None:
        spawn(user=65534)
        spawn(app_id=OTHER)
        wait_for(local, lambda row: True, OTHER)
        assert find(local) is None

    @pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can part the files of one")
    def test_those_in_a_container_are_not_regarded(self, local: Local, spawn: Spawn) -> None:
        parted = spawn(arguments=("unshare", "--mount", "--propagation", "unchanged", *SLEEP))
        here = os.stat("/proc/self/ns/mnt").st_ino
        wait_until(lambda: os.stat(f"/proc/{parted.pid}/ns/mnt").st_ino != here, "files of its own")
        spawn(app_id=OTHER)
        wait_for(local, lambda row: True, OTHER)
        assert find(local) is None

    def test_an_app_of_ours_in_another_state_folder_is_not_taken_for_torchxs(
        self, local: Local, make_local: Callable[..., Local], tmp_path: Path
    ) -> None:
        other = make_local(tmp_path / "other")
        app_id = other.start("sleep 300")
        other.running(app_id)
        assert find(other, app_id) is not None
        assert find(local, app_id) is None


class TestOddities:
    @pytest.mark.parametrize(
        "job_id",
        [
            b"local_cwd://torchx/\xff\xfe", "local_cwd://torchx/a\x1b[31mb", "local_cwd://torchx/a\nb", "local_cwd://",
            "local_cwd://torchx/", "local_cwd://torchx/" + "y" * 256,
            "local_cwd://torchx/..", "local_docker://torchx/a-1", "nothing", "local_cwd:/",
        ],
    )  # fmt: skip
    def test_an_id_that_is_none_is_passed_over(self, local: Local, spawn: Spawn, job_id: str | bytes) -> None:
        spawn(job_id=job_id)
        spawn(app_id=OTHER)
        wait_for(local, lambda row: True, OTHER)
        own = {one for one in local.scheduler.list() if BY_TORCHX in one.notes}
        assert not any(row.app_id in ("", "..", "a\x1b[31mb", "a-1") or "b" in row.app_id.split("\n") for row in own)
        assert all(row.app_id.isprintable() and len(row.app_id) < 256 for row in own)

    @pytest.mark.parametrize("name", ["a b-x", "😀-xk3v", "'; rm -rf ~; '", "[red]x", "%s{0}$HOME", "x" * 200])
    def test_an_odd_id_is_as_good_as_another(self, local: Local, spawn: Spawn, name: str) -> None:
        app_id = f"{name}-{APP}"[-200:]
        spawn(app_id=app_id)
        row = wait_for(local, lambda row: True, app_id)
        assert row.replicas_running == 1
        assert local.scheduler.log_path(app_id, "r", 0, Stream.STDOUT) is not None
        local.scheduler.cancel(app_id)
        wait_for(local, lambda row: row.state is AppState.CANCELLED, app_id)

    @pytest.mark.parametrize(
        "error_file",
        [
            "", b"/tmp/\xff/error.json", "error.json", "/", "/etc/passwd", "/error.json", "/a/b/r/0/error.json",
            "/logs/torchx/APP/r/-1/error.json", "/logs/torchx/APP/r/²/error.json",
            "/logs/torchx/APP/../0/error.json", "torchx/APP/r/0/error.json",
            "/logs/torchx/APP/r/99999999999999999999/error.json", "/" + "x" * 4000,
            "/x" * 3000 + "/torchx/APP/r/0/error.json", "/logs/torchx/APP/" + "r" * 300 + "/0/error.json",
        ],
    )  # fmt: skip
    def test_without_a_path_of_torchxs_there_is_a_job_but_no_log(
        self, local: Local, spawn: Spawn, error_file: str | bytes
    ) -> None:
        if isinstance(error_file, str):
            error_file = error_file.replace("APP", APP)
        process = spawn(error_file=error_file)
        wait_for(local, lambda row: row.replicas_running == 1)
        assert pids(local) == {("job", 0): process.pid}
        assert local.scheduler.log_path(APP, "job", 0, Stream.STDOUT) is None
        with pytest.raises(SchedulerError, match="do not tell where"):
            local.scheduler.log_iter(APP, "job")
        local.scheduler.cancel(APP)
        wait_for(local, lambda row: row.state is AppState.CANCELLED)
        assert process.wait(PATIENCE) == -signal.SIGTERM

    def test_a_relative_path_is_from_the_standard_output(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        folder = tmp_path / "logs" / "torchx" / APP / "r" / "0"
        folder.mkdir(parents=True)
        with (folder / "stdout.log").open("w") as out:
            out.write("hello\n")
            out.flush()
            # The process has gone to another folder since.
            spawn(error_file=f"logs/torchx/{APP}/r/0/error.json", stdout=out, cwd="/")
        wait_for(local, lambda row: row.replicas_running == 1)
        assert list(local.scheduler.log_iter(APP, "r", streams=Stream.STDOUT)) == ["hello\n"]

    def test_a_folder_that_is_gone(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        spawn(error_file=str(tmp_path / "gone" / "torchx" / APP / "r" / "0" / "error.json"))
        row = wait_for(local, lambda row: row.replicas_running == 1)
        assert row.state is AppState.RUNNING
        with pytest.raises(SchedulerError, match="the log was removed"):
            local.scheduler.log_iter(APP, "r")
        assert local.scheduler.describe_native(APP)

    def test_two_folders_with_one_id_are_not_mixed(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        first = spawn()
        wait_for(local, lambda row: True)
        spawn(number=5, error_file=str(tmp_path / "elsewhere" / "torchx" / APP / "r" / "5" / "error.json"))
        time.sleep(0.3)  # the next look sees both
        wait_for(local, lambda row: row.replicas_running == 1)
        assert pids(local)["r", 0] == first.pid
        described = local.scheduler.describe(APP)
        assert described is not None
        assert described.log_dir == str(tmp_path / "logs" / "torchx" / APP)

    def test_a_session_of_several_parts(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        # A name with a slash: TorchX makes a folder in a folder of it.
        path = tmp_path / "logs" / "torchx" / "team" / APP / "r" / "0" / "error.json"
        spawn(job_id=f"local_cwd://torchx/team/{APP}", error_file=str(path))
        wait_for(local, lambda row: row.replicas_running == 1)
        assert local.scheduler.log_path(APP, "r", 0, Stream.STDERR) == path.parent / "stderr.log"


class TestEnding:
    def test_only_the_job_is_signalled(self, local: Local, spawn: Spawn) -> None:
        job = spawn(arguments=("sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300"))
        other = spawn(app_id=OTHER)
        bystander = spawn(job_id="", error_file="")
        wait_for(local, lambda row: True)
        local.scheduler.cancel(APP)
        local.scheduler.cancel(APP)
        row = wait_for(local, lambda row: row.state is AppState.CANCELLED)
        assert row.msg.startswith("cancelled by ")
        assert job.wait(PATIENCE) == -signal.SIGKILL
        assert (other.poll(), bystander.poll()) == (None, None)

    def test_a_number_that_another_process_has_now_is_not_signalled(self, local: Local, spawn: Spawn) -> None:
        job = spawn()
        wait_for(local, lambda row: True)
        run = local.scheduler._apps.get(APP)
        bystander = spawn(job_id="", error_file="")
        run.document["replicas"][0].update(pid=bystander.pid, pid_started="1")
        local.scheduler.cancel(APP)
        wait_for(local, lambda row: row.state is AppState.CANCELLED)
        assert job.wait(PATIENCE) == -signal.SIGTERM
        assert bystander.poll() is None

    def test_nothing_is_left_where_it_cannot_be_cancelled(
        self, local: Local, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = spawn()
        wait_for(local, lambda row: True)
        with monkeypatch.context() as broken:
            broken.setattr(sys, "executable", "/nowhere/python")
            with pytest.raises(SchedulerError, match="cannot be cancelled"):
                local.scheduler.cancel(APP)
        assert [path for path in local.root.rglob("*") if "cancel" in path.name] == []
        wait_for(local, lambda row: row.state is AppState.RUNNING)
        local.scheduler.cancel(APP)
        assert job.wait(PATIENCE) == -signal.SIGTERM

    def test_without_a_record_it_is_unknown(self, local: Local, spawn: Spawn) -> None:
        process = spawn()
        row = wait_for(local, lambda row: True)
        assert "orphaned" not in row.notes  # the Python that launched it lives
        process.kill()
        process.wait()
        # TorchX may be about to write how it ended.
        row = wait_for(local, lambda row: row.replicas_running == 0)
        assert row.state is AppState.RUNNING

    def test_an_orphans_end_is_unknown(self, local: Local, tmp_path: Path, spawn: Spawn) -> None:
        # The shell between is gone at once, so that the replica's parent is no Python.
        spawn(arguments=("sh", "-c", "setsid sleep 300 & exit")).wait(PATIENCE)
        row = wait_for(local, lambda row: "orphaned" in row.notes)
        assert row.msg == "the torchx process that ran it has ended: how its replicas end will not be known"
        (pid,) = pids(local).values()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        row = wait_for(local, lambda row: row.state is AppState.UNKNOWN)
        assert row.msg == "the torchx process that ran it ended without a record: how it ended is not known"
        described = local.scheduler.describe(APP)
        assert described is not None
        assert described.has_ended


class TestDeleting:
    def test_one_that_runs_is_ended_and_not_shown(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        job = spawn()
        wait_for(local, lambda row: True)
        local.scheduler.delete(APP)
        assert job.wait(PATIENCE) == -signal.SIGTERM
        wait_until(lambda: find(local) is None, "its row to go")
        assert not local.scheduler.exists(APP)
        assert (tmp_path / "logs" / "torchx" / APP / "r" / "0" / "stdout.log").exists()
        assert list((local.root / "torchx").iterdir()) == []

    def test_one_that_was_cancelled_is_not_shown(self, local: Local, spawn: Spawn, tmp_path: Path) -> None:
        job = spawn()
        wait_for(local, lambda row: True)
        local.scheduler.cancel(APP)
        job.wait(PATIENCE)
        wait_for(local, lambda row: row.state is AppState.CANCELLED)
        local.scheduler.delete(APP)
        assert find(local) is None
        assert (tmp_path / "logs" / "torchx" / APP / "r" / "0" / "stdout.log").exists()


class TestFinished:
    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        return tmp_path / "finished"

    @pytest.fixture
    def finished(self, make_local: Callable[..., Local], logs: Path) -> Local:
        return make_local(torchx_log_dirs=lambda: [logs])

    def test_by_its_record(self, finished: Local, logs: Path) -> None:
        write_success(logs)
        row = find(finished)
        assert row is not None
        assert (row.state, row.replicas_succeeded, row.replicas_wanted) == (AppState.SUCCEEDED, 1, 1)
        assert finished.lines(APP) == ["once\n"]
        described = finished.scheduler.describe(APP)
        assert described is not None
        # What ran is not known; where its logs went is.
        assert (described.roles[0].entrypoint, described.cfg) == (MISSING, {"log_dir": str(logs)})

    def test_a_state_that_is_not_final_means_cancelled(self, finished: Local, logs: Path) -> None:
        row = {"replica_id": 0, "pid": 5, "exitcode": -15, "stdout": "", "stderr": "", "error_file": ""}
        write_success(logs, final_state="RUNNING", roles={"r": [row]})
        found = find(finished)
        assert found is not None
        assert (found.state, found.replicas_wanted) == (AppState.CANCELLED, 1)
        assert found.msg.startswith("cancelled after ")

    @pytest.mark.parametrize(
        "changes",
        [
            {"final_state": "GONE"}, {"final_state": 4}, {"last_updated": "now"}, {"last_updated": None}, {"roles": []},
            {"roles": {"r": 5}}, {"roles": {"r": [{}]}}, {"app_id": "another"}, {"last_updated": float("nan")},
            {"roles": {"r": [{"replica_id": "x", "pid": 1, "exitcode": 0}]}}, {"last_updated": 1e400},
        ],
    )  # fmt: skip
    def test_a_record_that_is_none_is_passed_over(self, finished: Local, logs: Path, changes: dict[str, Any]) -> None:
        write_success(logs, **changes)
        write_success(logs, OTHER)
        found = {row.app_id for row in finished.scheduler.list()} & {APP, OTHER}
        assert found == {OTHER}

    @pytest.mark.parametrize("text", ["", "[", "[]", "null", "[" * 100_000, "\0"])
    def test_a_file_that_is_no_record_is_passed_over(self, finished: Local, logs: Path, text: str) -> None:
        (write_success(logs) / "SUCCESS").write_text(text)
        assert find(finished) is None

    def test_a_named_pipe_does_not_block(self, finished: Local, logs: Path) -> None:
        folder = write_success(logs)
        (folder / "SUCCESS").unlink()
        os.mkfifo(folder / "SUCCESS")
        assert find(finished) is None

    def test_a_role_that_would_lead_elsewhere_is_passed_over(self, finished: Local, logs: Path) -> None:
        row = {"replica_id": 0, "pid": 5, "exitcode": 0, "stdout": "", "stderr": "", "error_file": ""}
        write_success(logs, roles={"..": [row], "../../x": [row], "r": [row]})
        described = finished.scheduler.describe(APP)
        assert described is not None
        assert [role.role for role in described.roles_statuses] == ["r"]

    def test_the_latest_of_many_and_each_is_read_once(
        self, finished: Local, logs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torchx_finished, "MOST_FINISHED", 20)
        monkeypatch.setattr(torchx_finished, "_FINISHED_AGAIN_SECONDS", 0.0)
        for number in range(30):
            folder = write_success(logs, f"n{number}-xk3v9q0w7zb2d")
            os.utime(folder / "SUCCESS", (1e9 + number, 1e9 + number))
        found = finished.scheduler._apps._look()
        mine = {app_id for app_id in found if app_id.endswith("-xk3v9q0w7zb2d")}
        assert mine == {f"n{number}-xk3v9q0w7zb2d" for number in range(10, 30)}
        read: list[Path] = []
        monkeypatch.setattr(torchx_finished, "read_success", lambda folder: read.append(folder))
        # What was looked at a moment ago would be given again.
        monkeypatch.setattr(torchx_finished, "_AGAIN_SECONDS", 0.0)
        finished.scheduler._apps._look()
        assert read == []

    def test_a_new_one_is_seen(self, finished: Local, logs: Path) -> None:
        assert find(finished) is None
        write_success(logs)
        wait_for(finished, lambda row: row.state is AppState.SUCCEEDED)

    def test_one_of_ours_is_not_taken_for_torchxs(
        self, finished: Local, make_local: Callable[..., Local], tmp_path: Path, logs: Path
    ) -> None:
        other = make_local(tmp_path / "other")
        app_id = other.start("true", {"log_dir": str(logs)})
        other.ended(app_id)
        assert (logs / "session" / app_id / "SUCCESS").exists()
        assert find(finished, app_id) is None

    def test_the_log_dir_of_a_launch_here_is_looked_at(self, local: Local, tmp_path: Path) -> None:
        local.ended(local.start("true", {"log_dir": str(tmp_path / "shared")}))
        write_success(tmp_path / "shared")
        wait_for(local, lambda row: row.state is AppState.SUCCEEDED)

    def test_deleting_one_leaves_its_folder(
        self, finished: Local, make_local: Callable[..., Local], logs: Path
    ) -> None:
        folder = write_success(logs)
        finished.scheduler.delete(APP)
        assert not finished.scheduler.exists(APP)
        assert find(finished) is None
        assert (folder / "r" / "0" / "stdout.log").read_text() == "once\n"
        assert find(make_local(torchx_log_dirs=lambda: [logs])) is None  # another process knows as well


class TestLogDirs:
    def test_those_of_both_files(self, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".torchxconfig").write_text("[local_cwd]\nlog_dir = logs\n")
        (own_home / ".torchxconfig").write_text("[local_cwd]\nlogDir = ~/all\n")
        assert configured_log_dirs() == [tmp_path / "logs", own_home / "all"]
        (tmp_path / ".torchxconfig").write_text("[local_cwd]\nlog_dir = None\n[x\n")
        os.utime(tmp_path / ".torchxconfig", (1, 1))
        assert configured_log_dirs() == [own_home / "all"]

    @pytest.mark.parametrize(
        "text", ["", "[local_cwd]\n", "[local_cwd]\nlog_dir = None", "log_dir = x", "[local_cwd]\nlog_dir = %x"]
    )
    def test_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".torchxconfig").write_text(text)
        assert configured_log_dirs() == []
