"""Lines by their times: since, a jump to a time, and clocks that are wrong."""

import time
from pathlib import Path

import pytest
from log_writing import LogWriter

from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.chunks import Chunk, ChunkIndex
from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.source.log_times import LogClock, nanoseconds_of
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.view.filtering import FilteredLog, Rule
from torchx_tui.logs.view.merge import MergedLog


def opened(log):
    log.open()
    read_on(log)
    return log


def read_on(log):
    while log.read_older(1):
        pass
    while log.poll()[1]:
        pass


def lines_of(log):
    bounds = log.bounds()
    return [line.data for line in log.lines(bounds.first, bounds.end - bounds.first)]


def test_since_leaves_out_what_came_before(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(3)]
    for second in range(10):
        for number, writer in enumerate(writers):
            writer.write(b"%d-%d\n" % (second, number), at=1000 + second)
    log = opened(MergedLog([writer.log for writer in writers], since=1007.5))
    assert lines_of(log) == [b"%d-%d" % (second, number) for second in (8, 9) for number in range(3)]
    assert log.bounds().complete
    exactly = opened(MergedLog([writer.log for writer in writers], since=1008))
    assert lines_of(exactly) == lines_of(log)
    writers[1].write(b"too late\n", at=1003)
    writers[2].write(b"at once\n", at=1007.5)
    writers[2].write(b"new\n", at=1011)
    read_on(log)
    assert lines_of(log)[6:] == [b"at once", b"new"]


def test_since_keeps_lines_without_a_time(tmp_path):
    (tmp_path / "out").write_bytes(b"a\nb\n")
    timed = LogWriter(tmp_path, 1)
    timed.write(b"old\n", at=1000)
    log = opened(MergedLog([ReplicaLog("r", 0, stdout=tmp_path / "out"), timed.log], since=2000))
    assert lines_of(log) == [b"a", b"b"]


def test_the_line_at_a_time(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(2)]
    for second in range(20):
        writers[second % 2].write(b"%d\n" % second, at=1000 + second)
    log = MergedLog([writer.log for writer in writers])
    log.open()
    log.read_older(1, 5)
    assert log.bounds().first > -20
    # Not known yet: the first known line.
    assert log.line_at(1003) == log.bounds().first
    read_on(log)
    for second in range(20, 30):
        writers[second % 2].write(b"%d\n" % second, at=1000 + second)
        read_on(log)
    for second in range(30):
        assert [line.data for line in log.lines(log.line_at(1000 + second) or 0, 1)] == [b"%d" % second]
        assert [line.data for line in log.lines(log.line_at(999.5 + second) or 0, 1)] == [b"%d" % second]
    assert log.line_at(2000) == log.bounds().end
    odd = FilteredLog(log, [Rule(parse_pattern("[13579]$", regex=True))])
    odd.open()
    read_on(odd)
    for second in range(0, 29, 2):
        assert [line.data for line in odd.lines(odd.line_at(1000 + second) or 0, 1)] == [b"%d" % (second + 1)]


def test_no_line_at_a_time_where_none_has_one(tmp_path):
    (tmp_path / "out").write_bytes(b"a\nb\n")
    log = opened(MergedLog([ReplicaLog("r", 0, stdout=tmp_path / "out")]))
    assert log.line_at(0) is None
    with (tmp_path / "out").open("ab") as file:
        file.write(b"c\n")
    before = time.time()
    read_on(log)
    # A line's time is when it was seen to come.
    assert log.line_at(before - 60) == 0


@pytest.mark.parametrize("live", [False, True])
def test_a_clock_that_is_wrong_reorders_no_replica(tmp_path, live):
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
    shown = log.lines(log.bounds().first, 12)
    assert [line.time for line in shown if line.data == b"a3"] == [997]
    # The line that has the right time stands where it belongs.
    assert lines.index(b"a5") > lines.index(b"b4")


