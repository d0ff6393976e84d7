"""Spools at their limits, on full disks, in folders that are removed."""

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


def test_job_limit_drops_the_oldest_lines(instance, small_files):
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


def test_merged_log_begins_where_all_replicas_are_whole(instance, small_files):
    one = instance(replicas=3, job=180_000)
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


def test_log_is_written_on_after_its_folder_was_removed(instance):
    one = instance()
    one.scheduler.write(0, "a\n")
    reading = one.read()
    reading.wait_for([b"a"])
    shutil.rmtree(cache_folder())
    reading.close()
    wait_until(lambda: one.scheduler.reading == 0, "no stream", PATIENCE)
    one.scheduler.write(0, "b\n")
    again = one.read()
    again.wait_for([b"b"])
    again.wait_for_notice("trainer/0", "1 older lines are gone", "was removed")
