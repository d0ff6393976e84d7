"""State files: each field checked, and what they mean for rows and descriptions."""

import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from backend.local.support import NOBODY, document, entry, started
from support.tables import toml_table
from support.waiting import wait_until

from torchx_tui.backends.local import record
from torchx_tui.backends.local.describe import describe_run, list_run, replica_state, why
from torchx_tui.backends.local.record import FORMAT, format_age
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.local.state_file import read_document
from torchx_tui.backends.types import DescribeAppResponse, ListAppResponse, StateChange
from torchx_tui.base.processes import is_running
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState, ReplicaStatus

TABLES = toml_table(Path(__file__).with_name("state_files.toml"))
ENTRY_REQUIRED = {"role", "id", "pid", "pid_started", "exit_code"}
OPTIONAL = ["waits_for", "notes", "session", "reason", "app_id", "log_dir", "cancel", "max_running"]


def cases(table):
    """Parametrize with a table of state_files.toml."""
    return pytest.mark.parametrize("case", TABLES[table].values(), ids=list(TABLES[table]))


def fields_of(case, key):
    """Return fields of a state file; TOML has no null, so False stands for it."""
    pids = {"ours": os.getpid(), "reused": os.getpid(), False: None}
    fields: dict[str, Any] = {name: None if value is False else value for name, value in case.get(key, {}).items()}
    if "pid" in case.get(key, {}):
        pid = case[key]["pid"]
        fields["pid"] = pids.get(pid, pid)
        fields["pid_started"] = started(os.getpid()) if pid == "ours" else "1"
    if "heartbeat" in fields:
        fields["heartbeat"] += time.time()
    return fields


def fault_of(made):
    with pytest.raises(ValueError) as refused:
        read_document(json.dumps(made).encode())
    return str(refused.value)


@pytest.mark.parametrize("name", sorted(set(document()) - {"started_at", "finished_at"}))
def test_missing_field_is_named(name):
    made = document(entry())
    del made[name]
    assert name in fault_of(made)


@pytest.mark.parametrize("name", [*document(), *OPTIONAL, "cfg"])
def test_field_of_wrong_type_is_named(name):
    assert name in fault_of({**document(), name: [[7]]})


@pytest.mark.parametrize("name", [*entry(), "not_started"])
def test_replica_field_of_wrong_type_is_named(name):
    assert f"replicas[1].{name}" in fault_of(document(entry(), entry(1, **{name: [[7]]})))


@pytest.mark.parametrize("name", sorted(ENTRY_REQUIRED))
def test_missing_replica_field_is_named(name):
    fault = fault_of(document({key: value for key, value in entry().items() if key != name}))
    assert "replicas[0]" in fault
    assert f"`{name}`" in fault


@pytest.mark.parametrize("name", TABLES["good"])
def test_values(name):
    def made(values):
        return document(entry(**values)) if name == "replicas" else document(**values)

    for values in TABLES["good"][name]:
        assert read_document(json.dumps(made(values)).encode()) == made(values)
    for values in TABLES["bad"][name]:
        assert name in fault_of(made(values))


@cases("judged")
def test_state_by_what_lives(make, case):
    known = {"state": "RUNNING", "finished_at": None, "heartbeat": time.time(), "job_id": "local_cwd://nobody/has-1"}
    run = make(entry(**fields_of(case, "replica")), **{**known, **fields_of(case, "fields")})
    expected = (case["state"], case.get("over", False), case.get("reason", ""), case.get("notes", []))
    assert (run.state.name, run.over, run.reason, run.notes) == expected
    assert (list_run(run).finished_at is not None) is run.over
    assert run.supervised is not (run.over or "unsupervised" in run.notes)
    if run.over:
        assert describe_run(run).timeline[-1].state is run.state


def test_replicas_of_a_killed_supervisor(make):
    lives = entry(pid=os.getpid(), pid_started=started(os.getpid()))
    run = make(lives, entry(1), state="RUNNING", finished_at=None)
    assert [replica_state(run, one) for one in run.replicas] == [AppState.RUNNING, AppState.UNKNOWN]


def test_another_machine_of_the_same_name(make):
    running = {"boot_id": "of another machine", "state": "RUNNING", "finished_at": None}
    # A minute of room, for a clock that was set since.
    other = make(entry(), **running, heartbeat=psutil.boot_time() + 70)
    assert (other.state, other.here) == (AppState.RUNNING, False)
    restarted = make(entry(), **running, heartbeat=psutil.boot_time() + 50)
    assert (restarted.state, restarted.here) == (AppState.FAILED, True)


