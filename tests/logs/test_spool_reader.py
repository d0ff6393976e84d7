"""A log read from its spool, of which the oldest parts are dropped."""

import itertools
import math
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_reading import lines_of, opened, read_on
from support.waiting import PATIENCE, wait_until

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool import spools
from torchx_tui.logs.spool.reader import SpoolReader
from torchx_tui.logs.spool.spool import Spool
from torchx_tui.logs.spool.spools import LogSpools, SpoolLimits

_times = itertools.count(1000)


class WrittenSpool(Spool):
    """A spool that tests write to, with a file for each part, and the log that is read from it."""

    def __init__(self, folder, *, streams=True):
        self._is_part_full = False
        super().__init__(Path(folder) / "spool", "trainer/0", self._file_bytes_now, "why")
        self.streams = streams
        self.calls = []
        self.log = ReplicaLog("trainer", 0, spool=self)  # type: ignore[arg-type]
        self.begin(self)

    def _file_bytes_now(self):
        full, self._is_part_full = self._is_part_full, False
        return 0 if full else 1_000_000

    def rotate(self):
        """Begin another file with the next line."""
        self._is_part_full = True

    def write(self, *lines, stream="o", timed=True):
        for line in lines:
            self.take(Record(line, float(next(_times)) if timed else None, stream), LineCursor(1), self)

    def reader(self, log, stream, register, say):
        return SpoolReader(self, log, stream, register, say)  # type: ignore[arg-type]

    def acquire(self, stream, user):
        self.calls.append(f"acquire {stream}")
        return self

    def release(self, stream, user):
        self.calls.append(f"release {stream}")


@pytest.fixture
def spool(tmp_path):
    return WrittenSpool(tmp_path)


def notices(log):
    first, end, *_ = log.bounds()
    return [line.data.decode() for line in log.lines(first, end - first) if line.stream == "n"]


@given(st.lists(st.sampled_from(("write", "write", "rotate", "drop", "poll")), max_size=30), st.integers(0, 30))
@example(["write", "poll", "rotate", "write", "drop", "write"], 0)
@example(["write", "rotate", "write", "drop", "write", "poll"], 0)
@example(["write", "poll", "rotate", "write", "rotate", "write", "rotate", "write"], 0)
def test_reader_follows_writes_and_drops(actions, opened_after):
    with tempfile.TemporaryDirectory() as folder:
        spool = WrittenSpool(folder)
        log = MergedLog([spool.log])
        written = 0
        for at, action in enumerate(actions):
            if at == opened_after:
                log.open()
            if action == "write":
                spool.write(b"%d\n" % written)
                written += 1
            elif action == "rotate":
                spool.rotate()
            elif action == "drop":
                for part in spool.parts[:1]:
                    spool.drop_oldest(part, "why")
            elif log.opened:
                read_on(log)
        if not log.opened:
            log.open()
        read_on(log)
        first, end, *_ = log.bounds()
        found = [line.data for line in log.lines(first, end - first) if line.stream != "n"]
        assert found == [b"%d" % number for number in range(spool.dropped_lines, written)]
        log.close()


def test_log_is_fully_read_when_its_stream_has_ended(spool):
    log = opened(spool)
    assert not log.fully_read
    spool.ended = True
    assert log.fully_read
    for _ in range(2):
        spool.write(b"a line\n")
        assert not log.fully_read
        read_on(log)
        assert log.fully_read
        spool.rotate()


@pytest.mark.parametrize("timed", [True, False])
def test_notice_of_dropped_lines_stands_before_the_rest(spool, timed):
    spool.write(*[b"a\n"] * 1234, timed=timed)
    spool.rotate()
    spool.write(b"b\n")
    spool.drop_oldest(spool.parts[0], "the disk is full")
    log = opened(spool)
    assert lines_of(log) == [b"trainer/0: 1,234 older lines are gone: the disk is full", b"b"]
    assert log.lines(log.bounds().first, 1)[0].time == (spool.dropped_until if timed else None)
    assert math.isfinite(spool.dropped_until) is timed


def test_files_may_be_dropped_while_they_are_read_backwards(spool):
    spool.write(b"a\n")
    spool.rotate()
    spool.write(b"b\n")
    log = MergedLog([spool.log])
    log.open()
    assert log.read_older(PATIENCE, 1)
    assert lines_of(log) == [b"b"]
    spool.drop_oldest(spool.parts[0], "why")
    read_on(log)
    assert lines_of(log)[-1] == b"b"
    assert notices(log) == ["trainer/0: 1 older lines are gone: why"]


