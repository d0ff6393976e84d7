"""Lines by their times: since, a jump to a time, and clocks that are wrong."""

import time

import pytest
from log_reading import append, lines_of, opened, read_on
from log_writing import LogWriter

from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.chunks import Chunk, ChunkIndex
from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.source.log_times import LogClock, nanoseconds_of
from torchx_tui.logs.source.replica_log import ReplicaLog


def line_at(log, when):
    return log.lines(log.line_at(when) or 0, 1)[0].data


def test_since_leaves_out_earlier_lines(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(3)]
    for second in range(10):
        for number, writer in enumerate(writers):
            writer.write(b"%d-%d\n" % (second, number), at=1000 + second)
    (tmp_path / "out").write_bytes(b"without a time\n")
    wanted = [b"%d-%d" % (second, number) for second in (8, 9) for number in range(3)]
    assert lines_of(opened(*writers, since=1008)) == wanted
    log = opened(*writers, since=1007.5)
    assert lines_of(log) == wanted
    writers[1].write(b"too late\n", at=1003)
    writers[2].write(b"at once\n", at=1007.5)
    writers[2].write(b"new\n", at=1011)
    read_on(log)
    assert lines_of(log)[6:] == [b"at once", b"new"]
    untimed = ReplicaLog("r", 0, stdout=tmp_path / "out")
    assert lines_of(opened(untimed, *writers, since=2000)) == [b"without a time"]


def test_line_at_a_time(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(2)]
    for second in range(20):
        writers[second % 2].write(b"%d\n" % second, at=1000 + second)
    log = MergedLog([writer.log for writer in writers])
    log.open()
    log.read_older(1, 5)
    # The line is not known yet: the first known one.
    assert log.line_at(1003) == log.bounds().first > -20
    read_on(log)
    for second in range(20, 30):
        writers[second % 2].write(b"%d\n" % second, at=1000 + second)
        read_on(log)
    for second in range(30):
        assert line_at(log, 1000 + second) == line_at(log, 999.5 + second) == b"%d" % second
    assert log.line_at(2000) == log.bounds().end
    odd = Matches(log, [Rule(parse_pattern("[13579]$", regex=True))])
    odd.open()
    read_on(odd)
    assert [line_at(odd, 1000 + second) for second in range(0, 29, 2)] == [b"%d" % n for n in range(1, 30, 2)]


def test_new_lines_without_a_time_have_that_of_their_arrival(tmp_path):
    (tmp_path / "out").write_bytes(b"a\nb\n")
    log = opened(ReplicaLog("r", 0, stdout=tmp_path / "out"))
    assert log.line_at(0) is None
    append(tmp_path / "out", b"c\n")
    before = time.time()
    read_on(log)
    assert log.line_at(before - 60) == 0


@pytest.mark.parametrize("live", [False, True])
def test_wrong_clock_reorders_no_replica(tmp_path, live):
    writers = [LogWriter(tmp_path, replica) for replica in range(2)]
    log = MergedLog([writer.log for writer in writers])
    if live:
        log.open()
    # The first one's clock is set back by 5 s in its midst, and set right again.
    for step, at in enumerate((1000, 1001, 1002, 997, 998, 1005)):
        writers[0].write(b"a%d\n" % step, at=at)
        writers[1].write(b"b%d\n" % step, at=1000 + step)
    if not live:
        log.open()
    read_on(log)
    lines = lines_of(log)
    for name in (b"a", b"b"):
        assert [line for line in lines if line.startswith(name)] == [name + b"%d" % step for step in range(6)]
    assert log.lines(log.bounds().first + lines.index(b"a3"), 1)[0].time == 997
    assert lines.index(b"a5") > lines.index(b"b4")


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("00:00:01.000000002Z", 1_000_000_002),
        ("00:00:01.5Z", 1_500_000_000),
        ("00:00:01Z", 1_000_000_000),
        ("00:00:01", 1_000_000_000),
        ("01:00:01+01:00", 1_000_000_000),
        ("01:00:01.25+01:00", 1_250_000_000),
        ("00:00:01.1234567891Z", 1_123_456_789),
    ],
)
def test_times_of_engines(text, nanoseconds):
    text = f"1970-01-01T{text}"
    assert nanoseconds_of(text) == nanoseconds
    message = f"at {text} words".encode()
    if text[-3:] != ":01":
        assert LogClock().read(message, 3) == (nanoseconds, len(message) - len("words"))


def test_clock_reads_one_message_after_the_other():
    clock = LogClock()
    for second, digits in ((1, 1), (1, 999_999_999), (2, 3), (1, 4)):
        stamp = f"1970-01-01T00:00:0{second}.{digits:09}Z "
        assert clock.read(stamp.encode() + b"x", 0) == (second * 10**9 + digits, len(stamp))
    # A message without a time is of the last known second, and all of it is text.
    for odd in ("no time at all, but long enough", "1970-01-01T00:00:0x.000000000Z x", "", "1970-13-01T00:00:00Z x"):
        assert clock.read(odd.encode(), 0) == (10**9, 0)


def test_bytes_without_a_record_have_no_time(tmp_path):
    index = tmp_path / "index"
    index.write_text("2 1.000 o\n6 2.000 e\n")
    unknown = Chunk(0, None, "c")
    assert list(ChunkIndex(LogFile(index)).older(10)) == [Chunk(6, 2.0, "e"), Chunk(2, 1.0, "o"), unknown]
    assert ChunkIndex(LogFile(index)).newer(0, 3) == [(0, 2, unknown), (2, 3, Chunk(2, 1.0, "o"))]
    index.write_text("0 0.000 o\n1 1099511627775 e\n2 1099511627776 o\n3 -1 e\n4 nan o\n5 1 x\n-6 1 o\n")
    times = {chunk.start: chunk.time for chunk in ChunkIndex(LogFile(index)).older(10)}
    assert times == {0: 0.0, 1: 1099511627775.0, 2: None, 3: None, 4: None}
    assert list(ChunkIndex(LogFile(tmp_path / "none")).older(4)) == [unknown]
