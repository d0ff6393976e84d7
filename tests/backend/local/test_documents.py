"""What is made of state files: each field checked, and what they say in the words of the scheduler contract."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.waiting import wait_until

from torchx_tui.backends.local import record
from torchx_tui.backends.local.describe import describe_run, list_run, replica_state, why
from torchx_tui.backends.local.record import FORMAT, Run, read_document, read_run
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.local.torchx import record as of_torchx
from torchx_tui.backends.local.torchx.processes import JobProcess
from torchx_tui.specs import AppState
from torchx_tui.specs.files import user_name
from torchx_tui.specs.processes import boot_id

NOBODY = 1 << 22  # no process has this number


def entry(number: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a replica as a state file has it."""
    return {
        "role": "r",
        "id": number,
        "pid": NOBODY,
        "pid_started": "1",
        "exit_code": None,
        "started_at": 20.0,
        "finished_at": None,
        "command": "sh",
        "cwd": None,
        "error_file": None,
        **fields,
    }


def document(*replicas: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the content of a state file of an app that has ended well."""
    return {
        "format": FORMAT,
        "state": "SUCCEEDED",
        "host": os.uname().nodename,
        "boot_id": boot_id(),
        "pid": NOBODY,
        "pid_started": "1",
        "job_id": "local_cwd://s/job-1",
        "name": "job",
        "user": "alice",
        "heartbeat": 50.0,
        "submitted_at": 10.0,
        "started_at": 20.0,
        "finished_at": 60.0,
        "timeline": [["SUBMITTED", 10.0], ["SUCCEEDED", 60.0]],
        "app": {"name": "job", "roles": []},
        "replicas": list(replicas),
        **fields,
    }


Make = Callable[..., Run]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what writes a state file and reads it."""

    def made(*replicas: dict[str, Any], **fields: Any) -> Run:
        (tmp_path / "state.json").write_text(json.dumps(document(*replicas, **fields)))
        run = read_run("job-1", tmp_path)
        assert run is not None
        return run

    return made


# Fields


@pytest.mark.parametrize("name", sorted(set(document()) - {"started_at", "finished_at"}))
def test_a_field_that_must_be_there(name: str) -> None:
    data = document(entry())
    del data[name]
    with pytest.raises(ValueError, match=name):
        read_document(json.dumps(data).encode())


@pytest.mark.parametrize(
    "name",
    [
        *document(),
        *("waits_for", "notes", "session", "reason", "app_id", "log_dir", "torchx_folder", "cancel", "max_running"),
        "cfg",
    ],
)
def test_a_field_of_another_kind(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        read_document(json.dumps({**document(), name: [[7]]}).encode())


@pytest.mark.parametrize("name", [*entry(), "not_started"])
def test_a_field_of_a_replica_of_another_kind(name: str) -> None:
    with pytest.raises(ValueError, match=rf"replicas\[1\]\.{name}"):
        read_document(json.dumps(document(entry(), entry(1, **{name: [[7]]}))).encode())


@pytest.mark.parametrize("name", ["role", "id", "pid", "pid_started", "exit_code"])
def test_a_field_of_a_replica_that_must_be_there(name: str) -> None:
    replica = entry()
    del replica[name]
    with pytest.raises(ValueError, match=rf"replicas\[0\]\.{name}"):
        read_document(json.dumps(document(replica)).encode())


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("timeline", [["RUNNING", 1.0]], True),
        ("timeline", [["JOGGING", 1.0]], False),
        ("timeline", [["RUNNING"]], False),
        ("timeline", [["RUNNING", "now"]], False),
        ("timeline", [["RUNNING", 1.0, 2.0]], False),
        ("cancel", None, True),
        ("cancel", {"by": "alice", "at": 1.0}, True),
        ("cancel", {"by": 1}, False),
        ("cancel", {"at": "now"}, False),
        ("app", {"roles": [{}]}, True),
        ("app", {}, True),
        ("app", {"roles": [1]}, False),
        ("finished_at", None, True),
        ("replicas", [entry(role="..")], False),
        ("replicas", [entry(role=".")], False),
        ("replicas", [entry(role="a/b")], False),
        ("replicas", [entry(not_started=[2, "/x", "words"])], True),
        ("replicas", [entry(not_started=[None, None, "words"])], True),
        ("replicas", [entry(not_started=[2, "/x"])], False),
        ("replicas", [entry(not_started=["2", "/x", "words"])], False),
        ("replicas", [entry(not_started=[2, 7, "words"])], False),
        ("replicas", [entry(not_started=[2, "/x", 7])], False),
    ],
)
def test_values(name: str, value: Any, good: bool) -> None:
    text = json.dumps({**document(), name: value}).encode()
    if good:
        assert read_document(text)[name] == value
    else:
        with pytest.raises(ValueError, match=name):
            read_document(text)


