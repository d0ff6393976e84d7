"""A reader of a spool: what was there, what comes, and what was dropped before or after it was read."""

import itertools
import math
import os
import shutil
import threading

import pytest
from support.waiting import PATIENCE

from torchx_tui.logs.source.replica_log import PollResult, ReplicaLog
from torchx_tui.logs.source.segment import LogSegment
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.reader import SpoolReader
from torchx_tui.logs.spool.replica_spool import ReplicaSpool
from torchx_tui.logs.spool.spools import LogSpools, SpoolLimits

_times = itertools.count(1000)


class Spool(ReplicaSpool):
    """A spool that tests write to, and the log that has it."""

    def __init__(self, folder, *, streams=True):
        super().__init__(folder, "trainer/0", 1_000_000)
        self.streams = streams
        self.acquired = []
        self.released = []
        self.begin(self)

    def write(self, *lines, stream="o", timed=True):
        for line in lines:
            self.take(Record(line, float(next(_times)) if timed else None, stream), LineCursor(1), self)

    def acquire(self, stream):
        self.acquired.append(stream)
        return self

    def release(self, *streams):
        self.released += streams


class Reading:
    """A reader, and the bytes of what it gives."""

    def __init__(self, spool, stream="combined"):
        self.files = []
        self.said = []
        log = spool
        self.reader = SpoolReader(log, ReplicaLog("trainer", 0), stream, self._register, self._say)

    def _register(self, file):
        self.files.append(file)
        return len(self.files)

    def _say(self, sentence):
        self.said.append(sentence)
        return LogSegment(0, 0, 1, 1, 5.0, "n")

    def bytes_of(self, segments):
        return [self.files[one.file - 1].read(one.start, one.end - one.start) if one.file else b"" for one in segments]

    def open(self):
        (older,) = self.reader.open()
        return self.bytes_of(older)

    def poll(self):
        polled = self.reader.poll()
        return self.bytes_of(polled.fresh), polled


@pytest.fixture
def spool(tmp_path):
    made = Spool(tmp_path / "spool")
    yield made
    made.close()


def test_what_was_there_comes_backwards_and_then_what_comes(spool):
    spool.write(b"a\n")
    spool.finish_current()
    spool.write(b"b\n")
    reading = Reading(spool)
    assert reading.open() == [b"b\n", b"a\n"]
    assert reading.poll() == ([], PollResult([], [], False))
    spool.write(b"c\n")
    spool.finish_current()
    spool.write(b"d\n")
    found = []
    more = True
    while more:
        fresh, polled = reading.poll()
        found += fresh
        more = polled.more
    assert found == [b"c\n", b"d\n"]
    assert not reading.reader.fully_read
    spool.ended = True
    assert reading.reader.fully_read
    spool.write(b"e\n")
    assert not reading.reader.fully_read
    assert reading.poll()[0] == [b"e\n"]
    spool.finish_current()
    assert reading.reader.fully_read
    spool.write(b"f\n")
    assert not reading.reader.fully_read


@pytest.mark.parametrize("is_last", [False, True])
def test_of_what_was_read_the_numbers_are_dropped(spool, is_last):
    reading = Reading(spool)
    assert reading.open() == []
    spool.write(b"a\n")
    spool.finish_current()
    assert reading.poll()[0] == [b"a\n"]
    if not is_last:
        spool.write(b"b\n")
        assert reading.poll()[0] == [b"b\n"]
    assert spool.drop_oldest("why")
    fresh, polled = reading.poll()
    assert (fresh, polled.dropped, polled.skipped, polled.why_dropped) == ([], (1,), False, "why")
    assert reading.poll()[1].dropped == ()
    spool.write(b"c\n")
    assert reading.poll()[0] == [b"c\n"]


def test_what_ends_and_goes_after_it_was_read_is_not_missed(spool):
    reading = Reading(spool)
    reading.open()
    spool.write(b"a\n")
    assert reading.poll()[0] == [b"a\n"]
    spool.finish_current()
    assert spool.drop_oldest("why")
    fresh, polled = reading.poll()
    assert (fresh, polled.dropped, polled.skipped) == ([], (1,), False)
    spool.write(b"b\n")
    assert reading.poll()[0] == [b"b\n"]


def test_what_was_dropped_before_it_was_read_is_skipped(spool):
    reading = Reading(spool)
    reading.open()
    for line in (b"a\n", b"b\n"):
        spool.write(line)
        spool.finish_current()
    assert spool.drop_oldest("why")
    fresh, polled = reading.poll()
    assert (fresh, polled.dropped, polled.skipped) == ([b"b\n"], (), True)
    # It was read in part.
    spool.write(b"c\n")
    assert reading.poll()[0] == [b"c\n"]
    spool.write(b"d\n")
    spool.finish_current()
    spool.write(b"e\n")
    assert spool.drop_oldest("why")
    assert spool.drop_oldest("why")
    fresh, polled = reading.poll()
    assert (fresh, polled.dropped, polled.skipped) == ([b"e\n"], (1, 2), True)


@pytest.mark.parametrize("timed", [True, False])
def test_what_is_gone_is_told_where_it_was(spool, timed):
    spool.write(*[b"a\n"] * 1234, timed=timed)
    spool.finish_current()
    spool.write(b"b\n")
    assert spool.drop_oldest("the disk is full")
    assert not spool.drop_oldest("there is no other")
    reading = Reading(spool)
    (older,) = reading.reader.open()
    *_, gone = found = list(older)
    assert reading.bytes_of(found) == [b"b\n", b""]
    assert reading.said == ["trainer/0: 1,234 older lines are gone: the disk is full"]
    assert (gone.order, gone.time) == (spool.dropped_until, spool.dropped_until if timed else None)
    assert math.isfinite(gone.order) is timed


