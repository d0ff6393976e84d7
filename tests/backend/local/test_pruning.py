"""Which finished apps are kept on disk and in memory, and which are removed."""

import shutil
import time

from backend.local.support import document
from support.waiting import wait_until

from torchx_tui.backends.local.runs import prune


def test_prune_by_age(make_local):
    local = make_local(keep_days=3)
    live = local.start_running()
    for app_id, days in (("old", 4), ("new", 2)):
        local.put(app_id, document(finished_at=time.time() - days * 86400))
    assert local.scheduler.prune(dryrun=True) == ["old"]
    assert local.scheduler.exists("old")
    assert prune(local.runs, 3, 1e12, local.root) == ["old"]
    assert {row.app_id for row in local.scheduler.list()} == {"new", live}
    assert not (local.root / "session/old").exists()
    assert local.scheduler.prune() == []


def test_prune_by_size(make_local):
    local = make_local(keep_bytes=1_500_000)
    for number in range(3):
        folder = local.put(f"{number}", document(finished_at=time.time() + number))
        (folder / "stdout.log").write_bytes(b"x" * 620_000)
    assert local.scheduler.prune() == ["0"]
    assert {row.app_id for row in local.scheduler.list()} == {"1", "2"}


def test_prune_keeps_a_chosen_log_dir(make_local, tmp_path):
    local = make_local(keep_days=0, keep_bytes=0)
    run = local.finish("echo mine", {"log_dir": str(tmp_path / "logs")})
    wait_until(lambda: local.scheduler.prune() == [run.app_id], "a moment after its end")
    assert not local.scheduler.exists(run.app_id)
    assert (run.folder / "r/0/stdout.log").read_text() == "mine\n"


def test_prune_forgets_removed_folders(local):
    shutil.rmtree(local.put("job-1", document()))
    local.scheduler.prune()
    assert local.runs.app_ids() == []


def test_delete_does_not_follow_links(local, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").touch()
    folder = local.put("job-1", document())
    (folder / "link").symlink_to(tmp_path / "outside")
    local.scheduler.delete("job-1")
    assert (folder.exists(), (tmp_path / "outside/kept").exists()) == (False, True)


def test_delete_of_a_running_app_does_not_wait(local):
    app_id = local.start_running("trap '' TERM; while :; do sleep 0.1; done")
    folder = local.run(app_id).folder
    local.scheduler.delete(app_id)
    assert folder.exists()
    wait_until(lambda: not local.scheduler.exists(app_id), "its end")
    assert not folder.exists()


def test_rows_are_the_callers_own(local):
    local.put("job-1", document())
    first = local.scheduler.list()[0]
    first.app_handle = "changed"
    first.notes.append("changed")
    second = local.scheduler.list()[0]
    assert (second.app_handle, second.notes) == ("local_cwd://s/job-1", [])


def test_latest_is_first(local):
    for number in (2, 3, 1):
        local.put(f"{number}", document(submitted_at=float(number)))
    assert [row.app_id for row in local.scheduler.list()] == ["3", "2", "1"]