# What it means


def test_everything_that_is_written_is_told(make: Make, tmp_path: Path) -> None:
    app = {"name": "job", "roles": [{"name": "r", "image": "i:1", "num_replicas": 1}], "metadata": {"k": "v"}}
    run = make(entry(exit_code=0, finished_at=60.0), app=app, notes=["a note"], cfg={"log_dir": "/x"})
    row, told = list_run(run), describe_run(run)
    for one in (row, told):
        assert (one.app_id, one.name, one.user, one.host) == ("job-1", "job", "alice", os.uname().nodename)
        assert (one.submitted_at, one.started_at, one.finished_at) == (10.0, 20.0, 60.0)
        assert (one.state, one.image, one.notes) == (AppState.SUCCEEDED, "i:1", ["a note"])
    assert (row.app_handle, row.msg) == ("local_cwd://s/job-1", "")
    assert (row.replicas_running, row.replicas_wanted, row.replicas_succeeded) == (0, 1, 1)
    assert (told.msg, told.num_restarts, told.metadata, told.cfg) == ("<NONE>", 0, {"k": "v"}, {})
    assert (told.ui_url, told.log_dir) == (tmp_path.as_uri(), str(tmp_path))
    assert [(change.state, change.at) for change in told.timeline] == [
        (AppState.SUBMITTED, 10.0),
        (AppState.SUCCEEDED, 60.0),
    ]
    (replica,) = told.roles_statuses[0].replicas
    assert (replica.id, replica.role, replica.hostname, replica.pid) == (0, "r", os.uname().nodename, NOBODY)
    assert (replica.exit_code, replica.signal, replica.reason) == (0, "", "")
    assert (replica.started_at, replica.finished_at) == (20.0, 60.0)


def test_of_torchx_are_its_folder_and_its_options(make: Make) -> None:
    run = make(entry(), torchx_folder="/logs/job-1", cfg={"log_dir": "/logs"})
    assert (run.by_torchx, run.log_folder) == (True, Path("/logs/job-1"))
    assert run.replica_folder("r", 3) == Path("/logs/job-1/r/3")
    assert describe_run(run).cfg == {"log_dir": "/logs"}
    unknown = make(entry(), torchx_folder="")
    assert (unknown.log_folder, describe_run(unknown).ui_url, describe_run(unknown).log_dir) == (None, None, "")


def test_the_first_that_failed_is_the_reason(make: Make) -> None:
    first = entry(1, exit_code=3, finished_at=30.0)
    late = entry(0, exit_code=-9, finished_at=40.0)
    run = make(late, first, state="FAILED")
    assert why(run) == "exit 3: r/1"
    assert describe_run(run).msg == "exit 3: r/1"
    signals = {one.id: (one.signal, one.reason) for one in describe_run(run).roles_statuses[0].replicas}
    assert signals == {0: ("SIGKILL", "killed by SIGKILL"), 1: ("", "exit 3")}
    # What ended well needs no reason, and what nobody saw has none.
    assert why(make(late, first, state="SUCCEEDED")) == ""


def test_the_error_that_a_replica_left_is_the_reason(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "r" / "0"
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text("Traceback (most recent call last):\n  x\nValueError: from the log\n")
    failed = entry(exit_code=1, finished_at=30.0)
    assert why(make(failed, state="FAILED")) == "ValueError: from the log: r/0, exit 1"
    (folder / "error.json").write_text(" \n")
    assert why(make(failed, state="FAILED")) == "ValueError: from the log: r/0, exit 1"
    (folder / "error.json").write_bytes(b'{"message": "from \xff the file"}')
    run = make(failed, state="FAILED")
    assert why(run) == "from � the file: r/0, exit 1"
    (replica,) = describe_run(run).roles_statuses[0].replicas
    assert replica.structured_error_msg == describe_run(run).structured_error_msg == '{"message": "from � the file"}'
    other = tmp_path / "other.json"
    other.write_text("elsewhere")
    assert why(make({**failed, "error_file": str(other)}, state="FAILED")) == "elsewhere: r/0, exit 1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cancel": {"by": "bob", "at": 140.0}}, "cancelled by bob after 2m"),
        ({"cancel": {"by": "", "at": 140.0}, "started_at": None}, "cancelled after 2m"),
        ({"cancel": {}}, "cancelled after 0s"),
        ({"cancel": None, "reason": "the disk is full"}, "the disk is full"),
    ],
)
def test_a_cancelled_app_says_so(make: Make, fields: dict[str, Any], words: str) -> None:
    assert why(make(entry(exit_code=-15, finished_at=150.0), state="CANCELLED", **fields)) == words