def test_what_goes_while_it_is_read_backwards_ends_there(spool):
    for line in (b"a\n", b"b\n", b"c\n"):
        spool.write(line)
        spool.finish_current()
    reading = Reading(spool)
    (older,) = reading.reader.open()
    assert reading.bytes_of([next(older)]) == [b"c\n"]
    assert spool.drop_oldest("why")
    assert spool.drop_oldest("why")
    assert reading.bytes_of(older) == [b""]
    assert reading.said == ["trainer/0: 2 older lines are gone: why"]


def test_notices_are_told_once_and_trouble_that_lasts_to_each(spool):
    spool.add_notice("before")
    spool.report_trouble("it lasts")
    reading = Reading(spool)
    reading.open()
    assert reading.poll()[1].notes == ("it lasts",)
    spool.add_notice("later")
    assert reading.poll()[1].notes == ("later",)
    assert reading.poll()[1].notes == ()


def test_it_is_acquired_and_released_once(spool):
    reading = Reading(spool, "stdout")
    reader = reading.reader
    assert (reader.caught_up, reader.fully_read, reader.poll()) == (True, True, PollResult([], [], False))
    assert spool.acquired == []
    reader.connect()
    reader.connect()
    reader.open()
    assert spool.acquired == ["stdout"]
    reader.close()
    reader.close()
    assert spool.released == ["stdout"]
    spool.write(b"a\n")
    assert reader.poll() == PollResult([], [], False)
    assert (reader.open(), spool.acquired) == ([], ["stdout"])


@pytest.mark.parametrize(("streams", "found"), [(True, [b"o\n"]), (False, [b"e\n", b"o\n"])])
def test_streams_are_told_apart_where_they_can_be(tmp_path, streams, found):
    spool = Spool(tmp_path / "spool", streams=streams)
    spool.write(b"o\n")
    spool.write(b"e\n", stream="e")
    assert Reading(spool, "stdout").open() == found
    spool.close()


class Origin:
    """A log that is not there."""

    def connect(self, cursor):
        raise NotImplementedError("no log")

    def is_final(self):
        return True


def test_the_limit_of_a_job_holds_before_a_part_is_finished(tmp_path):
    spools = LogSpools(SpoolLimits(job=100), tmp_path)
    made = spools.acquire("a", "r-0", "r/0", Origin)
    made.begin(writer := object())
    made.take(Record(b"a line of a flood\n" * 10, None, "o"), LineCursor(1), writer)
    assert made.size > 100
    spools.enforce_limits(made)
    assert made.size == 0
    made.take(Record(b"a line\n", None, "o"), LineCursor(2), writer)
    spools.enforce_limits(made)
    assert [segment.lines for segment in made.segments()] == [1]
    spools.close()


def test_the_limit_of_all_holds_at_once_whatever_has_to_go(tmp_path):
    spools = LogSpools(SpoolLimits(total=100), tmp_path)
    both = [spools.acquire(job, "r-0", "r/0", Origin) for job in "ab"]
    for made in both:
        made.begin(writer := object())
        for _ in range(3):
            made.take(Record(b"a line of a flood\n" * 10, None, "o"), LineCursor(1), writer)
            made.finish_current()
    spools.enforce_limits(both[0])
    assert [made.size for made in both] == [0, 0]
    spools.close()


def test_what_was_removed_is_whole_again_once_it_is_full(tmp_path):
    spool = ReplicaSpool(tmp_path / "spool", "trainer/0", 500)
    spool.begin(writer := object())
    lines = [b"%d %s\n" % (number, b"x" * 300) for number in range(3)]
    for line in lines[:2]:
        spool.take(Record(line, None, "o"), LineCursor(1), writer)
    shutil.rmtree(spool.folder)
    spool.take(Record(lines[2], None, "o"), LineCursor(1), writer)
    kept = []
    for segment in spool.segments():
        segment.release()
        kept.append(segment.data.read(0, 10_000))
    assert b"".join(kept) == b"".join(lines)
    spool.close()


def test_maintenance_does_not_wait_for_a_slow_disk(spool, monkeypatch):
    written, begun, goes_on = os.pwrite, threading.Event(), threading.Event()

    def slow(descriptor, data, at):
        begun.set()
        goes_on.wait(PATIENCE)
        return written(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", slow)
    writing = threading.Thread(target=spool.write, args=(b"a\n",), daemon=True)
    writing.start()
    assert begun.wait(PATIENCE)
    tending = threading.Thread(target=spool.tend, daemon=True)
    tending.start()
    tending.join(PATIENCE)
    is_held_up = tending.is_alive()
    goes_on.set()
    writing.join(PATIENCE)
    assert not is_held_up


def test_room_is_made_in_the_job_itself_and_then_in_those_read_longest_ago(tmp_path):
    spools = LogSpools(root=tmp_path)
    made = {}
    for job in "abc":
        made[job] = spools.acquire(job, "r-0", "r/0", Origin)
        writer = object()
        made[job].begin(writer)
        for _ in range(2 if job == "b" else 1):
            made[job].take(Record(b"a line\n", None, "o"), LineCursor(1), writer)
            made[job].finish_current()
    for job in "cba":
        spools.release(job, "r-0")
    left = []
    for _ in range(4):
        assert spools.free_space(made["b"])
        left.append({job: len(spool.segments()) for job, spool in made.items()})
    assert left == [
        {"a": 1, "b": 1, "c": 1},
        {"a": 1, "b": 0, "c": 1},
        {"a": 1, "b": 0, "c": 0},
        {"a": 0, "b": 0, "c": 0},
    ]
    assert not spools.free_space(made["b"])
    assert made["c"].why_dropped == f"the disk of {tmp_path} is full"
    spools.close()