def test_all_fields_are_shown(make):
    app = {"name": "job", "roles": [{"name": "r", "image": "i:1", "num_replicas": 1}], "metadata": {"k": "v"}}
    run = make(entry(exit_code=0, finished_at=60.0), app=app, notes=["a note"], cfg={"log_dir": "/x"})
    host = os.uname().nodename
    common = {
        "app_id": "job-1", "name": "job", "user": "alice", "host": host, "submitted_at": 10.0, "started_at": 20.0,
        "finished_at": 60.0, "state": AppState.SUCCEEDED, "image": "i:1", "notes": ["a note"],
    }  # fmt: skip
    counts = {"replicas_running": 0, "replicas_wanted": 1, "replicas_succeeded": 1}
    assert list_run(run) == ListAppResponse(app_handle="local_cwd://s/job-1", msg="", **common, **counts)
    described = describe_run(run)
    replica = ReplicaStatus(
        0, AppState.SUCCEEDED, "r", host, pid=NOBODY, exit_code=0, signal="", started_at=20.0, finished_at=60.0
    )
    assert [status.replicas for status in described.roles_statuses] == [[replica]]
    assert described == DescribeAppResponse(
        **common,
        num_restarts=0,
        metadata={"k": "v"},
        ui_url=run.folder.as_uri(),
        log_dir=str(run.folder),
        insight_dir=str(run.folder / "insight"),
        timeline=[StateChange(AppState.SUBMITTED, 10.0), StateChange(AppState.SUCCEEDED, 60.0)],
        roles=run.app.roles,
        roles_statuses=described.roles_statuses,
    )


def test_first_failure_is_the_reason(make):
    first = entry(1, exit_code=3, finished_at=30.0)
    late = entry(0, exit_code=-9, finished_at=40.0)
    run = make(late, first, state="FAILED")
    assert why(run) == describe_run(run).msg == "exit 3: r/1"
    signals = {one.id: (one.signal, one.reason) for one in describe_run(run).roles_statuses[0].replicas}
    assert signals == {0: ("SIGKILL", "killed by SIGKILL"), 1: ("", "exit 3")}
    # What ended well needs no reason.
    assert why(make(late, first, state="SUCCEEDED")) == ""


@cases("why")
def test_reason_of_a_state(make, case):
    assert why(make(entry(exit_code=-15, finished_at=150.0), **fields_of(case, "fields"))) == case["why"]


@cases("not_started")
def test_replica_that_could_not_be_started(make, case):
    error = getattr(errno, case.get("error", ""), None)
    failed = entry(pid=None, not_started=[error, case.get("file"), case.get("text", "")], finished_at=30.0)
    run = make({**failed, **case["entry"]}, state="FAILED")
    assert why(run) == describe_run(run).roles_statuses[0].replicas[0].reason == case["why"]
    assert replica_state(run, run.replicas[0]) is AppState.FAILED


def test_replica_with_required_fields_alone(make):
    replica = {name: value for name, value in entry(pid=None).items() if name in ENTRY_REQUIRED}
    run = make({**replica, "not_started": [errno.EACCES, "x", ""]}, state="FAILED")
    assert why(run) == "cannot start : it is not an executable file"


@cases("replica")
def test_state_of_a_replica(make, case):
    run = make(entry(**fields_of(case, "entry")), **fields_of(case, "app"))
    assert replica_state(run, run.replicas[0]) is AppState[case["state"]]


def test_end_of_a_lost_app_is_its_last_sign(make):
    def finished_at(heartbeat, printed_at):
        os.utime(log, (printed_at, printed_at))
        return list_run(make(entry(), heartbeat=heartbeat, state="RUNNING", finished_at=None)).finished_at

    log = make(entry()).replica_folder("r", 0) / "stdout.log"
    log.parent.mkdir(parents=True)
    log.touch()
    assert [finished_at(600.0, 700.0), finished_at(800.0, 700.0)] == [700.0, 800.0]
    assert finished_at(800.0, 1e12) == pytest.approx(time.time(), abs=100)


@pytest.mark.parametrize(("seconds", "text"), TABLES["ages"])
def test_ages(seconds, text):
    assert format_age(seconds) == text


def test_another_host_is_never_signalled(local, monkeypatch):
    folder = local.put("job-1", document(entry(), host="node7", state="RUNNING", finished_at=None))
    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", lambda *_: pytest.fail("signalled"))
        local.scheduler.cancel("job-1")
        local.scheduler.cancel("job-1")
    asked = json.loads((folder / "cancel.json").read_text())
    assert (asked["host"], bool(asked["by"])) == (os.uname().nodename, True)


def test_newer_format_is_read_only(local, make):
    ours = {"pid": os.getpid(), "pid_started": started(os.getpid())}
    run = make(entry(**ours), **ours, format=FORMAT + 1, state="RUNNING", finished_at=None, heartbeat=time.time())
    for action in (local.scheduler.cancel, local.scheduler.delete):
        with pytest.raises(SchedulerError, match="newer"):
            action("job-1")
    assert [path.name for path in run.folder.iterdir()] == ["state.json"]


DAMAGES = {
    "cut": json.dumps(document())[:50],
    "empty": "",
    "list": "[]",
    "state": json.dumps(document(state="JOGGING")),
    "replicas": json.dumps(document({})),
    "deep": "[" * 200_000,
    "deep_inside": json.dumps(document()).replace('"alice"', "[" * 900 + "]" * 900),
}