def test_an_app_that_waits_says_for_what(make: Make) -> None:
    run = make(entry(pid=None), state="PENDING", waits_for=["a-1", "b-\x1b[2J1"], max_running=2)
    assert why(run) == "waits for a-1, b-1: at most 2 run at once here"
    assert why(make(entry(pid=None), state="PENDING")) == ""


@pytest.mark.parametrize(
    ("told", "fields", "words"),
    [
        ([errno.ENOENT, "/none", ""], {"command": "/none"}, "no such command: /none"),
        ([errno.ENOENT, "/none", ""], {"cwd": "/none"}, "its working folder cannot be used: /none: No such file"),
        ([errno.ENOENT, "sh", ""], {"command": "/bin/sh"}, "/bin/sh: the program that its first line names is missing"),
        ([errno.EACCES, "x", ""], {"command": "x"}, "cannot start x: it is not an executable file"),
        ([errno.ENOEXEC, "x", ""], {"command": "x"}, "cannot start x: it is not a program: it has no #! line"),
        ([errno.E2BIG, "x", ""], {"command": "x"}, "cannot start x: its arguments and environment are too long"),
        ([errno.EPERM, "x", ""], {"command": "x"}, "cannot start x: Operation not permitted: x"),
        ([None, None, "its own words"], {"command": "x"}, "cannot start x: its own words"),
    ],
)
def test_a_replica_that_could_not_be_started(make: Make, told: list[Any], fields: dict[str, Any], words: str) -> None:
    run = make(entry(pid=None, not_started=told, finished_at=30.0, **fields), state="FAILED")
    assert words in why(run)
    assert replica_state(run, run.replicas[0]) is AppState.FAILED
    assert words in describe_run(run).roles_statuses[0].replicas[0].reason


@pytest.mark.parametrize(
    ("fields", "of_app", "state"),
    [
        ({"exit_code": 0}, {}, AppState.SUCCEEDED),
        ({"exit_code": 1}, {"state": "FAILED"}, AppState.FAILED),
        ({"exit_code": -15, "finished_at": 55.0}, {"cancel": {"at": 55.0}}, AppState.CANCELLED),
        ({"exit_code": 1, "finished_at": 54.0}, {"cancel": {"at": 55.0}}, AppState.FAILED),
        ({}, {"state": "CANCELLED"}, AppState.CANCELLED),
        ({}, {"state": "FAILED"}, AppState.CANCELLED),
        ({}, {"state": "UNKNOWN"}, AppState.UNKNOWN),
        ({}, {"state": "RUNNING", "finished_at": None, "host": "elsewhere"}, AppState.RUNNING),
        ({"pid": None}, {"state": "PENDING", "finished_at": None, "host": "elsewhere"}, AppState.PENDING),
        ({"gone": True}, {"state": "RUNNING", "finished_at": None, "host": "elsewhere"}, AppState.UNKNOWN),
    ],
)
def test_the_state_of_a_replica(make: Make, fields: dict[str, Any], of_app: dict[str, Any], state: AppState) -> None:
    run = make(entry(**fields), **of_app)
    assert replica_state(run, run.replicas[0]) is state


