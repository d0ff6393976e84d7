"""Jobs of TorchX whose processes have ended: what SUCCESS says, or why nothing is known."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from backend.local.support import NOBODY, document, started
from support.tables import toml_table

from torchx_tui.backends.local.record import FORMAT, Run, read_document
from torchx_tui.backends.local.torchx import jobs
from torchx_tui.backends.local.torchx import record as of_torchx
from torchx_tui.backends.local.torchx.jobs import FinishedJobs, Seen, ended_run, read_success
from torchx_tui.backends.local.torchx.processes import JobProcess
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.base.files import user_name
from torchx_tui.specs.status import AppState

ROW = {"replica_id": 0, "pid": 7, "exitcode": 0}
NO_RECORDS = toml_table(Path(__file__).with_name("torchx.toml"))["no_records"]
no_records = pytest.mark.parametrize("changes", NO_RECORDS.values(), ids=list(NO_RECORDS))


def make_replicas(folder: Path, *places: str) -> None:
    for place in places:
        (folder / place).mkdir(parents=True)
        (folder / place / "stdout.log").touch()


def write(folder: Path, *, text: str | None = None, **changes: Any) -> Path:
    """Write what TorchX leaves of a job."""
    make_replicas(folder, "r/0")
    os.utime(folder / "r", (500.0, 500.0))
    known = {"app_id": folder.name, "final_state": "SUCCEEDED", "last_updated": 900.0, "roles": {"r": [ROW]}}
    (folder / "SUCCESS").write_text(json.dumps({**known, **changes}) if text is None else text)
    return folder


def look(*bases: Path) -> dict[str, Run]:
    return FinishedJobs(lambda: bases, Path("/state")).look()


class Clock:
    """Finished jobs of a folder, looked for 10 s after the last time."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        self.jobs = FinishedJobs(lambda: [base], Path("/state"))
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def look(self, seconds: float = 10) -> dict[str, Run]:
        self.now += seconds
        return self.jobs.look()


def test_job_as_its_record_says(tmp_path):
    folder = write(tmp_path / "session" / "job-1")
    (run,) = look(tmp_path, tmp_path).values()
    assert (run.app_id, run.state, run.over, run.notes) == ("job-1", AppState.SUCCEEDED, True, [BY_TORCHX])
    assert (run.job_id, run.folder, run.log_folder) == ("local_cwd://session/job-1", Path("/state/job-1"), folder)
    assert (run.document["started_at"], run.document["finished_at"]) == (500.0, 900.0)
    assert run.document["cfg"] == {"log_dir": str(tmp_path)}
    assert [(role.name, role.num_replicas) for role in run.app.roles] == [("r", 1)]
    (replica,) = run.replicas
    assert (replica["role"], replica["id"], replica["pid"], replica["exit_code"]) == ("r", 0, 7, 0)
    # A state file names each field with the right type.
    ours = {**run.document, **{name: document()[name] for name in ("boot_id", "pid", "pid_started", "heartbeat")}}
    assert read_document(json.dumps(ours).encode())["app_id"] == "job-1"


@no_records
def test_invalid_record_is_passed_over(tmp_path, changes):
    write(tmp_path / "session" / "job-1", **changes)
    write(tmp_path / "session" / "job-2")
    assert list(look(tmp_path)) == ["job-2"]


def test_folders_without_a_record(tmp_path):
    (write(tmp_path / "session" / "ours") / "state.json").write_text("{}")
    pipe = write(tmp_path / "session" / "pipe") / "SUCCESS"
    pipe.unlink()
    os.mkfifo(pipe)
    assert look(tmp_path, tmp_path / "none") == {}


def test_replicas_that_the_record_leaves_out(tmp_path):
    folder = write(tmp_path / "session" / "job-1")
    make_replicas(folder, "r/1", "s/0")
    for role, at in (("r", 500.0), ("s", 1500.0)):
        os.utime(folder / role, (at, at))
    (run,) = look(tmp_path).values()
    codes = {(one["role"], one["id"]): one["exit_code"] for one in run.replicas}
    assert codes == {("r", 0): 0, ("r", 1): None, ("s", 0): None}
    # Folders made after the end say nothing about the start.
    assert run.document["started_at"] == 500.0
    assert sorted((role.name, role.num_replicas) for role in run.app.roles) == [("r", 2), ("s", 1)]


def test_record_is_read_once_until_it_changes(tmp_path, monkeypatch):
    folder = write(tmp_path / "session" / "job-1")
    clock = Clock(tmp_path, monkeypatch)
    first = clock.look()["job-1"]
    write(tmp_path / "session" / "job-2")
    assert list(clock.look(0)) == ["job-1"]  # the answer of a moment ago
    found = clock.look()
    assert (set(found), found["job-1"] is first) == ({"job-1", "job-2"}, True)
    (folder / "SUCCESS").write_text((folder / "SUCCESS").read_text().replace("SUCCEEDED", "FAILED"))
    assert clock.look()["job-1"].state is AppState.FAILED
    (folder / "SUCCESS").unlink()
    assert list(clock.look()) == ["job-2"]


