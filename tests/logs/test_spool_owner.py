import os
import subprocess
import sys
import time

from support.waiting import wait_until

from torchx_tui.base.files import cache_folder
from torchx_tui.base.processes import read_process
from torchx_tui.logs.spool import spools
from torchx_tui.logs.spool.spools import FOREIGN_OWNER_AGE_S, owner_folder, remove_stale

HOST = os.uname().nodename


def test_only_folders_of_dead_programs_are_removed(tmp_path):
    def folder_of(owner):
        folder = tmp_path / owner_folder(*owner)
        (folder / "job").mkdir(parents=True)
        (folder / "job" / "00000000.log").write_bytes(b"x")
        return folder

    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    process, own_process = read_process(child.pid), read_process(os.getpid())
    assert process
    assert own_process
    live, own, reused, away, long_away = map(
        folder_of,
        (
            (HOST, child.pid, process.start),
            (HOST, os.getpid(), own_process.start),
            (HOST, child.pid, "1"),
            ("node-17.cluster.example", child.pid, "1"),
            ("node-18.cluster.example", child.pid, "1"),
        ),
    )
    os.utime(long_away, (0, time.time() - FOREIGN_OWNER_AGE_S - 60))
    other = tmp_path / "not-ours"
    other.mkdir()
    assert set(remove_stale(tmp_path)) == {reused.name, long_away.name}
    assert set(tmp_path.iterdir()) == {live, own, away, other}
    child.communicate()
    remove_stale(tmp_path)
    assert set(tmp_path.iterdir()) == {own, away, other}
    assert remove_stale(tmp_path / "none") == []


def test_runner_removes_stale_folders(instance):
    left = cache_folder() / "spool" / owner_folder(HOST, 999_999_999, "1")
    left.mkdir(parents=True)
    instance().runner.remove_stale_spools()
    wait_until(lambda: not left.exists(), "its removal")


def test_folder_in_use_is_touched_for_other_machines(instance, monkeypatch):
    monkeypatch.setattr(spools, "TOUCH_INTERVAL_S", 0.0)
    one = instance()
    one.scheduler.write(0, "a\n")
    one.read().wait_for([b"a"])
    (folder,) = (cache_folder() / "spool").iterdir()
    os.utime(folder, (0, 0))
    wait_until(lambda: time.time() - folder.stat().st_mtime < 3600, "its touch")


def test_removal_follows_no_link(tmp_path):
    precious, root = tmp_path / "precious", tmp_path / "root"
    for folder in (precious, root):
        folder.mkdir()
    (precious / "file").write_bytes(b"x")
    (root / owner_folder(HOST, 999_999_999, "1")).symlink_to(precious)
    remove_stale(root)
    assert (precious / "file").exists()


def test_each_spool_of_a_process_has_its_folder():
    assert owner_folder(HOST, 1, "1") != owner_folder(HOST, 1, "1")
