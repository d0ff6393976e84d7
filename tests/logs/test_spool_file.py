"""The files of a spool whose writing fails, or that somebody removes."""

import errno
import math
import os
import resource
import time

import pytest
from log_reading import count_open
from support.waiting import NEVER, wait_until

from torchx_tui.logs.source.open_files import OpenFiles
from torchx_tui.logs.source.stream import Record
from torchx_tui.logs.spool import replica_spool, spool_file
from torchx_tui.logs.spool.replica_spool import ReplicaSpool
from torchx_tui.logs.spool.spool_file import SpoolSegment

LINE = b"a line of the log\n"
DISK_FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def segment(tmp_path):
    """Return a segment of more than one read."""
    made = SpoolSegment(tmp_path, 3)
    made.append(LINE * 200_000, 1000.0, "o")
    made.append(LINE, 2000.0, "e")
    yield made
    made.drop()


def remove(segment):
    segment.data.path.unlink()
    segment.index.path.unlink()


def test_removed_files_are_restored(segment, tmp_path):
    index = segment.index.read(0, 1000)
    assert (index, segment.is_removed) == (b"0 1000.000000 o\n3600000 2000.000000 e\n", False)
    segment.index.path.unlink()
    assert segment.is_removed
    segment.restore()
    assert (segment.is_removed, segment.index.path.exists()) == (False, True)
    remove(segment)
    segment.restore()
    segment.append(b"more\n", 3000.0, "e")
    segment.finish()
    assert count_open(tmp_path) == 0
    assert (tmp_path / "00000003.log").read_bytes() == LINE * 200_001 + b"more\n"
    assert (tmp_path / "00000003.index").read_bytes() == index + b"3600018 3000.000000 e\n"
    assert segment.data.read(3_600_000, 100) == LINE + b"more\n"
    assert count_open(tmp_path) == 1
    segment.release()
    assert (count_open(tmp_path), segment.is_removed) == (0, False)
    remove(segment)
    assert segment.is_removed


def test_files_that_cannot_be_restored_stay_readable(segment, tmp_path, monkeypatch):
    def refuse(*_):
        raise DISK_FULL

    remove(segment)
    before = count_open(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="No space left"):
            segment.restore()
    assert (list(tmp_path.iterdir()), count_open(tmp_path)) == ([], before)
    assert segment.data.read(3_600_000, 100) == LINE
    segment.restore()
    assert segment.data.path.stat().st_size == 3_600_018


def test_segment_is_dropped_while_it_is_written(tmp_path):
    made = SpoolSegment(tmp_path, 0)
    made.append(LINE, None, "o")
    made.drop()
    assert (count_open(tmp_path), list(tmp_path.iterdir())) == (0, [])


def test_few_finished_files_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_file, "OPEN_FILES", OpenFiles())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))
    made = [SpoolSegment(tmp_path, number) for number in range(4)]
    for segment in made:
        segment.append(LINE, None, "o")
        segment.finish()
    for _ in range(2):
        assert [segment.data.read(0, 100) for segment in made] == [LINE] * 4
        assert count_open(tmp_path) == 2
    made[3].release()
    assert (made[0].data.read(0, 100), count_open(tmp_path)) == (LINE, 2)
    for segment in made:
        segment.drop()
    assert count_open(tmp_path) == 0


def test_segment_that_cannot_be_made_leaves_nothing(tmp_path):
    (tmp_path / "00000000.log").mkdir()
    with pytest.raises(OSError, match=r"00000000\.log"):
        SpoolSegment(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["00000000.log"]
    assert count_open(tmp_path) == 0


@pytest.mark.parametrize(
    ("chunks", "starts"),
    [
        ("5 1000 o, 5 1000.05 o", [0]),
        ("5 1000 o, 5 1000.05 e", [0, 5]),
        ("5 1000 o, 5 1000.2 o", [0, 5]),
        ("5 1000 o, 5 999.9 o", [0, 5]),
        ("5 - o, 5 - o", [0]),
        ("5 - o, 5 1000 o, 5 - o", [0, 5, 10]),
        ("900 1000 o, 5 1000 o, 5 1000.05 o", [0, 905]),
        ("900 1000 o, 5 2000 o, 5 2000.05 o", [0, 900]),
    ],
)
def test_chunks_of_nearly_one_time_share_a_record(tmp_path, chunks, starts):
    made = SpoolSegment(tmp_path, 0)
    for chunk in chunks.split(", "):
        size, at, stream = chunk.split()
        made.append(b"x" * int(size), None if at == "-" else float(at), stream)
    assert [int(line.split()[0]) for line in made.index.read(0, 1000).splitlines()] == starts
    made.drop()


@pytest.fixture
def spool(tmp_path):
    return ReplicaSpool(tmp_path / "spool", "trainer/0", 1_000_000)


def test_silent_stream_has_caught_up_before_long(spool):
    assert not spool.caught_up
    assert not spool.drop_oldest("there is none")
    spool.begin(spool)
    wait_until(lambda: spool.caught_up, "the silence")
    wait_until(lambda: spool.has_all_until(time.time()), "a longer silence")
    spool.leave(spool)
    # Nothing more comes of a log that has ended, nor before long of one that is lost.
    spool.report_trouble("the stream is lost")
    assert spool.has_all_until(math.inf)
    spool.begin(spool)
    spool.ended = True
    assert spool.has_all_until(math.inf)
    assert spool.caught_up


@pytest.mark.parametrize(("age", "caught_up"), [(0.5, True), (1.5, False)])
def test_stream_has_caught_up_with_a_line_of_now(spool, monkeypatch, age, caught_up):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(replica_spool, "CAUGHT_UP_AFTER_S", NEVER)
    spool.begin(spool)
    spool.take(Record(LINE, now - age, "o"), None, spool)
    assert spool.caught_up == caught_up


def test_bytes_of_a_failed_write_are_not_part_of_it(segment, monkeypatch):
    written, sizes = os.pwrite, [3]

    def some(descriptor, data, at):
        if not sizes:
            raise DISK_FULL
        return written(descriptor, data[: sizes.pop()], at)

    size = segment.size
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", some)
        with pytest.raises(OSError, match="No space left"):
            segment.append(b"later\n", 2000.0, "e")
    assert segment.size == size
    segment.append(b"again\n", 2000.0, "e")
    assert segment.data.read(3_600_018, 100) == b"again\n"
    assert (segment.lines, segment.latest, segment.is_whole) == (200_002, 2000.0, True)
