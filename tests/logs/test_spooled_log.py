"""Logs that are no files here: read from their scheduler, kept in a spool, shown like any other."""

import json
import os
import threading
import time

import pytest
from support.reading import as_shown, numbered
from support.streaming import LinesScheduler, RecordReader, RecordScheduler
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool import feed as spool_feed
from torchx_tui.logs.spool import replica_spool as spool
from torchx_tui.logs.spool.reader import SpooledLog
from torchx_tui.logs.view import background as follow
from torchx_tui.specs import AppState
from torchx_tui.specs.files import cache_folder


def streamed(one):
    """Let all replicas be streamed, and wait until what there is of each has come: it is merged by time then."""
    for k, log in enumerate(one.logs()):
        assert isinstance(log.spool, SpooledLog)
        kept = log.spool.acquire("combined")
        size = sum(len(line) for _, line in one.scheduler.lines[k])
        wait_until(lambda: kept.size >= size, "its lines")  # noqa: B023


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_a_log_is_followed_to_its_end(kind, instance):
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


def test_a_replica_that_ended_before_its_app_is_not_asked_again(instance, quick_retries):
    class Ended(RecordReader):
        is_complete = True

        def __next__(self):
            if self.cursor is not None:
                raise StopIteration
            return super().__next__()

    class EndingScheduler(RecordScheduler):
        def log_stream(self, app_id, role_name, k=0, streams=None, cursor=None, tail=None):
            return Ended(self, k, cursor) if k else super().log_stream(app_id, role_name, k, streams, cursor, tail)

    scheduler = EndingScheduler(replicas=2)
    scheduler.write(0, "runs\n")
    scheduler.write(1, "over\n")
    one = instance(scheduler)
    log = one.logs()[1]
    assert isinstance(log.spool, SpooledLog)
    ended = log.spool.acquire("combined")
    wait_until(lambda: ended.ended, "the end of the replica")
    assert scheduler.state is AppState.RUNNING
    assert scheduler.opened == 1
    streamed(one)
    one.read().wait_for([b"runs", b"over"])


def test_what_is_streamed_for_somebody_else_can_be_read_without_a_stream(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "step 1\n")
    one = instance(scheduler)
    spool = one.logs()[0].spool
    assert spool is not None
    assert spool.newest() is None
    assert scheduler.opened == 0
    reading = one.read()
    reading.wait_for([b"step 1"])
    newest = spool.newest()
    assert newest is not None
    assert newest.read(0, 100) == b"step 1\n"
    assert scheduler.opened == 1


def test_lines_that_are_not_whole_are_not_cut_by_the_other_stream(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "step 1", stream="o")
    scheduler.write(0, "warning\n", stream="e")
    scheduler.write(0, " done\n", stream="o")
    one = instance(scheduler)
    one.read().wait_for([b"warning", b"step 1 done"])
    one.read(stream="stderr").wait_for([b"warning"])
    one.read(stream="stdout").wait_for([b"step 1 done"])
    # All three read one stream.
    assert scheduler.opened == 1


def test_streams_of_a_scheduler_that_gives_lines_alone(instance):
    class Parted(LinesScheduler):
        capabilities = RecordScheduler.capabilities

    scheduler = Parted()
    scheduler.write(0, "out\n", stream="o")
    scheduler.write(0, "err\n", stream="e")
    one = instance(scheduler)
    assert one.logs()[0].has_streams
    one.read().wait_for([b"out", b"err"])
    errors = one.read(stream="stderr")
    errors.wait_for([b"err"])
    assert errors.log.lines(errors.log.bounds().first, 1)[0].stream == "e"


def test_what_was_there_is_merged_by_time(instance):
    scheduler = RecordScheduler(replicas=4)
    for k in range(4):
        scheduler.write(k, *numbered(0, 50, str(k)))
    one = instance(scheduler)
    streamed(one)
    reading = one.read()
    reading.wait_for([b"%d %d" % (k, number) for number in range(50) for k in range(4)])


