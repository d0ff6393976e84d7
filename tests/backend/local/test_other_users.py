"""Files of another user in folders of apps, and processes of another user in a job."""

import ctypes
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from backend.local.support import document, launch_from_another_process
from support.waiting import wait_until

from torchx_tui.backends.local import supervisor
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState

SOMEBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def put_foreign(path, text):
    """Put a file of another user at a path, as one who may write to its folder."""
    made = path.parent.parent / f"{path.name}.{SOMEBODY}"
    made.write_text(text)
    os.chown(made, SOMEBODY, SOMEBODY)
    made.rename(path)


@needs_root
def test_cancel_request_of_another_user_is_ignored(local):
    app_id = local.start_running()
    path = local.run(app_id).folder / "cancel.json"
    put_foreign(path, json.dumps({"by": "mallory", "at": 1.0}))
    assert supervisor.read_note(str(path)) == {}
    # The supervisor looks for the file once a second, and writes the state when the replica has ended.
    time.sleep(1.5)
    assert local.run(app_id).state is AppState.RUNNING
    assert local.cancel(app_id).document["cancel"]["by"] != "mallory"


@needs_root
def test_delete_request_of_another_user_is_ignored(local):
    folder = local.put("job-1", document())
    put_foreign(folder / "delete", "")
    assert (local.scheduler.exists("job-1"), folder.exists()) == (True, True)


@needs_root
def test_state_file_of_another_user_is_damaged(local):
    put_foreign(local.put("job-1", document()) / "state.json", json.dumps(document(finished_at=None)))
    (row,) = local.scheduler.list()
    assert (row.state, "another user owns it" in row.msg) == (AppState.UNKNOWN, True)


@needs_root
def test_session_folder_of_another_user_is_refused(local, tmp_path):
    session = tmp_path / "logs/session"
    session.mkdir(parents=True)
    os.chown(session, SOMEBODY, SOMEBODY)
    with pytest.raises(SchedulerError, match=rf"belongs to user {SOMEBODY}.*{session}. Choose another log_dir"):
        local.start("exit 0", {"log_dir": str(tmp_path / "logs")})
    assert list(session.iterdir()) == []
    assert local.scheduler.list() == []


@needs_root
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has capabilities")
def test_process_of_another_user_that_stays_is_named(local):
    def give_up_killing_others():
        ctypes.CDLL(None).prctl(24, 5, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_KILL

    become = f"import os; os.setuid({SOMEBODY}); os.execv('{shutil.which('sleep')}', ['sleep', '300'])"
    app_id = launch_from_another_process(local.root, f'"{sys.executable}" -S -c "{become}"', 1, give_up_killing_others)
    local.running(app_id)
    pid = wait_until(lambda: _process_of(SOMEBODY, local.state(app_id)["job_id"]), "the process of another user")
    local.scheduler.cancel(app_id)

    name = f"cannot end process {pid} (sleep) of user {SOMEBODY}"
    message = wait_until(lambda: (found := local.describe(app_id).msg) and name in found and found, "its name")
    assert message.startswith("being cancelled by ")
    os.kill(pid, signal.SIGKILL)
    local.end_as(app_id, AppState.CANCELLED)
    assert "cannot end" not in local.describe(app_id).msg


def _process_of(uid, job_id):
    for folder in Path("/proc").iterdir():
        try:
            is_it = folder.name.isdigit() and folder.stat().st_uid == uid and (folder / "comm").read_text() == "sleep\n"
            if is_it and job_id.encode() in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return 0
