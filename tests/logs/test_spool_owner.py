import os
import subprocess
import sys
import time

from support.streaming import RecordScheduler
from support.waiting import wait_until

from torchx_tui.logs.spool import spools
from torchx_tui.logs.spool.spools import FOREIGN_OWNER_AGE_S, Owner, remove_stale, this_owner
from torchx_tui.specs.files import cache_folder
from torchx_tui.specs.processes import read_process


def folder_of(root, owner):
    folder = root / owner.folder_name
    (folder / "job" / "trainer-0").mkdir(parents=True)
    (folder / "job" / "trainer-0" / "00000000.log").write_bytes(b"x")
    return folder


def test_only_what_dead_programs_left_is_removed(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    process = read_process(child.pid)
    assert process is not None
    host = os.uname().nodename
    live = folder_of(tmp_path, Owner(host, child.pid, process.start, 0))
    own = folder_of(tmp_path, this_owner())
    used_again = folder_of(tmp_path, Owner(host, child.pid, "1", 0))
    away = folder_of(tmp_path, Owner("node-17.cluster.example", child.pid, "1", 0))
    away_for_long = folder_of(tmp_path, Owner("node-18.cluster.example", child.pid, "1", 0))
    os.utime(away_for_long, (0, time.time() - FOREIGN_OWNER_AGE_S - 60))
    other = tmp_path / "not-ours"
    other.mkdir()
    assert set(remove_stale(tmp_path)) == {used_again.name, away_for_long.name}
    assert set(tmp_path.iterdir()) == {live, own, away, other}
    child.communicate()
    remove_stale(tmp_path)
    assert set(tmp_path.iterdir()) == {own, away, other}


def test_a_folder_that_is_in_use_is_touched_for_other_machines(instance, monkeypatch):
    monkeypatch.setattr(spools, "TOUCH_INTERVAL_S", 0.0)
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    one = instance(scheduler)
    one.read().wait_for([b"a"])
    (folder,) = (cache_folder() / "spool").iterdir()
    os.utime(folder, (0, 0))
    wait_until(lambda: time.time() - folder.stat().st_mtime < 3600, "its touch")


def test_a_link_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"x")
    root = tmp_path / "root"
    root.mkdir()
    (root / Owner(os.uname().nodename, 999_999_999, "1", 0).folder_name).symlink_to(precious)
    remove_stale(root)
    assert (precious / "file").exists()


def test_two_spools_of_one_process_have_folders_of_their_own():
    assert this_owner().folder_name != this_owner().folder_name


def test_there_may_be_nothing_to_remove(tmp_path):
    assert remove_stale(tmp_path / "none") == []
