"""Spools at their caps, on full disks, in folders that are removed."""

import errno
import os
import shutil
import subprocess
import time

import pytest
from support.reading import as_shown, numbered
from support.streaming import RecordScheduler
from support.waiting import PATIENCE, wait_until

from torchx_tui.specs.files import cache_folder


def test_over_the_cap_of_a_job_the_oldest_lines_go(instance, small_segments):
    scheduler = RecordScheduler()
    one = instance(scheduler, job=40_000)
    reading = one.read()
    total = 12_000
    for start in range(0, total, 400):
        scheduler.write(0, *numbered(start, start + 400))
        wait_until(lambda: reading.lines()[-1:] == [b"line %d" % (start + 399)], "the last line", PATIENCE)  # noqa: B023
    found = reading.lines()
    assert found == as_shown(numbered(total - len(found), total))
    assert 400 < len(found) < 6000
    bounds = reading.log.bounds()
    assert bounds.complete
    assert bounds.gone + bounds.end - bounds.first == total + 1
    assert len([text for text in reading.notices() if "oldest lines go" in text]) <= 1
    size = sum(file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir())
    assert size < 50_000
    # Who comes later is told so.
    again = one.read()
    again.wait_for(found)
    notice = again.wait_for_notice("older lines are gone", "spool_megabytes_per_job")
    assert f"{total - len(found):,}" in notice
    assert again.log.lines(again.log.bounds().first, 1)[0].stream == "n"


def test_the_notice_comes_when_the_first_lines_go(instance, small_segments):
    scheduler = RecordScheduler()
    reading = instance(scheduler, job=250_000).read()
    scheduler.write(0, *numbered(0, 5000))
    wait_until(lambda: reading.lines()[-1:] == [b"line 4999"], "the first lines", PATIENCE)
    for start in range(5000, 12_000, 100):
        scheduler.write(0, *numbered(start, start + 100))
        if reading.log.bounds().gone:
            break
        time.sleep(0.01)
    reading.wait_for_notice("the oldest lines go from here on", "keeps 0 MB of a job (spool_megabytes_per_job)")


def test_a_merged_log_begins_where_all_its_replicas_are_whole(instance, small_segments):
    scheduler = RecordScheduler(replicas=3)
    one = instance(scheduler, job=60_000)
    merged = one.read()
    for start in range(0, 9000, 300):
        scheduler.write(0, *numbered(start, start + 300, "flood"))
        scheduler.write(1, f"quiet {start}\n")
        last = {b"flood %d" % (start + 299), b"quiet %d" % start}
        wait_until(lambda: last <= set(merged.lines()[-302:]), "the last lines", PATIENCE)  # noqa: B023
    # The flooding replica's lines went, not those of the quiet one.
    one.read(1).wait_for([b"quiet %d" % start for start in range(0, 9000, 300)])
    for reading in (merged, one.read()):
        wait_until(lambda: reading.log.bounds().complete, "all lines", PATIENCE)  # noqa: B023
        found = reading.lines()
        flood = [int(line.split()[1]) for line in found if line.startswith(b"flood")]
        assert flood == list(range(flood[0], 9000))
        assert flood[0] > 0
    # By their times, the quiet one's lines are older than what went.
    assert not any(line.startswith(b"quiet") for line in found)
    assert "older lines are gone" in reading.notices()[0]


def test_over_the_cap_in_all_the_job_read_longest_ago_gives(instance, small_segments):
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 2500))
    one = instance(scheduler, job=200_000, total=250_000)
    for name in ("first", "second"):
        reading = one.read(handle=f"fake://torchx/{name}")
        wait_until(lambda: len(reading.lines()) == 2500, "all lines", PATIENCE)  # noqa: B023
        reading.close()
    third = one.read(handle="fake://torchx/third")
    wait_until(lambda: len(third.lines()) == 2500, "all lines", PATIENCE)
    assert third.log.bounds().gone == 0

    def size(name):
        return sum(
            file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir() if name in str(folder)
        )

    assert size("first") < size("second") <= size("third")
    assert size("third") >= 2500 * 9
    assert size("") <= 255_000


