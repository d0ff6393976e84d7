"""Logs that are streamed from their scheduler into a spool."""

import threading
import time

import pytest
from support.reading import as_shown, numbered
from support.streaming import LinesScheduler, RecordScheduler
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.base.files import cache_folder
from torchx_tui.logs.lines import background
from torchx_tui.logs.spool import feed
from torchx_tui.specs.errors import UnknownReplicaError


def stream_all(one):
    """Stream all replicas, and wait until their lines have come, so that a log merges them by time."""
    for k, log in enumerate(one.logs()):
        size = sum(len(line) for _, line in one.scheduler.lines[k])
        kept = log.spool.acquire("combined", one)
        wait_until(lambda kept=kept, size=size: kept.size >= size, "its lines")


def wait_for_streams(scheduler, count):
    wait_until(lambda: scheduler.reading == count, f"{count} streams")


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_log_is_followed_to_its_end(kind, instance):
    scheduler = kind()
    scheduler.write(0, *numbered(0, 10))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 10)))
    scheduler.write(0, *numbered(10, 20), "not whole")
    reading.wait_for([*as_shown(numbered(0, 20)), b"not whole"])
    assert not reading.follower.ended
    scheduler.write(0, " yet\n")
    reading.wait_for([*as_shown(numbered(0, 20)), b"not whole yet"])
    scheduler.end()
    wait_until(lambda: reading.follower.ended, "the end")
    assert reading.notices() == []


def test_newest_part_is_read_without_a_stream(instance):
    one = instance()
    one.scheduler.write(0, "step 1\n")
    spool = one.logs()[0].spool
    assert (spool.newest(), one.scheduler.opened) == (None, 0)
    one.read().wait_for([b"step 1"])
    assert (spool.newest().read(0, 100), one.scheduler.opened) == (b"step 1\n", 1)


def test_partial_lines_are_not_cut_by_the_other_stream(instance):
    one = instance()
    for stream, text in (("o", "step 1"), ("e", "warning\n"), ("o", " done\n")):
        one.scheduler.write(0, text, stream=stream)
    one.read().wait_for([b"warning", b"step 1 done"])
    one.read(stream="stderr").wait_for([b"warning"])
    one.read(stream="stdout").wait_for([b"step 1 done"])
    assert one.scheduler.opened == 1


def test_scheduler_of_plain_lines_has_a_stream_for_each_output(instance):
    class Parted(LinesScheduler):
        capabilities = RecordScheduler.capabilities

    one = instance(Parted())
    one.scheduler.write(0, "out\n", stream="o")
    one.scheduler.write(0, "err\n", stream="e")
    assert one.logs()[0].has_streams
    one.read().wait_for([b"out", b"err"])
    errors = one.read(stream="stderr")
    errors.wait_for([b"err"])
    assert errors.log.lines(errors.log.bounds().first, 1)[0].stream == "e"


def test_existing_lines_are_merged_by_time(instance):
    one = instance(replicas=4)
    for k in range(4):
        one.scheduler.write(k, *numbered(0, 50, str(k)))
    stream_all(one)
    one.read().wait_for([b"%d %d" % (k, number) for number in range(50) for k in range(4)])


def test_stream_of_one_of_64_replicas_is_resumed(instance, quick_retries):
    one = instance(replicas=64)
    scheduler, reading = one.scheduler, one.read()
    for round_ in range(15):
        for k in range(64):
            scheduler.write(k, *numbered(round_, round_ + 1, str(k)))
        if round_ == 4:
            wait_until(lambda: len(reading.lines()) == 64 * 5, "the first lines")
        if round_ > 4 and round_ % 3 == 0:
            scheduler.cut(17)
    scheduler.end()
    wait_until(lambda: reading.follower.ended, "the end")
    found = reading.lines()
    assert len(found) == 64 * 15
    for k in range(64):
        assert [line for line in found if line.startswith(b"%d " % k)] == as_shown(numbered(0, 15, str(k)))
    assert scheduler.opened > 64


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_long_loss_of_a_stream_adds_notices(kind, instance, quick_retries, monkeypatch):
    monkeypatch.setattr(feed, "REPORT_LOSS_AFTER_S", 0.2)
    scheduler = kind()
    scheduler.write(0, *numbered(0, 3))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 3)))
    scheduler.failure = ConnectionError("the server is away")
    scheduler.cut(0)
    reading.wait_for_notice("trainer/0", "broke off", "the server is away")
    scheduler.write(0, *numbered(3, 6))
    scheduler.failure = None
    reading.wait_for(as_shown(numbered(0, 6)))
    reading.wait_for_notice("trainer/0", "available again")
    assert len(reading.notices()) == 2