@pytest.mark.parametrize("text", DAMAGES.values(), ids=list(DAMAGES))
def test_damaged_state_file_affects_its_app_alone(local, text):
    local.put("whole-1", document(entry(exit_code=0)))
    path = local.put("hurt-1", text.encode()) / "state.json"
    rows = {row.app_id: row for row in local.scheduler.list()}
    assert rows["whole-1"].state is AppState.SUCCEEDED
    reason = rows["hurt-1"].msg
    assert reason.startswith(f"its state file is damaged: {path}: ")
    unknown = ListAppResponse("hurt-1", AppState.UNKNOWN, name="hurt-1", msg=reason)
    assert (rows["hurt-1"], local.describe("hurt-1").roles_statuses) == (unknown, [])
    assert local.scheduler.describe_native("hurt-1") == reason
    with pytest.raises(SchedulerError, match="cannot be cancelled: its state file is damaged"):
        local.scheduler.cancel("hurt-1")
    local.scheduler.delete("hurt-1")
    assert not local.scheduler.exists("hurt-1")


def test_unreadable_state_file_ends_no_app(local):
    path = local.put("job-1", document()) / "state.json"
    kept = path.rename(path.with_name("kept"))
    path.symlink_to(path)
    (row,) = local.scheduler.list()
    reason = f"its state cannot be read: Too many levels of symbolic links: {path}"
    assert (row.app_id, row.state, row.msg, local.run("job-1").over) == ("job-1", AppState.UNKNOWN, reason, False)
    with pytest.raises(SchedulerError, match="cannot be cancelled: its state cannot be read"):
        local.scheduler.cancel("job-1")
    kept.rename(path)
    assert local.run("job-1").state is AppState.SUCCEEDED


def test_damaged_record_affects_its_app_alone(local):
    folder = local.put("whole-1", document())
    written = local.runs.record_path("whole-1")
    assert json.loads(written.read_text()) == {"format": FORMAT, "folder": str(folder)}
    for text in ("", "{", "[]", "{}", "5", '{"folder": 5}', '{"folder": null}'):
        written.with_name("hurt-1.json").write_text(text)
        assert [row.app_id for row in local.scheduler.list()] == ["whole-1"]
        assert not local.scheduler.exists("hurt-1")
        local.scheduler.prune(dryrun=True)


@pytest.mark.parametrize("text", ["", "{", '{"folder": 5}'])
def test_app_is_found_without_its_record(local, text):
    app_id = local.start_running()
    local.runs.record_path(app_id).write_text(text)
    other = LocalScheduler("s", root=local.root)
    assert [(row.app_id, row.state) for row in other.list()] == [(app_id, AppState.RUNNING)]
    other.cancel(app_id)
    local.end_as(app_id, AppState.CANCELLED)
    other.delete(app_id)
    assert not other.exists(app_id)


def test_missing_folder_is_no_app(local):
    folder = local.put("job-1", document())
    assert local.scheduler.exists("job-1")
    folder.rename(folder.with_name("elsewhere"))
    assert (local.scheduler.describe("job-1"), local.scheduler.list()) == (None, [])


@pytest.mark.parametrize("app_id", ["", "..", "../x", "a/b", "\0", "x" * 5000], ids=lambda app_id: repr(app_id)[:9])
def test_odd_ids_are_no_apps(local, app_id):
    assert local.scheduler.describe(app_id) is None


def test_end_that_is_written_while_it_is_read(local, monkeypatch):
    """The file is read, then the supervisor writes the end and goes, then the reader finds that it has gone."""
    local.put("job-1", document(entry(), state="RUNNING", finished_at=None))

    def ends_now(pid, start):
        if (pid, start) == (NOBODY, "1"):
            local.put("job-1", document(entry(exit_code=0)))
        return False

    with monkeypatch.context() as patched:
        patched.setattr(record, "is_running", ends_now)
        assert local.run("job-1").state is AppState.SUCCEEDED


def test_named_pipe_as_a_request_to_cancel(local):
    app_id = local.start_running()
    os.mkfifo(local.run(app_id).folder / "cancel.json")
    local.end_as(app_id, AppState.CANCELLED)


def _put_a_folder_in_place_of(path):
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


@pytest.mark.parametrize("end", ["cancel", "delete", "signal"])
def test_folder_as_state_file_of_a_running_job(local, end):
    app_id = local.start_running()
    state, folder = local.state(app_id), local.run(app_id).folder
    _put_a_folder_in_place_of(folder / "state.json")
    if end == "signal":
        os.kill(state["pid"], signal.SIGTERM)
    else:
        getattr(local.scheduler, end)(app_id)
    wait_until(lambda: not is_running(state["pid"], state["pid_started"]), "the end of its supervisor")
    assert not is_running(state["replicas"][0]["pid"], state["replicas"][0]["pid_started"])
    described = local.scheduler.describe(app_id)
    left = (None, False) if end == "delete" else (AppState.CANCELLED, True)
    assert (described and described.state, folder.exists()) == left


def test_folder_as_state_file_of_an_ended_job(local):
    folder = local.put("job-1", document())
    _put_a_folder_in_place_of(folder / "state.json")
    (row,) = local.scheduler.list()
    assert (row.state, "state.json: Is a directory" in row.msg) == (AppState.UNKNOWN, True)
    local.scheduler.delete("job-1")
    assert (local.scheduler.list(), folder.exists()) == ([], False)