def test_newer_of_two_with_one_id_counts(tmp_path):
    for number, state in ((1, "SUCCEEDED"), (2, "FAILED")):
        folder = write(tmp_path / f"session-{number}" / "job-1", final_state=state)
        os.utime(folder / "SUCCESS", (number * 100.0, number * 100.0))
    assert look(tmp_path)["job-1"].state is AppState.FAILED


def test_latest_of_many_are_listed(tmp_path, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setattr(jobs, "MOST_FINISHED", 4)
    monkeypatch.setattr(jobs, "MOST_SESSIONS", 2)

    def look_after(*added: tuple[int, int]) -> list[str]:
        for session, number in added:
            folder = write(tmp_path / f"session-{session}" / f"job-{session}-{number}")
            os.utime(folder / "SUCCESS", (1000.0 * session + number,) * 2)
            os.utime(folder.parent, (1000.0 * session,) * 2)
        caplog.clear()
        return [app_id.removeprefix("job-") for app_id in look(tmp_path)]

    assert look_after((3, 1), (3, 2), (1, 1), (1, 2)) == ["3-2", "3-1", "1-2", "1-1"]
    assert caplog.messages == []
    assert look_after((2, 1)) == ["3-2", "3-1", "2-1"]
    assert caplog.messages == [f"{tmp_path}: 1 folders are not taken for sessions"]
    assert look_after((2, 2), (2, 3)) == ["3-2", "3-1", "2-3", "2-2"]
    assert "1 older jobs of TorchX are left out" in caplog.messages


def test_changed_folder_is_listed_again(tmp_path, monkeypatch):
    clock, session = Clock(tmp_path, monkeypatch), tmp_path / "session"

    def found_with(number: int, changed_at: float) -> list[str]:
        write(session / str(number))
        for folder, at in ((session, changed_at), (tmp_path, 1000.0)):
            os.utime(folder, (at, at))
        return sorted(clock.look())

    assert found_with(1, 1000.0) == ["1"]
    assert found_with(2, 1000.0) == ["1"]
    assert found_with(3, 1001.0) == ["1", "2", "3"]
    # What has changed just now may change again without a later time.
    later = time.time() + 3600
    assert found_with(4, later) == ["1", "2", "3", "4"]
    assert found_with(5, later) == ["1", "2", "3", "4", "5"]


def test_links_and_odd_names_are_passed_over(tmp_path):
    for place in ("session/job-1", "session/job-\n2", "odd\x1b/job-3", "elsewhere/session/job-4"):
        write(tmp_path / place)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "session")
    (tmp_path / "session" / "job-5").symlink_to(tmp_path / "elsewhere" / "session" / "job-4")
    assert list(look(tmp_path)) == ["job-1"]


# A job that was seen while it lived


def seen(folder: Path | None, *, launched: bool = False) -> Seen:
    made = of_torchx.new_document("job-1", "local_cwd://session/job-1", folder, 400.0)
    made["replicas"] = [of_torchx.new_replica(folder, ("r", number)) for number in (0, 1)]
    launcher = (os.getpid(), started(os.getpid())) if launched else (NOBODY, "1")
    return Seen(made, folder, Path("/state/job-1"), launcher)


def test_record_of_a_seen_job_says_how_it_ended(tmp_path):
    known = seen(write(tmp_path / "session" / "job-1"))
    run = ended_run(known)
    assert (run.state, run.over, run.reason, run.notes) == (AppState.SUCCEEDED, True, "", [BY_TORCHX])
    assert [(one["id"], one["exit_code"]) for one in run.replicas] == [(0, 0), (1, None)]
    known.run = run
    assert ended_run(known) is run


def test_launcher_has_time_to_write_the_record(tmp_path):
    folder = write(tmp_path / "session" / "job-1", text="{")
    known = seen(folder, launched=True)
    run = ended_run(known)
    assert (run.state, run.over, run.supervised) == (AppState.RUNNING, False, True)
    assert run.notes == [BY_TORCHX, "its replicas ended 0 s ago"]
    assert all(one["gone"] for one in run.replicas)
    assert known.gone_since is not None
    known.gone_since -= 3600
    lost = ended_run(known)
    assert (lost.state, lost.over, lost.document["finished_at"]) == (AppState.UNKNOWN, True, known.gone_since)
    assert lost.reason == "its replicas have ended, and the torchx process that ran it has not written how"
    # A late record counts.
    known.run = lost
    late = {"app_id": "job-1", "final_state": "FAILED", "last_updated": 900.0, "roles": {"r": [ROW]}}
    (folder / "SUCCESS").write_text(json.dumps(late))
    assert ended_run(known).state is AppState.FAILED


