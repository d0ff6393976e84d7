"""What another user of this machine puts into folders, or owns in a job."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from backend.local.support import Local, launch_from_another_process
from support.waiting import wait_until

from torchx_tui.backends.local import supervisor
from torchx_tui.specs import AppState, SchedulerError

SOMEBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def put_foreign(path: Path, text: str) -> None:
    """Put a file of another user at a path, as one who may write to its folder."""
    made = path.parent.parent / f"{path.name}.{SOMEBODY}"
    made.write_text(text)
    os.chown(made, SOMEBODY, SOMEBODY)
    made.rename(path)


def wait_for_heartbeat_after(local: Local, app_id: str, moment: float) -> None:
    wait_until(lambda: local.state(app_id)["heartbeat"] > moment, "a heartbeat")


def test_a_planted_link_is_not_written_through(local: Local, tmp_path: Path) -> None:
    victim = tmp_path / "precious"
    victim.write_text("mine")
    app_id = local.start("sleep 300")
    pid, folder = local.running(app_id)["pid"], local.run(app_id).folder
    (folder / f"state.json.{pid}.new").symlink_to(victim)
    wait_for_heartbeat_after(local, app_id, time.time())
    assert victim.read_text() == "mine"


@needs_root
def test_a_request_to_cancel_of_another_user_is_ignored(local: Local) -> None:
    app_id = local.start("sleep 300")
    local.running(app_id)
    path = local.run(app_id).folder / "cancel.json"
    put_foreign(path, json.dumps({"by": "mallory", "at": 1.0}))
    assert supervisor.read_note(str(path)) == {}
    # It looks for the file once a second.
    wait_for_heartbeat_after(local, app_id, time.time() + 1.5)
    assert local.run(app_id).state is AppState.RUNNING
    local.scheduler.cancel(app_id)
    assert local.ended(app_id).document["cancel"]["by"] != "mallory"


@needs_root
def test_a_request_to_delete_of_another_user_is_ignored(local: Local) -> None:
    app_id = local.start("exit 0")
    folder = local.ended(app_id).folder
    put_foreign(folder / "delete", "")
    os.utime(folder / "state.json")
    assert local.scheduler.exists(app_id)
    assert folder.exists()


@needs_root
def test_a_state_file_of_another_user_costs_its_row(local: Local) -> None:
    app_id = local.start("exit 0")
    run = local.ended(app_id)
    put_foreign(run.folder / "state.json", json.dumps({**run.document, "finished_at": None}))
    (row,) = local.scheduler.list()
    assert (row.state, "another user owns it" in row.msg) == (AppState.UNKNOWN, True)


@needs_root
def test_a_session_folder_of_another_user_is_refused(local: Local, tmp_path: Path) -> None:
    session = tmp_path / "logs" / "session"
    session.mkdir(parents=True)
    os.chown(session, SOMEBODY, SOMEBODY)
    with pytest.raises(SchedulerError, match=rf"belongs to user {SOMEBODY}.*{session}. Choose another log_dir"):
        local.start("exit 0", {"log_dir": str(tmp_path / "logs")})
    assert list(session.iterdir()) == []
    assert local.scheduler.list() == []


@needs_root
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has capabilities")
def test_a_process_of_another_user_that_stays_is_named(local: Local) -> None:
    def give_up_killing_others() -> None:
        ctypes.CDLL(None).prctl(24, 5, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_KILL

    become = f"import os; os.setuid({SOMEBODY}); os.execv('{shutil.which('sleep')}', ['sleep', '300'])"
    app_id = launch_from_another_process(local.root, f'"{sys.executable}" -S -c "{become}"', 1, give_up_killing_others)
    local.running(app_id)
    pid = wait_until(lambda: _process_of(SOMEBODY, local.state(app_id)["job_id"]), "the process of another user")
    local.scheduler.cancel(app_id)

    def message() -> str:
        described = local.scheduler.describe(app_id)
        return described.msg if described else ""

    wait_until(lambda: f"cannot end process {pid} (sleep) of user {SOMEBODY}" in message(), "its name")
    assert message().startswith("being cancelled by ")
    os.kill(pid, signal.SIGKILL)
    assert local.ended(app_id).state is AppState.CANCELLED
    assert "cannot end" not in message()


def _process_of(uid: int, job_id: str) -> int:
    for folder in Path("/proc").iterdir():
        try:
            is_it = folder.name.isdigit() and folder.stat().st_uid == uid and (folder / "comm").read_text() == "sleep\n"
            if is_it and job_id.encode() in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return 0
