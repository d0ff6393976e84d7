"""Spools at their limits, on full disks, in folders that are removed."""

import errno
import os
import shutil

from support.reading import as_shown, numbered
from support.waiting import PATIENCE, wait_until

from torchx_tui.base.files import cache_folder


def disk_usage(one):
    return sum(file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir())


def flood(one, reading, stop, step):
    """Write lines, and wait for them step by step."""
    for start in range(0, stop, step):
        one.scheduler.write(0, *numbered(start, start + step))
        reading.wait_for_last(b"line %d" % (start + step - 1))


def test_job_limit_drops_the_oldest_lines(instance, small_segments):
    one = instance(job=40_000)
    reading = one.read()
    flood(one, reading, 8000, 400)
    found = reading.lines()
    assert found == as_shown(numbered(8000 - len(found), 8000))
    assert 400 < len(found) < 6000
    bounds = reading.log.bounds()
    assert (bounds.complete, bounds.gone + bounds.end - bounds.first) == (True, 8001)
    assert disk_usage(one) < 50_000
    # A later reader is told how many lines are gone.
    again = one.read()
    again.wait_for(found)
    assert f"{8000 - len(found):,}" in again.wait_for_notice("older lines are gone", "spool_megabytes_per_job")


def test_merged_log_begins_where_all_replicas_are_whole(instance, small_segments):
    one = instance(replicas=3, job=60_000)
    merged = one.read()
    for start in range(0, 9000, 900):
        one.scheduler.write(0, *numbered(start, start + 900, "flood"))
        one.scheduler.write(1, f"quiet {start}\n")
        last = {b"flood %d" % (start + 899), b"quiet %d" % start}
        wait_until(lambda last=last: last <= set(merged.lines()[-902:]), "the last lines", PATIENCE)
    # The flooding replica's lines went, not those of the quiet one.
    one.read(1).wait_for([b"quiet %d" % start for start in range(0, 9000, 900)])
    for reading in (merged, one.read()):
        wait_until(lambda reading=reading: reading.log.bounds().complete, "all lines", PATIENCE)
        found = reading.lines()
        numbers = [int(line.split()[1]) for line in found if line.startswith(b"flood")]
        assert numbers[0] > 0
        assert numbers == list(range(numbers[0], 9000))
    # By their times, the quiet one's lines are older than what went.
    assert not any(line.startswith(b"quiet") for line in found)
    assert "older lines are gone" in reading.notices()[0]


def test_full_disk_drops_the_oldest_lines(instance, quick_retries, small_segments, monkeypatch):
    written = os.pwrite

    def pwrite(descriptor, data, at):
        if disk_usage(one) + len(data) > 30_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    one = instance()
    reading = one.read()
    flood(one, reading, 4000, 500)
    found = reading.lines()
    assert found == as_shown(numbered(4000 - len(found), 4000))
    assert 0 < reading.log.bounds().gone < 4000


def test_removed_spool_folder_is_made_again(instance):
    one = instance(replicas=2)
    one.scheduler.write(0, *numbered(0, 100))
    reading = one.read(0)
    reading.wait_for(as_shown(numbered(0, 100)))
    shutil.rmtree(cache_folder())
    one.scheduler.write(0, *numbered(100, 200))
    reading.wait_for(as_shown(numbered(0, 200)))
    reading.wait_for_notice("trainer/0", "was removed", "no line is lost")
    one.read(0).wait_for(as_shown(numbered(0, 200)))


def test_removed_folder_loses_finished_parts_only(instance, small_segments):
    one = instance()
    one.scheduler.write(0, *numbered(0, 2000))
    reading = one.read()
    reading.wait_for_last(b"line 1999")
    shutil.rmtree(cache_folder())
    one.scheduler.write(0, *numbered(2000, 2100))
    reading.wait_for_notice("trainer/0", "was removed", "oldest lines are gone")
    for view in (reading, one.read()):
        view.wait_for_last(b"line 2099")
        found = view.lines()
        assert found == as_shown(numbered(2100 - len(found), 2100))
        assert len(found) > 100


def test_log_is_closed_while_its_disk_cannot_be_written(instance, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    one = instance()
    one.scheduler.write(0, "a\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        reading = one.read()
        reading.wait_for_notice("cannot be written", "Read-only file system", "fix that")
        reading.close()
        wait_until(lambda: one.scheduler.reading == 0, "no stream", PATIENCE)
    # The cursor did not move.
    one.read().wait_for([b"a"])
