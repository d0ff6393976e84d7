"""State files of other machines, other boots, other versions, and damaged ones."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backend.local.support import Local
from support.waiting import wait_until

from torchx_tui.backends.local import record, supervisor
from torchx_tui.backends.local.record import format_age
from torchx_tui.specs import AppState, SchedulerError
from torchx_tui.specs.processes import Process, send_signal


@pytest.fixture
def frozen(local: Local) -> Iterator[tuple[Local, str]]:
    """A running app whose supervisor is stopped, so that its state file can be changed."""
    app_id = local.start("sleep 300")
    # The heartbeat after RUNNING must not come between.
    pid = local.running(app_id)["pid"]
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "its stop")
    before = local.state(app_id)
    yield local, app_id
    local.edit_state(app_id, **before)
    os.kill(pid, signal.SIGCONT)


def test_another_host(frozen: tuple[Local, str]) -> None:
    local, app_id = frozen
    local.edit_state(app_id, host="node7", boot_id="other", pid=1, heartbeat=time.time() - 40)
    run = local.run(app_id)
    assert run.state == AppState.RUNNING
    assert run.notes in (["on node7, last heard from 40 s ago"], ["on node7, last heard from 41 s ago"])
    # Never called dead, however long it is quiet.
    local.edit_state(app_id, host="node7", heartbeat=time.time() - 90000)
    assert local.run(app_id).state == AppState.RUNNING
    assert local.run(app_id).notes == ["on node7, last heard from 25 h ago"]


def test_another_host_is_never_signalled(frozen: tuple[Local, str], monkeypatch: pytest.MonkeyPatch) -> None:
    local, app_id = frozen
    local.edit_state(app_id, host="node7")
    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", lambda *_: pytest.fail("signalled"))
        local.scheduler.cancel(app_id)
        local.scheduler.cancel(app_id)
    asked = json.loads((local.run(app_id).folder / "cancel.json").read_text())
    assert asked["host"] == os.uname().nodename
    assert asked["by"]


def test_another_boot(frozen: tuple[Local, str]) -> None:
    local, app_id = frozen
    local.edit_state(app_id, boot_id="earlier", heartbeat=time.time() - 10 * 365 * 86400)
    row = local.scheduler.list()[0]
    assert (row.state, row.msg) == (AppState.FAILED, "the machine restarted")
    assert row.finished_at is not None


def test_another_machine_of_the_same_name(frozen: tuple[Local, str], monkeypatch: pytest.MonkeyPatch) -> None:
    local, app_id = frozen
    monkeypatch.setattr("torchx_tui.backends.local.record._booted_at", lambda: time.time() - 3600)
    local.edit_state(app_id, boot_id="of another machine")
    assert local.run(app_id).state == AppState.RUNNING
    assert not local.run(app_id).here


def test_a_reused_pid_is_not_the_supervisor(frozen: tuple[Local, str]) -> None:
    local, app_id = frozen
    replica = {**local.state(app_id)["replicas"][0], "pid": os.getpid(), "pid_started": "1"}
    local.edit_state(app_id, pid=os.getpid(), pid_started="1", replicas=[replica], job_id="local_cwd://s/nobody")
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        run = local.run(app_id)
        assert run.state == AppState.UNKNOWN
        local.scheduler.cancel(app_id)
        send_signal(Process(os.getpid(), 0, 0, "1", False), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == []


def test_a_quiet_supervisor_is_said_to_be(frozen: tuple[Local, str]) -> None:
    local, app_id = frozen
    local.edit_state(app_id, heartbeat=time.time() - 120)
    assert local.run(app_id).notes == ["its state was written 2 min ago: is the disk full?"]


def test_a_newer_format_is_read_only(frozen: tuple[Local, str]) -> None:
    local, app_id = frozen
    local.edit_state(app_id, format=supervisor.FORMAT + 1)
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.state == AppState.RUNNING
    assert "newer" in described.notes[0]
    for action in (local.scheduler.cancel, local.scheduler.delete):
        with pytest.raises(SchedulerError, match="newer"):
            action(app_id)
    assert not (local.run(app_id).folder / "cancel.json").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"RUNNING"', '"JOGGING"').replace('"SUCCEEDED"', '"JOGGING"'),
        lambda text: json.dumps({**json.loads(text), "replicas": [{}]}),
        lambda text: json.dumps({**json.loads(text), "heartbeat": None}),
    ],
    ids=["cut", "empty", "list", "state", "replicas", "heartbeat"],
)
def test_a_damaged_state_file_costs_that_app_alone(local: Local, damage: Callable[[str], str]) -> None:
    whole, hurt = local.start("exit 0"), local.start("exit 0")
    for app_id in (whole, hurt):
        local.ended(app_id)
    path = local.run(hurt).folder / "state.json"
    path.write_text(damage(path.read_text()))
    rows = {row.app_id: row for row in local.scheduler.list()}
    assert rows[whole].state == AppState.SUCCEEDED
    assert rows[hurt].state == AppState.UNKNOWN
    assert "damaged" in rows[hurt].msg
    assert str(path) in rows[hurt].msg
    described = local.scheduler.describe(hurt)
    assert described is not None
    assert described.roles == []
    local.scheduler.describe_native(hurt)
    with pytest.raises(SchedulerError, match="cannot be cancelled: its state file is damaged"):
        local.scheduler.cancel(hurt)
    local.scheduler.delete(hurt)
    assert not local.scheduler.exists(hurt)


def test_a_state_file_that_cannot_be_read_now_ends_no_app(local: Local) -> None:
    app_id = local.start("exit 0")
    path = local.ended(app_id).folder / "state.json"
    kept = path.rename(path.with_name("kept"))
    path.symlink_to(path)
    (row,) = local.scheduler.list()
    words = f"its state cannot be read: Too many levels of symbolic links: {path}"
    assert (row.app_id, row.state, row.msg) == (app_id, AppState.UNKNOWN, words)
    assert not local.run(app_id).over
    with pytest.raises(SchedulerError, match="cannot be cancelled: its state cannot be read"):
        local.scheduler.cancel(app_id)
    kept.rename(path)
    assert local.run(app_id).state == AppState.SUCCEEDED


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "5", '{"folder": 5}', '{"folder": null}'])
def test_a_damaged_record_costs_its_app_alone(local: Local, text: str) -> None:
    app_id = local.start("exit 0")
    local.ended(app_id)
    record = local.root / "runs" / f"{app_id}.json"
    assert json.loads(record.read_text()) == {"format": supervisor.FORMAT, "folder": str(local.run(app_id).folder)}
    record.with_name("hurt-1.json").write_text(text)
    assert [row.app_id for row in local.scheduler.list()] == [app_id]
    assert not local.scheduler.exists("hurt-1")
    local.scheduler.prune()


def test_a_missing_folder_is_no_app(local: Local) -> None:
    app_id = local.start("exit 0")
    run = local.ended(app_id)
    run.folder.rename(run.folder.with_name("elsewhere"))
    assert local.scheduler.describe(app_id) is None
    assert local.scheduler.list() == []


def test_odd_ids_are_no_apps(local: Local) -> None:
    for app_id in ("", "..", "../x", "a/b", "\0", "x" * 5000):
        assert local.scheduler.describe(app_id) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (40, "40 s"),
        (59, "59 s"),
        (60, "1 min"),
        (119, "1 min"),
        (120, "2 min"),
        (7199, "119 min"),
        (172_799, "47 h"),
        (172_800, "2 d"),
        (3600, "60 min"),
        (7200, "2 h"),
        (90000, "25 h"),
        (2e5, "2 d"),
    ],
)
def test_ages(seconds: float, words: str) -> None:
    assert format_age(seconds) == words


def test_an_end_that_is_written_while_we_look_is_not_taken_for_a_death(
    frozen: tuple[Local, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read, then the supervisor writes the end and goes, then we find that it has gone."""
    local, app_id = frozen
    before = local.state(app_id)
    path = local.run(app_id).folder / "state.json"

    def ends_now(pid: int | None, start: str | None) -> bool:
        del start
        if pid == before["pid"]:
            ended = {"state": "SUCCEEDED", "finished_at": time.time()}
            replicas = [{**entry, "exit_code": 0} for entry in before["replicas"]]
            path.write_text(json.dumps({**before, **ended, "replicas": replicas}))
        return False

    with monkeypatch.context() as patched:
        patched.setattr(record, "is_running", ends_now)
        patched.setattr(record, "job_processes", lambda *_: [])
        assert local.run(app_id).state == AppState.SUCCEEDED
    assert local.run(app_id).state == AppState.SUCCEEDED


def test_a_named_pipe_in_place_of_a_request_to_cancel(local: Local) -> None:
    app_id = local.start("sleep 300")
    local.running(app_id)
    os.mkfifo(local.run(app_id).folder / "cancel.json")
    wait_until(lambda: local.run(app_id).over, "its end")
    assert local.run(app_id).state == AppState.CANCELLED