def test_a_quiet_replica_is_seen_within_a_few_looks_of_a_flood(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(3)]
    log = opened(MergedLog([writer.log for writer in writers]))
    flood = b"flood\n" * 700_000
    quiet = []
    for look in range(6):
        # 200 MB/s at 50 looks a second, more than one look takes in.
        writers[0].write(flood, at=1000 + look)
        writers[1].write(flood, at=1000 + look)
        writers[2].write(b"quiet %d\n" % look, at=1000 + look)
        _, more = log.poll()
        assert more
        bounds = log.bounds()
        quiet = [line.data for n in range(bounds.end - 3, bounds.end) for line in log.lines(n, 1) if line.replica == 2]
        assert b"quiet %d" % look in quiet


def test_closing_a_log_releases_every_descriptor(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"a\n", "o")
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("no /proc here")
    before = len(list(descriptors.iterdir()))
    for _ in range(20):
        log = opened(MergedLog([writer.log]))
        log.close()
    assert len(list(descriptors.iterdir())) < before + 10


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01.000000002Z", 1_000_000_002),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:01", 1_000_000_000),
        ("1970-01-01T01:00:01+01:00", 1_000_000_000),
        ("1970-01-01T01:00:01.25+01:00", 1_250_000_000),
        ("1970-01-01T00:00:01.1234567891Z", 1_123_456_789),
    ],
)
def test_times_as_engines_write_them(text, nanoseconds):
    assert nanoseconds_of(text) == nanoseconds
    message = f"at {text} words".encode()
    if text.endswith("Z") or "+" in text:
        assert LogClock().read(message, 3) == (nanoseconds, len(message) - len("words"))


def test_a_clock_reads_one_message_after_the_other():
    clock = LogClock()
    for second, digits in ((1, 1), (1, 999_999_999), (2, 3), (1, 4)):
        stamp = f"1970-01-01T00:00:0{second}.{digits:09}Z "
        assert clock.read(stamp.encode() + b"x", 0) == (second * 10**9 + digits, len(stamp))
    # What has no time is of the last known second, and all of it is text.
    for odd in (
        b"no time at all, but long enough",
        b"1970-01-01T00:00:0x.000000000Z x",
        b"",
        b"1970-13-01T00:00:00Z x",
    ):
        assert clock.read(odd, 0) == (10**9, 0)


def test_a_record_may_be_there_before_its_bytes(tmp_path):
    index = tmp_path / "index"
    index.write_text("0 1.000 o\nno record\n5 2.000 e\n")
    chunks = ChunkIndex(LogFile(index))
    assert list(chunks.older(3)) == [Chunk(0, 1.0, "o")]
    # The first chunk goes on up to where the second one begins.
    assert chunks.newer(3, 4) == [(3, 4, Chunk(0, 1.0, "o"))]
    assert chunks.newer(4, 7) == [(4, 5, Chunk(0, 1.0, "o")), (5, 7, Chunk(5, 2.0, "e"))]
    assert chunks.newer(7, 7) == []
    with index.open("a") as file:
        file.write("8 3.000 o\n9 4.000 c\n9 5.000 e\n1")
    assert chunks.newer(7, 10) == [
        (7, 8, Chunk(5, 2.0, "e")),
        (8, 9, Chunk(8, 3.0, "o")),
        (9, 10, Chunk(9, 5.0, "e")),
    ]


def test_what_no_record_tells_of_has_no_time(tmp_path):
    index = tmp_path / "index"
    index.write_text("2 1.000 o\n6 2.000 e\n")
    assert list(ChunkIndex(LogFile(index)).older(10)) == [Chunk(6, 2.0, "e"), Chunk(2, 1.0, "o"), Chunk(0, None, "c")]
    assert ChunkIndex(LogFile(index)).newer(0, 3) == [(0, 2, Chunk(0, None, "c")), (2, 3, Chunk(2, 1.0, "o"))]
    index.write_text("0 0.000 o\n1 1099511627775 e\n2 1099511627776 o\n3 -1 e\n4 nan o\n5 1 x\n-6 1 o\n")
    times = {chunk.start: chunk.time for chunk in ChunkIndex(LogFile(index)).older(10)}
    assert times == {0: 0.0, 1: 1099511627775.0, 2: None, 3: None, 4: None}
    assert list(ChunkIndex(LogFile(tmp_path / "none")).older(4)) == [Chunk(0, None, "c")]
    assert [(low, high, chunk.start) for low, high, chunk in ChunkIndex(LogFile(tmp_path / "none")).newer(4, 9)] == [
        (4, 9, 4)
    ]
