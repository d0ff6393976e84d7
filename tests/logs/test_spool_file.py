"""The files of a spool: records of their index, failed writes, descriptors, rotation."""

import errno
import math
import os
import shutil
import time

import pytest
from log_reading import count_open
from support.waiting import NEVER, wait_until

from torchx_tui.logs.source import log_file
from torchx_tui.logs.source.open_files import OpenFiles
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.spool import Spool, SpoolPart, SpoolWriteError

LINE = b"a line of the log\n"


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
    made = SpoolPart(tmp_path, 0)
    for chunk in chunks.split(", "):
        size, at, stream = chunk.split()
        made.append(b"x" * int(size), None if at == "-" else float(at), stream)
    assert [int(line.split()[0]) for line in made.index.read(0, 1000).splitlines()] == starts


def test_bytes_of_a_failed_write_are_not_part_of_it(tmp_path, monkeypatch):
    written, sizes = os.pwrite, [3]

    def some(descriptor, data, at):
        if not sizes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(descriptor, data[: sizes.pop()], at)

    made = SpoolPart(tmp_path, 0)
    made.append(LINE, 2000.0, "e")
    size = made.size
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", some)
        with pytest.raises(OSError, match="No space left"):
            made.append(b"later\n", 2000.0, "e")
    assert made.size == size
    made.append(b"again\n", 2000.0, "e")
    assert made.data.read(0, 100) == LINE + b"again\n"
    assert (made.lines, made.latest, made.is_whole) == (2, 2000.0, True)


def test_few_files_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(log_file, "OPEN_FILES", OpenFiles())
    monkeypatch.setattr("resource.getrlimit", lambda _: (8, 8))
    made = [SpoolPart(tmp_path, number) for number in range(4)]
    for _ in range(2):
        for part in made:
            part.append(LINE, None, "o")
        assert count_open(tmp_path) == 2
    assert [part.data.read(0, 100) for part in made] == [LINE * 2] * 4
    assert count_open(tmp_path) == 2


def test_file_that_a_reader_closed_is_written_and_read_on(tmp_path):
    made = SpoolPart(tmp_path, 0)
    for _ in range(2):
        made.append(LINE, None, "o")
        made.data.close()
    assert (made.data.read(0, 100), count_open(tmp_path)) == (LINE * 2, 2)


@pytest.fixture
def spool(tmp_path):
    made = Spool(tmp_path / "spool", "trainer/0", lambda: 100, "it is small")
    made.begin(made)
    return made


def write(spool, *lines):
    for line in lines:
        spool.take(Record(line, None, "o"), LineCursor(1), spool)


def contents(spool):
    return [part.data.read(0, 1000) for part in spool.parts]


def test_spool_keeps_two_files_of_its_size(spool):
    lines = [b"%09d\n" % number for number in range(18)]
    write(spool, *lines)
    # Each index takes 16 bytes more.
    assert contents(spool) == [b"".join(lines[8:16]), b"".join(lines[16:])]
    assert (spool.first, spool.dropped_lines, spool.why_dropped) == (1, 8, "it is small")
    files = {f"{part}.{kind}" for part in (1, 2) for kind in ("log", "index")}
    assert {path.name for path in spool.folder.iterdir()} == files


def test_endless_line_is_split_at_twice_the_size(spool):
    for _ in range(30):
        spool.take(Record(b"x" * 10, None, "o"), LineCursor(1), spool)
        spool.flush()
    assert contents(spool) == [b"x" * 180, b"x" * 120]


def test_removed_files_are_dropped(spool):
    write(spool, b"a\n")
    spool.drop_removed()
    assert contents(spool) == [b"a\n"]
    shutil.rmtree(spool.folder)
    spool.drop_removed()
    write(spool, b"b\n")
    assert contents(spool) == [b"b\n"]
    assert (spool.dropped_lines, spool.why_dropped) == (1, f"{spool.folder} was removed")


def test_removed_file_is_not_made_again_within_a_stream(spool):
    write(spool, b"a\n")
    spool.parts[0].data.close()
    spool.parts[0].data.path.unlink()
    with pytest.raises(SpoolWriteError, match=r"cannot be written \(No such file or directory\)"):
        write(spool, b"b\n")


def test_a_file_that_the_writer_dropped_meanwhile_costs_no_other(spool):
    write(spool, b"a\n")
    oldest = spool.parts[0]
    write(spool, *[b"b" * 99 + b"\n"] * 2)
    rest = spool.parts
    assert oldest not in rest
    spool.drop_oldest(oldest, "the limit")
    assert spool.parts == rest
    spool.drop_oldest(rest[0], "the limit")
    assert (spool.parts, spool.why_dropped) == (rest[1:], "the limit")


def test_only_the_last_writer_adds_to_a_spool(spool):
    spool.begin("second")
    write(spool, b"a\n")
    spool.take(Record(b"b\n", None, "c"), LineCursor(2), "second")
    assert (contents(spool), spool.cursor) == ([b"b\n"], LineCursor(2))


def test_silent_stream_has_caught_up_before_long(tmp_path):
    spool = Spool(tmp_path / "spool", "trainer/0", lambda: 100, "it is small")
    assert not spool.caught_up
    spool.begin(spool)
    wait_until(lambda: spool.caught_up, "the silence")
    wait_until(lambda: spool.has_all_until(time.time(), 1.0), "a longer silence")
    # Nothing more comes of a log that has ended, nor before long of one that is lost.
    spool.report("the stream is lost", lasts=True)
    assert spool.has_all_until(math.inf, NEVER)
    spool.begin(spool)
    assert not spool.has_all_until(math.inf, NEVER)
    spool.ended = True
    assert spool.has_all_until(math.inf, NEVER)
    assert spool.caught_up


@pytest.mark.parametrize(("age", "caught_up"), [(0.5, True), (1.5, False)])
def test_stream_has_caught_up_with_a_line_of_now(spool, monkeypatch, age, caught_up):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    spool.begin(spool)
    spool.take(Record(LINE, now - age, "o"), None, spool)
    monkeypatch.setattr("torchx_tui.logs.spool.spool.CAUGHT_UP_AFTER_S", NEVER)
    assert spool.caught_up == caught_up
