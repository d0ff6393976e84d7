"""What is kept of finished apps, what is removed, and how many are in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from backend.local.support import Local
from support.waiting import wait_until

from torchx_tui.backends.local.runs import prune
from torchx_tui.specs import AppState


def test_prune_by_age(make_local: Callable[..., Local]) -> None:
    local = make_local(keep_days=3)
    old, new, live = local.start("exit 0"), local.start("exit 0"), local.start("sleep 3600")
    for app_id in (old, new):
        local.ended(app_id)
    local.running(live)
    local.edit_state(old, finished_at=time.time() - 4 * 86400)
    assert local.scheduler.prune(dryrun=True) == [old]
    assert local.scheduler.exists(old)
    assert prune(local.scheduler._runs, 3, 1e12, local.root) == [old]
    assert {row.app_id for row in local.scheduler.list()} == {new, live}
    assert not (local.root / "session" / old).exists()
    assert local.scheduler.prune() == []


def test_prune_by_size(make_local: Callable[..., Local]) -> None:
    local = make_local(keep_bytes=1_500_000)
    ids = []
    for _ in range(3):
        ids.append(local.start("head -c 300000 /dev/zero; head -c 10000 /dev/zero >&2"))
        local.ended(ids[-1])
    # Each takes its output twice, in its own file and in combined.log.
    assert local.scheduler.prune() == ids[:1]
    assert {row.app_id for row in local.scheduler.list()} == set(ids[1:])


def test_prune_leaves_a_folder_that_the_user_chose(make_local: Callable[..., Local], tmp_path: Path) -> None:
    local = make_local(keep_days=0, keep_bytes=0)
    app_id = local.start("echo mine", {"log_dir": str(tmp_path / "logs")})
    folder = local.ended(app_id).folder
    time.sleep(0.01)
    assert local.scheduler.prune() == [app_id]
    assert not local.scheduler.exists(app_id)
    assert (folder / "r" / "0" / "stdout.log").read_text() == "mine\n"


def test_prune_forgets_what_was_removed_by_hand(local: Local) -> None:
    import shutil

    app_id = local.start("exit 0")
    shutil.rmtree(local.ended(app_id).folder)
    local.scheduler.prune()
    assert local.scheduler._runs.app_ids() == []


def test_delete_removes_the_folder(local: Local, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    app_id = local.start(f"ln -s {outside} $(dirname $TORCHELASTIC_ERROR_FILE)/link; exit 0")
    folder = local.ended(app_id).folder
    assert (folder / "r" / "0" / "link" / "kept").exists()
    local.scheduler.delete(app_id)
    assert not folder.exists()
    assert (outside / "kept").exists()


def test_delete_of_a_running_app_does_not_wait(local: Local) -> None:
    app_id = local.start("trap '' TERM; while :; do sleep 0.1; done")
    folder = local.run(app_id).folder
    local.running(app_id)
    began = time.monotonic()
    local.scheduler.delete(app_id)
    # The grace is ten seconds.
    assert time.monotonic() - began < 8
    wait_until(lambda: not local.scheduler.exists(app_id), "its end")
    assert not folder.exists()


@pytest.mark.parametrize("cache_size", [1, 100])
def test_cache_size_bounds_memory_only(make_local: Callable[..., Local], cache_size: int) -> None:
    local = make_local(cache_size=cache_size)
    ids = [local.start("exit 0") for _ in range(4)]
    live = [local.start("sleep 3600") for _ in range(3)]
    for app_id in ids:
        local.ended(app_id)
    assert {row.app_id for row in local.scheduler.list()} == {*ids, *live}
    assert len(local.scheduler._runs._over) <= cache_size
    for app_id in ids:
        described = local.scheduler.describe(app_id)
        assert described is not None
        assert described.state == AppState.SUCCEEDED


def test_rows_are_the_callers_own(local: Local) -> None:
    app_id = local.start("exit 0")
    local.ended(app_id)
    first = local.scheduler.list()[0]
    first.app_handle = "changed"
    first.notes.append("changed")
    second = local.scheduler.list()[0]
    assert second.app_handle == f"local_cwd://session/{app_id}"
    assert second.notes == []


def test_the_latest_is_first(local: Local) -> None:
    ids = [local.start("exit 0") for _ in range(3)]
    assert [row.app_id for row in local.scheduler.list()] == ids[::-1]