def test_64_replicas_one_of_which_is_cut_off_and_comes_back(instance, quick_retries):
    scheduler = RecordScheduler(replicas=64)
    for k in range(64):
        scheduler.write(k, *numbered(0, 5, str(k)))
    reading = instance(scheduler).read()
    wait_until(lambda: len(reading.lines()) == 64 * 5, "the first lines")
    for round_ in range(5, 15):
        for k in range(64):
            scheduler.write(k, *numbered(round_, round_ + 1, str(k)))
        if round_ % 3 == 0:
            scheduler.cut(17)
    wait_until(lambda: len(reading.lines()) >= 64 * 15, "the last lines")
    found = reading.lines()
    for k in range(64):
        assert [line for line in found if line.startswith(b"%d " % k)] == as_shown(numbered(0, 15, str(k)))
    assert scheduler.opened > 64
    scheduler.end()
    wait_until(lambda: reading.follower.ended, "the end")
    assert len(reading.lines()) == 64 * 15


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_a_stream_that_is_lost_for_a_while_says_so(
    kind,
    instance,
    quick_retries,
    monkeypatch,
):
    monkeypatch.setattr(spool_feed, "REPORT_LOSS_AFTER_S", 0.2)
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


def test_a_moment_without_a_stream_is_not_worth_a_word(instance, quick_retries, monkeypatch):
    monkeypatch.setattr(spool_feed, "REPORT_LOSS_AFTER_S", NEVER)
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 3))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 3)))
    scheduler.cut(0)
    scheduler.write(0, *numbered(3, 6))
    reading.wait_for(as_shown(numbered(0, 6)))
    assert reading.notices() == []


def test_a_scheduler_without_logs_says_so(instance):
    scheduler = LinesScheduler()
    scheduler.failure = NotImplementedError("fake has no logs to read")
    reading = instance(scheduler).read()
    reading.wait_for_notice("trainer/0", "fake has no logs to read")


def test_closing_a_log_ends_every_stream_at_once(instance):
    scheduler = RecordScheduler(replicas=64)
    one = instance(scheduler)
    reading = one.read()
    wait_until(lambda: scheduler.reading == 64, "64 streams")
    before = time.monotonic()
    reading.follower.close()
    assert time.monotonic() - before < PATIENCE
    wait_until(lambda: scheduler.reading == 0, "no stream")
    named = [thread.name for thread in threading.enumerate()]
    wait_until(
        lambda: not any(thread.name.startswith("spool-trainer") for thread in threading.enumerate()),
        f"the threads' end: {named}",
    )
    # Whoever comes back goes on where it was.
    scheduler.write(3, "later\n")
    again = one.read(3)
    again.wait_for([b"later"])
    assert scheduler.reading == 1


def test_the_end_of_a_program_ends_its_streams(instance):
    scheduler = RecordScheduler(replicas=3)
    one = instance(scheduler)
    one.read()
    wait_until(lambda: scheduler.reading == 3, "3 streams")
    one.runner.close()
    wait_until(lambda: scheduler.reading == 0, "no stream")
    assert one.spool_folders() == []


def test_several_views_share_one_stream(instance):
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, "a\n")
    scheduler.write(1, "b\n")
    one = instance(scheduler)
    streamed(one)
    merged, single = one.read(), one.read(1)
    merged.wait_for([b"a", b"b"])
    single.wait_for([b"b"])
    merged.close()
    scheduler.write(1, "c\n")
    single.wait_for([b"b", b"c"])
    assert scheduler.opened == 2
    assert len(one.spool_folders()) == 2


def test_another_replica_and_back_takes_the_stream_up_again(instance):
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, *numbered(0, 3))
    one = instance(scheduler)
    reading = one.read(0)
    reading.wait_for(as_shown(numbered(0, 3)))
    reading.close()
    wait_until(lambda: scheduler.reading == 0, "no stream")
    scheduler.write(0, *numbered(3, 6))
    one.read(0).wait_for(as_shown(numbered(0, 6)))
    assert scheduler.cursors[0] is None
    assert scheduler.cursors[-1] is not None


