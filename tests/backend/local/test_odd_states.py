"""State files that hold anything: each costs its own row at most, and the other jobs are there."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from backend.local.support import Local
from support.odd_values import odd_text
from support.waiting import wait_until

from torchx_tui.backends.api import ListAppResponse
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.local import describe as listing
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppState
from torchx_tui.specs.foreign import encode_json
from torchx_tui.specs.processes import is_running

CASES = 2000
_BATCH = 500


def document(app_id: str) -> dict[str, Any]:
    """Return the state of an app that succeeded."""
    role = {"name": "sh", "image": "", "entrypoint": "sh", "args": ["-c", "true"], "env": {"A": "1"}, "num_replicas": 2}
    replica = {"role": "sh", "pid": 4000000, "pid_started": "12", "exit_code": 0, "started_at": 2.0, "finished_at": 3.0}
    more = {"error_file": None, "command": "sh", "cwd": None}
    return {
        "format": 1,
        "app_id": app_id,
        "session": "torchx",
        "name": "sh",
        "user": "me",
        "host": "here",
        "boot_id": "b",
        "pid": 4000000,
        "pid_started": "11",
        "job_id": f"local_cwd://torchx/{app_id}",
        "submitted_at": 1.0,
        "started_at": 2.0,
        "finished_at": 3.0,
        "heartbeat": 3.0,
        "state": "SUCCEEDED",
        "timeline": [["SUBMITTED", 1.0], ["RUNNING", 2.0], ["SUCCEEDED", 3.0]],
        "cancel": {"by": "me", "at": 2.5},
        "waits_for": [],
        "max_running": 0,
        "notes": ["a"],
        "log_dir": "/tmp/x",
        "replicas": [{**replica, **more, "id": number} for number in range(2)],
        "app": {"format": 1, "name": "sh", "roles": [role], "metadata": {"a": [1, {"b": "c"}]}},
        "cfg": {"auto_set_cuda_visible_devices": False},
    }


def put(local: Local, app_id: str, text: bytes) -> None:
    folder = local.root / "torchx" / app_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_bytes(text)
    local.scheduler._runs.record_path(app_id).write_text(json.dumps({"format": 1, "folder": str(folder)}))


def test_any_state_file(make_local: Callable[..., Local], tmp_path: Path) -> None:
    chance = random.Random(1)
    local = make_local()
    (local.root / "runs").mkdir(parents=True)
    runner = Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": local.scheduler})
    for _ in range(CASES // _BATCH):
        for number in range(_BATCH):
            put(local, f"odd-{number}", odd_text(chance, document(f"odd-{number}")))
        for name in ("good-a", "good-b"):
            put(local, name, json.dumps(document(name)).encode())
        rows = runner.list("local_cwd")
        states = {row.app_id: row.state for row in rows}
        assert len(rows) == len(states) == _BATCH + 2
        assert (states["good-a"], states["good-b"]) == (AppState.SUCCEEDED, AppState.SUCCEEDED)
        json.loads(encode_json([asdict(row) for row in rows]), parse_constant=pytest.fail)
        for number, app_id in enumerate(states):
            described = runner.describe(f"local_cwd://torchx/{app_id}")
            assert described is not None
            json.loads(encode_json(asdict(described)), parse_constant=pytest.fail)
            if number % 5 == 0:
                runner.describe_native(f"local_cwd://torchx/{app_id}")


def test_nesting_without_end_costs_its_row(local: Local) -> None:
    (local.root / "runs").mkdir(parents=True)
    put(local, "deep", b"[" * 200_000)
    put(local, "deep-inside", json.dumps(document("x")).replace('"me"', "[" * 900 + "]" * 900).encode())
    put(local, "good", json.dumps(document("good")).encode())
    rows = {row.app_id: row for row in local.scheduler.list()}
    assert {app_id: row.state for app_id, row in rows.items()} == {
        "deep": AppState.UNKNOWN,
        "deep-inside": AppState.UNKNOWN,
        "good": AppState.SUCCEEDED,
    }
    assert "nested deeper than 100 levels" in rows["deep"].msg


def test_a_row_of_torchx_is_made_anew_when_its_job_has_changed(monkeypatch):
    made = []

    def list_run(run):
        made.append(run.state)
        return ListAppResponse("job-1", run.state)

    monkeypatch.setattr(listing, "list_run", list_run)
    running, failed = (SimpleNamespace(app_id="job-1", state=state) for state in (AppState.RUNNING, AppState.FAILED))
    apps = SimpleNamespace(torchx_apps=lambda: [running])
    rows = listing.Listing(SimpleNamespace(app_ids=list), apps)  # type: ignore[arg-type]
    assert [row.state for _ in range(2) for row in rows.rows()] == [AppState.RUNNING] * 2
    apps.torchx_apps = lambda: [failed]
    assert [row.state for row in rows.rows()] == [AppState.FAILED]
    # What has not changed is read once.
    assert made == [AppState.RUNNING, AppState.FAILED]


def _put_a_folder_in_place_of(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


@pytest.mark.parametrize("end", ["cancel", "delete", "signal"])
def test_a_folder_as_state_file_does_not_keep_a_job_running(local: Local, end: str) -> None:
    app_id = local.start("sleep 300")
    state, folder = local.running(app_id), local.run(app_id).folder
    _put_a_folder_in_place_of(folder / "state.json")
    if end == "signal":
        os.kill(state["pid"], signal.SIGTERM)
    else:
        getattr(local.scheduler, end)(app_id)
    wait_until(lambda: not is_running(state["pid"], state["pid_started"]), "the end of its supervisor")
    assert not is_running(state["replicas"][0]["pid"], state["replicas"][0]["pid_started"])
    described = local.scheduler.describe(app_id)
    if end == "delete":
        assert (described, folder.exists()) == (None, False)
    else:
        assert described is not None
        assert described.state is AppState.CANCELLED


def test_an_ended_job_with_a_folder_as_state_file_can_be_deleted(local: Local) -> None:
    app_id = local.start("exit 0")
    folder = local.ended(app_id).folder
    wait_until(lambda: not list((local.root / "turns").iterdir()), "the end of its supervisor")
    _put_a_folder_in_place_of(folder / "state.json")
    (row,) = local.scheduler.list()
    assert (row.state, "state.json: Is a directory" in row.msg) == (AppState.UNKNOWN, True)
    local.scheduler.delete(app_id)
    assert (local.scheduler.list(), folder.exists()) == ([], False)
