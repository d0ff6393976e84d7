"""What is told of a job of TorchX whose processes have ended: what SUCCESS says, or why nothing says it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.local.record import read_document
from torchx_tui.backends.local.torchx import jobs
from torchx_tui.backends.local.torchx.jobs import FinishedJobs, Seen, ended_run, read_success
from torchx_tui.backends.local.torchx.record import new_document, new_replica
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs import AppState

ROW = {"replica_id": 0, "pid": 7, "exitcode": 0}


def write(folder: Path, *, success: Any = None, state: bool = False, **changes: Any) -> Path:
    """Write what TorchX leaves of a job."""
    (folder / "r" / "0").mkdir(parents=True)
    (folder / "r" / "0" / "stdout.log").touch()
    os.utime(folder / "r", (500.0, 500.0))
    told = {"app_id": folder.name, "final_state": "SUCCEEDED", "last_updated": 900.0, "roles": {"r": [ROW]}, **changes}
    (folder / "SUCCESS").write_text(json.dumps(told) if success is None else success)
    if state:
        (folder / "state.json").write_text("{}")
    return folder


def look(*bases: Path) -> dict[str, Any]:
    return FinishedJobs(lambda: bases, Path("/state")).look()


def test_a_job_as_its_record_says(tmp_path: Path) -> None:
    folder = write(tmp_path / "session" / "job-1")
    (run,) = look(tmp_path, tmp_path).values()
    assert (run.app_id, run.state, run.over, run.notes) == ("job-1", AppState.SUCCEEDED, True, [BY_TORCHX])
    assert (run.job_id, run.folder, run.log_folder) == ("local_cwd://session/job-1", Path("/state/job-1"), folder)
    assert (run.document["started_at"], run.document["finished_at"]) == (500.0, 900.0)
    assert run.document["cfg"] == {"log_dir": str(tmp_path)}
    assert [(role.name, role.num_replicas) for role in run.app.roles] == [("r", 1)]
    (replica,) = run.replicas
    assert (replica["role"], replica["id"], replica["pid"], replica["exit_code"]) == ("r", 0, 7, 0)


NO_RECORDS: list[dict[str, Any]] = [
    {"success": "{"},
    {"success": "[]"},
    {"app_id": "other"},
    {"final_state": "JOGGING"},
    {"final_state": None},
    {"last_updated": "soon"},
    {"last_updated": None},
    {"last_updated": 1e300},
    {"last_updated": 10**400},
    {"roles": []},
    {"roles": {"r": [None]}},
    {"roles": {"r": [{**ROW, "replica_id": None}]}},
    {"roles": {"r": [{**ROW, "exitcode": float("inf")}]}},
    {"roles": {"r": [{}]}},
]


@pytest.mark.parametrize("changes", [*NO_RECORDS, {"state": True}])
def test_what_is_no_record_is_passed_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    write(tmp_path / "session" / "job-1", **changes)
    write(tmp_path / "session" / "job-2")
    assert list(look(tmp_path)) == ["job-2"]
    assert look(tmp_path / "none") == {}


def test_a_replica_that_the_record_leaves_out_is_known_by_its_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "session" / "job-1")
    for place in ("r/1", "s/0"):
        (folder / place).mkdir(parents=True)
        (folder / place / "stdout.log").touch()
    for role, at in (("r", 500.0), ("s", 1500.0)):
        os.utime(folder / role, (at, at))
    (run,) = look(tmp_path).values()
    assert {(one["role"], one["id"]): one["exit_code"] for one in run.replicas} == {
        ("r", 0): 0,
        ("r", 1): None,
        ("s", 0): None,
    }
    # What was made after the end tells nothing of the start.
    assert run.document["started_at"] == 500.0
    assert sorted((role.name, role.num_replicas) for role in run.app.roles) == [("r", 2), ("s", 1)]


def test_a_record_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "session" / "job-1")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    jobs = FinishedJobs(lambda: [tmp_path], Path("/state"))
    first = jobs.look()["job-1"]
    write(tmp_path / "session" / "job-2")
    assert list(jobs.look()) == ["job-1"]  # it was looked a moment ago
    now += 10
    found = jobs.look()
    assert set(found) == {"job-1", "job-2"}
    assert found["job-1"] is first
    told = json.loads((folder / "SUCCESS").read_text())
    (folder / "SUCCESS").write_text(json.dumps({**told, "final_state": "FAILED"}))
    now += 10
    assert jobs.look()["job-1"].state is AppState.FAILED
    (folder / "SUCCESS").unlink()
    now += 10
    assert list(jobs.look()) == ["job-2"]


def test_of_two_of_a_name_the_newer_counts(tmp_path: Path) -> None:
    for number, state in ((1, "SUCCEEDED"), (2, "FAILED")):
        folder = write(tmp_path / f"session-{number}" / "job-1", final_state=state)
        os.utime(folder / "SUCCESS", (number * 100.0, number * 100.0))
    assert look(tmp_path)["job-1"].state is AppState.FAILED


def test_of_very_many_the_latest_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setattr(jobs, "MOST_FINISHED", 4)
    monkeypatch.setattr(jobs, "_MOST_SESSIONS", 2)

    def add(session: int, number: int) -> None:
        folder = write(tmp_path / f"session-{session}" / f"job-{session}-{number}")
        os.utime(folder / "SUCCESS", (1000.0 * session + number,) * 2)
        os.utime(folder.parent, (1000.0 * session,) * 2)

    for session, number in ((3, 1), (3, 2), (1, 1), (1, 2)):
        add(session, number)
    assert list(look(tmp_path)) == ["job-3-2", "job-3-1", "job-1-2", "job-1-1"]
    assert caplog.messages == []
    add(2, 1)
    assert list(look(tmp_path)) == ["job-3-2", "job-3-1", "job-2-1"]
    assert caplog.messages == [f"{tmp_path}: 1 folders are not taken for sessions"]
    caplog.clear()
    for number in (2, 3):
        add(2, number)
    assert list(look(tmp_path)) == ["job-3-2", "job-3-1", "job-2-3", "job-2-2"]
    assert "1 older jobs of TorchX are left out" in caplog.messages


def test_a_folder_is_listed_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, session = time.monotonic(), tmp_path / "session"
    monkeypatch.setattr(time, "monotonic", lambda: now)
    finished = FinishedJobs(lambda: [tmp_path], Path("/state"))

    def found_with(number: int, changed_at: float) -> list[int]:
        nonlocal now
        now += 10
        write(session / f"job-{number}")
        for folder, at in ((session, changed_at), (tmp_path, 1000.0)):
            os.utime(folder, (at, at))
        return sorted(int(app_id.removeprefix("job-")) for app_id in finished.look())

    assert found_with(1, 1000.0) == [1]
    assert found_with(2, 1000.0) == [1]
    assert found_with(3, 1001.0) == [1, 2, 3]
    # What has changed just now may change again without a later time.
    later = time.time() + 3600
    assert found_with(4, later) == [1, 2, 3, 4]
    assert found_with(5, later) == [1, 2, 3, 4, 5]


def test_only_folders_with_names_of_one_line_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "session" / "job-1")
    write(tmp_path / "session" / "job-\n2")
    write(tmp_path / "odd\x1b" / "job-3")
    (tmp_path / "file").touch()
    write(tmp_path / "elsewhere" / "session" / "job-4")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "session")
    (tmp_path / "session" / "job-5").symlink_to(tmp_path / "elsewhere" / "session" / "job-4")
    assert list(look(tmp_path)) == ["job-1"]


def test_as_many_are_told_as_a_list_has_room_for(tmp_path: Path) -> None:
    for number in range(51):
        write(tmp_path / "many" / f"session-{number}" / f"job-{number}")
    assert len(look(tmp_path / "many")) == 50
    for number in range(201):
        write(tmp_path / "one" / "session" / f"job-{number}")
    assert len(look(tmp_path / "one")) == 200


# A job that was seen while it lived


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def seen(folder: Path | None, *, launched: bool = False) -> Seen:
    document = new_document("job-1", "local_cwd://session/job-1", folder, 400.0)
    document["replicas"] = [new_replica(folder, ("r", 0)), new_replica(folder, ("r", 1))]
    launcher = (os.getpid(), started(os.getpid())) if launched else (1 << 22, "1")
    return Seen(document, folder, Path("/state/job-1"), launcher)


def test_its_record_says_how_it_ended(tmp_path: Path) -> None:
    known = seen(write(tmp_path / "session" / "job-1"))
    run = ended_run(known)
    assert (run.state, run.over, run.reason, run.notes) == (AppState.SUCCEEDED, True, "", [BY_TORCHX])
    assert [(one["id"], one["exit_code"]) for one in run.replicas] == [(0, 0), (1, None)]
    known.run = run
    assert ended_run(known) is run


def test_its_launcher_has_a_moment_to_write_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "session" / "job-1", success="{")
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
    # Who writes it late is believed.
    known.run = lost
    told = {"app_id": "job-1", "final_state": "FAILED", "last_updated": 900.0, "roles": {"r": [ROW]}}
    (folder / "SUCCESS").write_text(json.dumps(told))
    assert ended_run(known).state is AppState.FAILED


@pytest.mark.parametrize("changes", NO_RECORDS)
def test_a_record_that_is_none_yet_is_waited_for(tmp_path: Path, changes: dict[str, Any]) -> None:
    known = seen(write(tmp_path / "session" / "job-1", **changes), launched=True)
    assert ended_run(known).state is AppState.RUNNING


def test_why_nothing_says_how_it_ended(tmp_path: Path) -> None:
    folder = tmp_path / "session" / "job-1"
    folder.mkdir(parents=True)
    lost = ended_run(seen(folder))
    assert lost.reason == "the torchx process that ran it ended without a record: how it ended is not known"
    assert lost.document["timeline"][-1] == ["UNKNOWN", lost.document["finished_at"]]
    assert (lost.state, lost.over, lost.supervised, lost.notes) == (AppState.UNKNOWN, True, False, [BY_TORCHX])
    folder.rmdir()
    assert (
        ended_run(seen(folder)).reason == "it has ended, and TorchX removed its log folder: how it ended is not known"
    )
    assert ended_run(seen(folder, launched=True)).over
    assert ended_run(seen(None)).reason == (
        "its processes have ended, and its log folder is not known: how it ended is not known"
    )
    assert not ended_run(seen(None, launched=True)).over
    assert read_success(folder) is None


def test_a_state_file_of_ours_names_no_field_that_is_unknown(tmp_path: Path) -> None:
    write(tmp_path / "session" / "job-1")
    (run,) = look(tmp_path).values()
    ours = {**run.document, "boot_id": "b", "pid": 1, "pid_started": "1", "heartbeat": 1.0}
    assert read_document(json.dumps(ours).encode())["app_id"] == "job-1"