def test_two_programs_read_one_job(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    first, second = instance(scheduler), instance(scheduler)
    readings = [first.read(), second.read()]
    for reading in readings:
        reading.wait_for([b"a"])
    assert len({folder.parent.parent for folder in first.spool_folders()}) == 2
    readings[0].close()
    first.close()
    scheduler.write(0, "b\n")
    readings[1].wait_for([b"a", b"b"])
    # What is closed leaves nothing behind.
    assert len({folder.parent.parent for folder in second.spool_folders()}) == 1


def test_files_are_for_nobody_else(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    handle = "fake://torchx/../../../tmp/evil app"
    one = instance(scheduler)
    one.read(handle=handle).wait_for([b"a"])
    root = cache_folder() / "spool"
    (folder,) = one.spool_folders()
    assert folder.is_relative_to(root)
    for path in (root, folder.parent.parent, folder.parent, folder):
        assert path.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_slow_answer_is_not_taken_for_the_end(instance, monkeypatch):
    monkeypatch.setattr(follow, "MAX_WAIT_AFTER_END_S", 0.0)
    monkeypatch.setattr(follow, "QUIET_AFTER_END_S", 0.0)
    go, asked = threading.Event(), threading.Event()

    class Slow(RecordScheduler):
        def log_stream(self, *arguments, **named):
            asked.set()
            assert go.wait(PATIENCE)
            return super().log_stream(*arguments, **named)

    scheduler = Slow()
    scheduler.write(0, "a\n")
    scheduler.end()
    reading = instance(scheduler).read()
    assert asked.wait(PATIENCE)
    wait_until(lambda: reading.follower.opened, "the empty log")
    assert not reading.follower.join(0.3)
    go.set()
    wait_until(lambda: reading.follower.ended, "the end")
    assert reading.lines() == [b"a"]


def test_a_stream_that_connects_after_it_was_closed_is_closed(instance, monkeypatch):
    go, asked = threading.Event(), threading.Event()

    class Slow(RecordScheduler):
        def log_stream(self, *arguments, **named):
            asked.set()
            assert go.wait(PATIENCE)
            return super().log_stream(*arguments, **named)

    scheduler = Slow()
    one = instance(scheduler)
    reading = one.read()
    assert asked.wait(PATIENCE)
    reading.close()
    wait_until(lambda: not any(spooled.feed for spooled in spools_of(one)), "the feed's end")
    go.set()
    wait_until(lambda: scheduler.opened == 1 and scheduler.reading == 0, "the stream's end")
    scheduler.write(0, "a\n")
    one.read().wait_for([b"a"])


def test_a_log_that_could_not_be_read_is_tried_again(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    scheduler.failure = ValueError("no replica 0 of trainer; there are none yet")
    one = instance(scheduler)
    reading = one.read()
    reading.wait_for_notice("none yet")
    reading.close()
    wait_until(lambda: not any(spooled.feed for spooled in spools_of(one)), "the feed's end")
    scheduler.failure = None
    one.read().wait_for([b"a"])


def spools_of(one):
    return [spooled for job in one.runner._log_spools()._jobs.values() for spooled in job.spools.values()]


def test_what_dead_programs_left_is_removed(instance):
    left = cache_folder() / "spool" / f"{os.uname().nodename.replace('.', '-')}.999999999.1.0"
    left.mkdir(parents=True)
    instance(RecordScheduler()).runner.remove_stale_spools()
    wait_until(lambda: not left.exists(), "its removal")


def test_only_the_last_writer_adds_to_a_spool(tmp_path):
    kept = spool.ReplicaSpool(tmp_path / "spool", "trainer/0", 1_000_000)
    first, second = object(), object()
    kept.begin(first)
    kept.take(Record(b"a\n", None, "c"), LineCursor(1), first)
    kept.begin(second)
    # The first one's stream was closed while it gave this.
    kept.take(Record(b"b\n", None, "c"), LineCursor(2), first)
    kept.leave(first)
    assert kept.cursor == LineCursor(1)
    kept.take(Record(b"b\n", None, "c"), LineCursor(2), second)
    (segment,) = kept.segments()
    assert segment.data.read(0, 100) == b"a\nb\n"
    kept.close()


def test_an_answer_that_came_in_part_is_asked_for_again(instance, quick_retries):
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 3))
    scheduler.failure = json.JSONDecodeError("Expecting value", '{"a": ', 6)
    reading = instance(scheduler).read()
    reading.wait_for_notice("trainer/0", "Expecting value")
    scheduler.failure = None
    reading.wait_for(as_shown(numbered(0, 3)))