def test_short_loss_of_a_stream_adds_no_notice(instance, quick_retries, monkeypatch):
    monkeypatch.setattr(feed, "REPORT_LOSS_AFTER_S", NEVER)
    one = instance()
    reading = one.read()
    for start in (0, 3):
        one.scheduler.write(0, *numbered(start, start + 3))
        reading.wait_for(as_shown(numbered(0, start + 3)))
        one.scheduler.cut(0)
    assert reading.notices() == []


@pytest.mark.parametrize(
    ("failure", "notice"),
    [
        (NotImplementedError("fake has no logs"), "fake has no logs"),
        (UnknownReplicaError("no replica 0 of trainer; there are none yet"), "none yet"),
    ],
)
def test_log_that_could_not_be_read_is_tried_again_by_a_new_view(instance, failure, notice):
    one = instance()
    one.scheduler.failure = failure
    reading = one.read()
    reading.wait_for_notice("trainer/0", notice)
    one.scheduler.failure = None
    one.scheduler.write(0, "a\n")
    again = one.read()
    again.wait_for([b"a"])
    assert again.notices() == []
    # A view that was open reads on, too.
    reading.wait_for([b"a"])


def feeding():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("spool-trainer")]


def test_closing_a_log_ends_every_stream_at_once(instance):
    one = instance(replicas=64)
    one.scheduler.write(3, "before\n")
    reading = one.read()
    reading.wait_for([b"before"])
    wait_for_streams(one.scheduler, 64)
    before = time.monotonic()
    reading.follower.close()
    assert time.monotonic() - before < PATIENCE
    wait_for_streams(one.scheduler, 0)
    wait_until(lambda: not feeding(), "the threads' end")
    one.scheduler.write(3, "later\n")
    one.read(3).wait_for([b"before", b"later"])
    assert one.scheduler.reading == 1
    # The stream is resumed.
    assert [cursor is None for cursor in one.scheduler.cursors] == [True] * 64 + [False]


def test_end_of_the_program_ends_its_streams(instance):
    one = instance(replicas=3)
    one.read()
    wait_for_streams(one.scheduler, 3)
    one.runner.close()
    wait_for_streams(one.scheduler, 0)
    assert one.spool_folders() == []


def test_views_share_one_stream(instance):
    one = instance(replicas=2)
    one.scheduler.write(0, "a\n")
    one.scheduler.write(1, "b\n")
    stream_all(one)
    merged, single = one.read(), one.read(1)
    merged.wait_for([b"a", b"b"])
    single.wait_for([b"b"])
    merged.close()
    one.scheduler.write(1, "c\n")
    single.wait_for([b"b", b"c"])
    assert (one.scheduler.opened, len(one.spool_folders())) == (2, 2)


def test_spool_files_are_private(instance):
    one = instance()
    one.scheduler.write(0, "a\n")
    one.read(handle="fake://torchx/../../../tmp/evil app").wait_for([b"a"])
    root = cache_folder() / "spool"
    (folder,) = one.spool_folders()
    assert folder.is_relative_to(root)
    folders = (root, folder.parent.parent, folder.parent, folder)
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


class SlowScheduler(RecordScheduler):
    """Answers when `go` is set."""

    def __init__(self):
        super().__init__()
        self.go, self.asked = threading.Event(), threading.Event()

    def log_stream(self, *arguments, **named):
        self.asked.set()
        assert self.go.wait(PATIENCE)
        return super().log_stream(*arguments, **named)


def test_slow_answer_is_not_the_end(instance, monkeypatch):
    monkeypatch.setattr(background, "MAX_WAIT_AFTER_END_S", 0.0)
    monkeypatch.setattr(background, "QUIET_AFTER_END_S", 0.0)
    scheduler = SlowScheduler()
    scheduler.write(0, "a\n")
    scheduler.end()
    reading = instance(scheduler).read()
    assert scheduler.asked.wait(PATIENCE)
    wait_until(lambda: reading.follower.opened, "the empty log")
    assert not reading.follower.join(0.3)
    scheduler.go.set()
    wait_until(lambda: reading.follower.ended, "the end")
    assert reading.lines() == [b"a"]


def test_stream_that_connects_after_its_close_is_closed(instance):
    scheduler = SlowScheduler()
    one = instance(scheduler)
    reading = one.read()
    assert scheduler.asked.wait(PATIENCE)
    reading.close()
    # Streams without readers are closed half a second later.
    time.sleep(1)
    scheduler.go.set()
    wait_until(lambda: scheduler.opened == 1 and scheduler.reading == 0, "the stream's end")
    scheduler.write(0, "a\n")
    one.read().wait_for([b"a"])