def test_notices_come_once_and_lasting_trouble_to_each_reader(spool):
    spool.report("before", lasts=False)
    spool.report("it lasts", lasts=True)
    log = opened(spool)
    assert notices(log) == ["it lasts"]
    spool.report("later", lasts=False)
    read_on(log)
    assert notices(log) == ["it lasts", "later"]
    read_on(log)
    assert len(notices(log)) == 2
    assert notices(opened(spool)) == []


def test_rotation_of_known_lines_adds_a_notice(spool):
    spool.write(b"a\n")
    log = opened(spool)
    for line in (b"b\n", b"c\n"):
        spool.rotate()
        spool.write(line)
    read_on(log)
    assert notices(log) == ["older lines are being discarded: why"]
    assert [line for line in lines_of(log) if len(line) == 1] == [b"b", b"c"]


def test_reader_acquires_its_stream_once(spool):
    log = MergedLog([spool.log], "stdout")
    assert (log.caught_up, log.fully_read, spool.calls) == (True, True, [])
    log.open()
    log.close()
    log.close()
    assert spool.calls == ["acquire stdout", "release stdout"]


@pytest.mark.parametrize(("streams", "found"), [(True, [b"o"]), (False, [b"o", b"e"])])
def test_streams_are_parted_where_they_can_be(tmp_path, streams, found):
    spool = WrittenSpool(tmp_path, streams=streams)
    spool.write(b"o\n")
    spool.write(b"e\n", stream="e")
    assert lines_of(opened(spool, stream="stdout")) == found


class Origin:
    """A log that is not there."""

    def connect(self, cursor):
        raise NotImplementedError("no log")

    def is_final(self):
        return True


LINE = Record(b"a line of a flood\n" * 10, None, "o")


def acquire(spools, job, files=0, replica="r-0"):
    made = spools.acquire((job, replica), "r/0", Origin, "user")
    # The feed ends: there is no log.
    wait_until(lambda: made.ended, "its end")
    made.begin(made)
    for _ in range(files):
        made.take(LINE, LineCursor(1), made)
    return made


@pytest.fixture
def make_spools(tmp_path, monkeypatch):
    """Return a function that makes spools with a file for each record."""
    monkeypatch.setattr(spools, "MIN_FILE_BYTES", 200)
    made = []

    def make(**limits):
        made.append(LogSpools(SpoolLimits(**limits), tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_job_limit_drops_previous_files_first(make_spools):
    made = make_spools(job=800)
    large = acquire(made, "a", 0, "r-1")
    rotated = acquire(made, "a", 2, "r-0")
    large.take(LINE._replace(data=LINE.data * 3), LineCursor(1), large)
    made.enforce_limits()
    assert [len(spool.parts) for spool in (rotated, large)] == [1, 1]


@pytest.mark.parametrize(("total", "files"), [(500, [0, 2]), (250, [0, 1]), (100, [0, 0])])
def test_total_limit_drops_files_of_the_job_read_longest_ago(make_spools, total, files):
    made = make_spools(total=total)
    both = [acquire(made, job, 2) for job in "ab"]
    made.release(("a", "r-0"), "user")
    made.enforce_limits()
    assert [len(spool.parts) for spool in both] == files
    assert both[0].why_dropped == "the spools keep 0 MB in all (spool_megabytes)"


def test_second_release_by_one_reader_does_nothing(make_spools):
    made = make_spools()
    spool = made.acquire(("a", "r-0"), "r/0", Origin, "first")
    made.acquire(("a", "r-0"), "r/0", Origin, "second")
    for _ in range(3):
        made.release(("a", "r-0"), "first")
    assert made.find(("a", "r-0")) is spool
    made.release(("a", "r-0"), "second")
    assert made.find(("a", "r-0")) is None
    made.acquire(("a", "r-0"), "r/0", Origin, "third")
    assert made.find(("a", "r-0")) is spool


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
    tending = threading.Thread(target=spool.flush, kwargs={"wait": False}, daemon=True)
    tending.start()
    tending.join(PATIENCE)
    assert not tending.is_alive()
    goes_on.set()
    writing.join(PATIENCE)