@no_records
def test_incomplete_record_is_waited_for(tmp_path, changes):
    known = seen(write(tmp_path / "session" / "job-1", **changes), launched=True)
    assert ended_run(known).state is AppState.RUNNING


def test_reasons_of_an_unknown_end(tmp_path):
    folder = tmp_path / "session" / "job-1"
    folder.mkdir(parents=True)
    lost = ended_run(seen(folder))
    assert lost.reason == "the torchx process that ran it ended without a record: how it ended is not known"
    assert lost.document["timeline"][-1] == ["UNKNOWN", lost.document["finished_at"]]
    assert (lost.state, lost.over, lost.supervised, lost.notes) == (AppState.UNKNOWN, True, False, [BY_TORCHX])
    folder.rmdir()
    removed = "it has ended, and TorchX removed its log folder: how it ended is not known"
    assert ended_run(seen(folder)).reason == ended_run(seen(folder, launched=True)).reason == removed
    unknown = "its processes have ended, and its log folder is not known: how it ended is not known"
    assert ended_run(seen(None)).reason == unknown
    assert not ended_run(seen(None, launched=True)).over
    assert read_success(folder) is None


# Documents


def test_document_of_a_running_job():
    made = of_torchx.new_document("job-xk3v9q0w7zb2d", "local_cwd://s/job-xk3v9q0w7zb2d", Path("/logs"), 5.0)
    assert made == {
        "format": FORMAT,
        "app_id": "job-xk3v9q0w7zb2d",
        "name": "job",
        "job_id": "local_cwd://s/job-xk3v9q0w7zb2d",
        "user": user_name(),
        "host": os.uname().nodename,
        **dict.fromkeys(("torchx_folder", "log_dir"), "/logs"),
        **dict.fromkeys(("submitted_at", "started_at"), 5.0),
        "waits_for": [],
        "notes": [],
        "replicas": [],
        "app": {},
        "cfg": {},
        **dict.fromkeys(("finished_at", "cancel")),
        "state": "RUNNING",
        "timeline": [["RUNNING", 5.0]],
    }
    assert of_torchx.new_document("a", "", None, 5.0)["log_dir"] == ""


def test_replicas_of_a_running_job():
    unknown = dict.fromkeys(("pid", "pid_started", "exit_code", "started_at", "finished_at"))
    gone = {**unknown, "role": "r", "id": 2, "gone": True, "error_file": "/logs/r/2/error.json"}
    assert of_torchx.new_replica(Path("/logs"), ("r", 2)) == gone
    leader = {"pid": 7, "pid_started": "9", "started_at": 3.5, "role": "r", "id": 0, "gone": False, "error_file": None}
    process = JobProcess(7, "9", 7, 1, 3.5, "", "")
    assert of_torchx.new_replica(None, ("r", 0), process) == {**unknown, **leader}


@pytest.mark.parametrize(
    ("final", "state"), [("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED"), ("RUNNING", "CANCELLED")]
)
def test_document_of_an_ended_job(final, state):
    before = of_torchx.new_document("job", "", Path("/logs"), 5.0)
    before["replicas"] = [of_torchx.new_replica(Path("/logs"), ("r", 0))]
    rows = [{**ROW, "exitcode": 3}, {"replica_id": 1, "pid": None, "exitcode": None}]
    # Roles that would lead to other folders are passed over.
    success = {"last_updated": 9.0, "final_state": final, "roles": dict.fromkeys(("r", "..", "", "a/b"), rows)}
    after = of_torchx.final_document(before, success)
    assert (after["state"], after["finished_at"], after["timeline"][-1]) == (state, 9.0, [state, 9.0])
    assert after["cancel"] == ({"by": "", "at": 9.0} if state == "CANCELLED" else None)
    replicas = [[one[name] for name in ("role", "id", "pid", "exit_code", "finished_at")] for one in after["replicas"]]
    assert replicas == [["r", 0, 7, 3, 9.0], ["r", 1, None, None, 9.0]]
    assert of_torchx.final_document(before, {**success, "last_updated": 0})["finished_at"] == 0.0
    for odd in (-1, 2**40, "nan"):
        with pytest.raises(ValueError, match="no time"):
            of_torchx.final_document(before, {**success, "last_updated": odd})


def test_replicas_by_their_folders(tmp_path):
    make_replicas(tmp_path, "b/0", "a/10", "a/9", "a/x", "odd\n/0")
    (tmp_path / "a" / "3").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for role, at in (("a", 500), ("b", 600)):
        os.utime(tmp_path / role, (at, at))
    assert dict(of_torchx.places_in(tmp_path)) == {("b", 0): 600, ("a", 9): 500, ("a", 10): 500}
    assert list(of_torchx.places_in(tmp_path / "none")) == []