def test_an_app_that_is_not_supervised_any_more(make: Make) -> None:
    before = {"state": "RUNNING", "finished_at": None, "heartbeat": time.time()}
    lives = entry(pid=os.getpid(), pid_started=started(os.getpid()))
    run = make(lives, entry(1), **before)
    assert (run.supervised, run.over, run.state, run.notes) == (False, False, AppState.RUNNING, ["unsupervised"])
    assert run.reason == "its supervisor was killed: how its replicas end will not be known"
    assert [replica_state(run, one) for one in run.replicas] == [AppState.RUNNING, AppState.UNKNOWN]
    # It was killed just before it could write that it had started them.
    assert make(lives, **{**before, "state": "SUBMITTED"}).state is AppState.RUNNING
    lost = make(entry(), **before)
    assert (lost.over, lost.state) == (True, AppState.UNKNOWN)
    assert lost.reason == "its supervisor was killed: how its replicas ended is not known"
    never = make(entry(pid=None), **{**before, "started_at": None})
    assert (never.over, never.state) == (True, AppState.FAILED)
    assert never.reason == "its supervisor was killed before it started the replicas"
    assert describe_run(never).timeline[-1].state is AppState.FAILED


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_the_last_sign_of_an_app_that_was_lost_is_its_end(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "r" / "0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").touch()
    os.utime(folder / "stdout.log", (700.0, 700.0))
    before = {"state": "RUNNING", "finished_at": None}
    assert list_run(make(entry(), heartbeat=600.0, **before)).finished_at == 700.0
    assert list_run(make(entry(), heartbeat=800.0, **before)).finished_at == 800.0
    os.utime(folder / "stdout.log", (1e12, 1e12))
    assert list_run(make(entry(), heartbeat=800.0, **before)).finished_at == pytest.approx(time.time(), abs=100)


# What is known of a job of TorchX


def test_a_document_of_a_job_that_runs() -> None:
    made = of_torchx.new_document("job-xk3v9q0w7zb2d", "local_cwd://s/job-xk3v9q0w7zb2d", Path("/logs"), 5.0)
    made["replicas"] = [of_torchx.new_replica(Path("/logs"), ("r", 2))]
    read = json.loads(json.dumps(made))
    unknown = dict.fromkeys(("pid", "pid_started", "exit_code", "started_at", "finished_at"))
    (replica,) = read.pop("replicas")
    assert replica == {"role": "r", "id": 2, "gone": True, **unknown, "error_file": "/logs/r/2/error.json"}
    assert read == {
        "format": FORMAT,
        "app_id": "job-xk3v9q0w7zb2d",
        "name": "job",
        "job_id": "local_cwd://s/job-xk3v9q0w7zb2d",
        "user": user_name(),
        "host": os.uname().nodename,
        "torchx_folder": "/logs",
        "log_dir": "/logs",
        "state": "RUNNING",
        "submitted_at": 5.0,
        "started_at": 5.0,
        "finished_at": None,
        "cancel": None,
        "timeline": [["RUNNING", 5.0]],
        "waits_for": [],
        "notes": [],
        "app": {},
        "cfg": {},
    }
    process = JobProcess(7, "9", 7, 1, 3.5, "", "")
    leader = {**unknown, "pid": 7, "pid_started": "9", "started_at": 3.5}
    assert of_torchx.new_replica(None, ("r", 0), process) == {
        **leader, "role": "r", "id": 0, "gone": False, "error_file": None
    }  # fmt: skip
    assert of_torchx.new_document("a", "", None, 5.0)["log_dir"] == ""


@pytest.mark.parametrize(
    ("final", "state"), [("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED"), ("RUNNING", "CANCELLED")]
)
def test_the_end_of_a_job(final: str, state: str) -> None:
    before = of_torchx.new_document("job", "", Path("/logs"), 5.0)
    before["replicas"] = [of_torchx.new_replica(Path("/logs"), ("r", 0))]
    rows = [{"replica_id": 0, "pid": 7, "exitcode": 3}, {"replica_id": 1, "pid": None, "exitcode": None}]
    success = {"last_updated": 9.0, "final_state": final, "roles": {"r": rows, "..": rows, "": rows, "a/b": rows}}
    after = of_torchx.final_document(before, success)
    assert (after["state"], after["finished_at"], after["timeline"][-1]) == (state, 9.0, [state, 9.0])
    assert after["cancel"] == ({"by": "", "at": 9.0} if state == "CANCELLED" else None)
    assert [(one["role"], one["id"], one["pid"], one["exit_code"]) for one in after["replicas"]] == [
        ("r", 0, 7, 3),
        ("r", 1, None, None),
    ]
    assert {one["finished_at"] for one in after["replicas"]} == {9.0}
    assert of_torchx.final_document(before, {**success, "last_updated": 0})["finished_at"] == 0.0
    for odd in (-1, 2**40, "nan"):
        with pytest.raises(ValueError, match="no time"):
            of_torchx.final_document(before, {**success, "last_updated": odd})