# Disks and folders


def test_a_full_disk_is_waited_for(instance, quick_retries, tmp_path):
    """On a real small file system."""
    cache = cache_folder()
    cache.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(cache)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    one = None
    try:
        ballast = cache / "ballast"
        ballast.write_bytes(b"x" * 150_000)
        scheduler = RecordScheduler()
        one = instance(scheduler)
        reading = one.read()
        lines = numbered(0, 20_000)
        scheduler.write(0, *lines)
        notice = reading.wait_for_notice("is full", "reading waits")
        assert str(cache) in notice
        assert "free some space there" in notice
        late = one.read()
        late.wait_for_notice("is full", "reading waits")
        found = reading.lines()
        assert 0 < len(found) < len(lines)
        assert found == as_shown(lines[: len(found)])
        ballast.unlink()
        reading.wait_for_notice("reading continues")
        wait_until(lambda: len(reading.lines()) > len(found) + 1000, "more lines", PATIENCE)
        found = reading.lines()
        assert found == as_shown(lines[: len(found)])
        assert reading.follower.failure == ""
    finally:
        if one is not None:
            one.close()
        subprocess.run(["umount", "-l", str(cache)], check=True)


def test_a_full_disk_takes_the_oldest_lines(instance, quick_retries, small_segments, monkeypatch):
    room = 30_000
    written = os.pwrite

    def pwrite(descriptor, data, at):
        used = sum(file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir())
        if used + len(data) > room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    scheduler = RecordScheduler()
    one = instance(scheduler)
    reading = one.read()
    for start in range(0, 6000, 500):
        scheduler.write(0, *numbered(start, start + 500))
        wait_until(lambda: reading.lines()[-1:] == [b"line %d" % (start + 499)], "the last line", PATIENCE)  # noqa: B023
    found = reading.lines()
    assert found == as_shown(numbered(6000 - len(found), 6000))
    assert 0 < reading.log.bounds().gone < 6000


def test_a_spool_folder_that_is_removed_is_made_again(instance):
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, *numbered(0, 100))
    one = instance(scheduler)
    reading = one.read(0)
    reading.wait_for(as_shown(numbered(0, 100)))
    shutil.rmtree(cache_folder())
    scheduler.write(0, *numbered(100, 200))
    reading.wait_for(as_shown(numbered(0, 200)))
    reading.wait_for_notice("trainer/0", "was removed", "no line is lost")
    one.read(0).wait_for(as_shown(numbered(0, 200)))


def test_a_removed_folder_costs_no_more_than_what_was_finished(instance, small_segments):
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 2000))
    one = instance(scheduler)
    reading = one.read()
    wait_until(lambda: len(reading.lines()) == 2000, "all lines", PATIENCE)
    shutil.rmtree(cache_folder())
    scheduler.write(0, *numbered(2000, 2100))
    wait_until(lambda: reading.lines()[-1:] == [b"line 2099"], "the last line", PATIENCE)
    reading.wait_for_notice("trainer/0", "was removed", "oldest lines are gone")
    for view in (reading, one.read()):
        wait_until(lambda: view.lines()[-1:] == [b"line 2099"], "the last line", PATIENCE)  # noqa: B023
        found = view.lines()
        assert found == as_shown(numbered(2100 - len(found), 2100))
        assert len(found) > 100


def test_it_ends_by_itself_when_closed_while_the_disk_is_full(instance, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    one = instance(scheduler)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        reading = one.read()
        reading.wait_for_notice("cannot be written", "Read-only file system", "fix that")
        reading.close()
        wait_until(lambda: scheduler.reading == 0, "no stream", PATIENCE)
    # The cursor did not move.
    one.read().wait_for([b"a"])
