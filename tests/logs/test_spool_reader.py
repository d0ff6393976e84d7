"""A log read from its spool, of which the oldest parts are dropped."""

import itertools
import math
import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_reading import lines_of, opened, read_on
from support.waiting import PATIENCE

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.reader import SpoolReader
from torchx_tui.logs.spool.replica_spool import ReplicaSpool
from torchx_tui.logs.spool.spools import LogSpools, SpoolLimits

_times = itertools.count(1000)


class Spool(ReplicaSpool):
    """A spool that tests write to, and the log that is read from it."""

    def __init__(self, folder, *, streams=True):
        super().__init__(Path(folder) / "spool", "trainer/0", 1_000_000)
        self.streams = streams
        self.calls = []
        self.log = ReplicaLog("trainer", 0, spool=self)  # type: ignore[arg-type]
        self.begin(self)

    def write(self, *lines, stream="o", timed=True):
        for line in lines:
            self.take(Record(line, float(next(_times)) if timed else None, stream), LineCursor(1), self)

    def write_part(self, *lines):
        self.write(*lines)
        self.finish_current()

    def reader(self, log, stream, register, say):
        return SpoolReader(self, log, stream, register, say)  # type: ignore[arg-type]

    def acquire(self, stream):
        self.calls.append(f"acquire {stream}")
        return self

    def release(self, *streams):
        self.calls += [f"release {stream}" for stream in streams]


@pytest.fixture
def spool(tmp_path):
    made = Spool(tmp_path)
    yield made
    made.close()


def notices(log):
    first, end, *_ = log.bounds()
    return [line.data.decode() for line in log.lines(first, end - first) if line.stream == "n"]


@given(st.lists(st.sampled_from(("write", "write", "finish", "drop", "poll")), max_size=30), st.integers(0, 30))
@example(["write", "poll", "finish", "drop", "write"], 0)
@example(["write", "finish", "drop", "write", "poll"], 0)
@example(["write", "poll", "write", "finish", "write", "finish", "drop", "drop", "write"], 0)
def test_reader_follows_writes_and_drops(actions, opened_after):
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(folder)
        log = MergedLog([spool.log])
        written = 0
        for at, action in enumerate(actions):
            if at == opened_after:
                log.open()
            if action == "write":
                spool.write(b"%d\n" % written)
                written += 1
            elif action == "finish":
                spool.finish_current()
            elif action == "drop":
                spool.drop_oldest("why")
            elif log.opened:
                read_on(log)
        if not log.opened:
            log.open()
        read_on(log)
        first, end, *_ = log.bounds()
        found = [line.data for line in log.lines(first, end - first) if line.stream != "n"]
        assert found == [b"%d" % number for number in range(spool.dropped_lines, written)]
        log.close()
        spool.close()


def test_log_is_fully_read_when_its_stream_has_ended(spool):
    log = opened(spool)
    assert not log.fully_read
    spool.ended = True
    assert log.fully_read
    spool.write_part(b"e\n")
    assert not log.fully_read
    read_on(log)
    assert log.fully_read
    spool.write(b"f\n")
    assert not log.fully_read


@pytest.mark.parametrize("timed", [True, False])
def test_notice_of_dropped_lines_stands_before_the_rest(spool, timed):
    spool.write(*[b"a\n"] * 1234, timed=timed)
    spool.finish_current()
    spool.write(b"b\n")
    assert spool.drop_oldest("the disk is full")
    assert not spool.drop_oldest("there is no other")
    log = opened(spool)
    assert lines_of(log) == [b"trainer/0: 1,234 older lines are gone: the disk is full", b"b"]
    assert log.lines(log.bounds().first, 1)[0].time == (spool.dropped_until if timed else None)
    assert math.isfinite(spool.dropped_until) is timed


def test_parts_may_be_dropped_while_they_are_read_backwards(spool):
    for line in (b"a\n", b"b\n", b"c\n"):
        spool.write_part(line)
    log = MergedLog([spool.log])
    log.open()
    assert log.read_older(PATIENCE, 1)
    assert lines_of(log) == [b"c"]
    assert spool.drop_oldest("why")
    assert spool.drop_oldest("why")
    read_on(log)
    assert lines_of(log)[-1] == b"c"
    assert notices(log) in (["trainer/0: 2 older lines are gone: why"], [])


def test_notices_come_once_and_lasting_trouble_to_each_reader(spool):
    spool.add_notice("before")
    spool.report_trouble("it lasts")
    log = opened(spool)
    assert notices(log) == ["it lasts"]
    spool.add_notice("later")
    read_on(log)
    assert notices(log) == ["it lasts", "later"]
    read_on(log)
    assert len(notices(log)) == 2