def test_replicas_are_found_by_their_folders(tmp_path: Path) -> None:
    for place in ("b/0", "a/10", "a/9", "a/x", "odd\n/0"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "stdout.log").touch()
    (tmp_path / "a" / "3").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    os.utime(tmp_path / "a", (500, 500))
    found = dict(of_torchx.places_in(tmp_path))
    assert set(found) == {("b", 0), ("a", 9), ("a", 10)}
    assert found["a", 9] == found["a", 10] == 500
    assert list(of_torchx.places_in(tmp_path / "none")) == []


def test_the_variables_of_a_replica_are_those_that_its_launcher_has_not() -> None:
    """A launcher starts a replica with variables of the role, of TorchX, and of shells."""
    shells = dict.fromkeys(("PWD", "OLDPWD", "_", "LOGLEVEL", "SHLVL", "PYTHONUNBUFFERED"), "9")
    added = {"LR": "0.1", "EMPTY": "", "TORCHX_X": "1", "PATH": "/usr/bin:/bin:/x", **shells}
    program = f"import os, subprocess; subprocess.run(['sleep', '300'], env={{**os.environ, **{added!r}}})"
    launcher = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, env={"LC_ALL": "C.UTF-8"})
    try:
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")

        def is_started() -> bool:
            pid = children.read_text().strip()
            return bool(pid) and of_torchx._texts(int(pid), "cmdline") == ["sleep", "300"]

        wait_until(is_started, "the replica")
        pid = int(children.read_text())
        process = JobProcess(pid, started(pid), launcher.pid, launcher.pid, 0.0, "", "")
        assert of_torchx._role_env(process) == {"LR": "0.1", "EMPTY": ""}
    finally:
        os.killpg(launcher.pid, 9)
        launcher.wait()
    assert of_torchx._role_env(process) == {}


# What is seldom


def test_a_damaged_state_file_has_a_row_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    run = read_run("job-1", tmp_path)
    assert run is not None
    row = list_run(run)
    assert (row.app_id, row.name, row.state, row.app_handle) == ("job-1", "job-1", AppState.UNKNOWN, "<NOT_SET>")
    assert (row.user, row.host, row.image, row.replicas_wanted) == ("", "", "", 0)
    assert (row.submitted_at, row.started_at, row.finished_at) == (None, None, None)
    assert "is damaged" in row.msg
    told = describe_run(run)
    assert (told.name, told.user, told.host, told.timeline, told.roles_statuses) == ("job-1", "", "", [], [])
    assert read_run("job-1", tmp_path / "none") is None


def test_a_replica_that_was_written_by_hand_has_words_too(make: Make) -> None:
    replica = {"role": "r", "id": 0, "pid": None, "pid_started": None, "exit_code": None}
    run = make({**replica, "not_started": [errno.EACCES, "x", ""]}, state="FAILED")
    assert why(run) == "cannot start : it is not an executable file"


def test_when_the_machine_started() -> None:
    # With a minute for a clock that was set since.
    assert record._booted_at() == pytest.approx(psutil.boot_time() + 60, abs=10)


def test_an_app_whose_processes_end_while_its_supervisor_lives_is_over_before_long(make: Make) -> None:
    lives = {"pid": os.getpid(), "pid_started": started(os.getpid()), "state": "RUNNING", "finished_at": None}
    job_id = "local_cwd://nobody/has-1"
    quiet = make(entry(), **lives, heartbeat=time.time() - 100, job_id=job_id)
    assert (quiet.state, quiet.over) == (AppState.UNKNOWN, True)
    assert quiet.reason.startswith("its processes have ended, but its state cannot be written")
    asked = make(entry(), **lives, heartbeat=time.time() - 100, job_id=job_id, cancel={"by": "a", "at": 1.0})
    assert asked.state is AppState.CANCELLED
    fresh = make(entry(), **lives, heartbeat=time.time(), job_id=job_id)
    assert (fresh.state, fresh.over, fresh.notes) == (AppState.RUNNING, False, [])
    waiting = make(entry(pid=None), **lives, heartbeat=time.time() - 100, job_id=job_id)
    assert (waiting.over, len(waiting.notes)) == (False, 1)
    killed = make(entry(), **{**lives, "pid": NOBODY}, heartbeat=time.time(), job_id=job_id, started_at=None)
    assert killed.reason == "its supervisor was killed: how its replicas ended is not known"


def test_what_local_jobs_can_do() -> None:
    can = LocalScheduler.capabilities
    assert (can.log_files, can.log_time_range, can.native, can.usage, can.working_folder) == (True,) * 5
    assert (can.retries, can.resources, can.shell) == (False,) * 3