def test_drop_of_known_lines_adds_a_notice(spool):
    spool.write_part(b"a\n")
    log = opened(spool)
    spool.write_part(b"b\n")
    assert spool.drop_oldest("the disk is full")
    read_on(log)
    assert notices(log) == ["the oldest lines go from here on: the disk is full"]
    spool.write_part(b"c\n")
    assert spool.drop_oldest("the disk is full")
    read_on(log)
    assert notices(log) == []


def test_reader_acquires_and_releases_its_stream_once(spool):
    log = MergedLog([spool.log], "stdout")
    assert (log.caught_up, log.fully_read, spool.calls) == (True, True, [])
    log.open()
    log.close()
    log.close()
    assert spool.calls == ["acquire stdout", "release stdout"]


@pytest.mark.parametrize(("streams", "found"), [(True, [b"o"]), (False, [b"o", b"e"])])
def test_streams_are_parted_where_they_can_be(tmp_path, streams, found):
    spool = Spool(tmp_path, streams=streams)
    spool.write(b"o\n")
    spool.write(b"e\n", stream="e")
    assert lines_of(opened(spool, stream="stdout")) == found
    spool.close()


class Origin:
    """A log that is not there."""

    def connect(self, cursor):
        raise NotImplementedError("no log")

    def is_final(self):
        return True


LINE = Record(b"a line of a flood\n" * 10, None, "o")


def acquire(spools, job, parts=0):
    made = spools.acquire(job, "r-0", "r/0", Origin)
    made.begin(made)
    for _ in range(parts):
        made.take(LINE, LineCursor(1), made)
        made.finish_current()
    return made


def test_limit_of_a_job_drops_unfinished_parts(tmp_path):
    spools = LogSpools(SpoolLimits(job=100), tmp_path)
    made = acquire(spools, "a")
    for record, left in ((LINE, 0), (Record(b"a line\n", None, "o"), 1)):
        made.take(record, LineCursor(1), made)
        spools.enforce_limits(made)
        assert sum(segment.lines for segment in made.segments()) == left
    spools.close()


@pytest.mark.parametrize(("total", "parts"), [(700, [0, 3]), (100, [0, 0])])
def test_total_limit_drops_parts_of_the_job_read_longest_ago(tmp_path, total, parts):
    spools = LogSpools(SpoolLimits(total=total), tmp_path)
    both = [acquire(spools, job, 3) for job in "ab"]
    spools.release("a", "r-0")
    spools.enforce_limits(both[0])
    assert [len(spool.segments()) for spool in both] == parts
    spools.close()


def test_space_is_freed_in_the_job_then_in_those_read_longest_ago(tmp_path):
    spools = LogSpools(root=tmp_path)
    made = {job: acquire(spools, job, 2 if job == "b" else 1) for job in "abc"}
    for job in "cba":
        spools.release(job, "r-0")
    left = []
    for _ in range(4):
        assert spools.free_space(made["b"])
        left.append([len(spool.segments()) for spool in made.values()])
    assert left == [[1, 1, 1], [1, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert not spools.free_space(made["b"])
    assert made["c"].why_dropped == f"the disk of {tmp_path} is full"
    spools.close()


def test_removed_part_is_restored_when_it_is_full(tmp_path):
    spool = ReplicaSpool(tmp_path / "spool", "trainer/0", 500)
    spool.begin(spool)
    lines = [b"%d %s\n" % (number, b"x" * 300) for number in range(3)]
    for line in lines:
        if line == lines[2]:
            shutil.rmtree(spool.folder)
        spool.take(Record(line, None, "o"), LineCursor(1), spool)
    spool.release()
    assert b"".join(segment.data.read(0, 10_000) for segment in spool.segments()) == b"".join(lines)
    spool.close()


def test_maintenance_does_not_wait_for_a_slow_disk(spool, monkeypatch):
    written, begun, goes_on = os.pwrite, threading.Event(), threading.Event()

    def slow(*arguments):
        begun.set()
        goes_on.wait(PATIENCE)
        return written(*arguments)

    monkeypatch.setattr(os, "pwrite", slow)
    writing = threading.Thread(target=spool.write, args=(b"a\n",), daemon=True)
    writing.start()
    assert begun.wait(PATIENCE)
    tending = threading.Thread(target=spool.tend, daemon=True)
    tending.start()
    tending.join(PATIENCE)
    assert not tending.is_alive()
    goes_on.set()
    writing.join(PATIENCE)
