import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import append, log_of_file, opened, read_all, read_on
from log_writing import LogWriter
from support.waiting import NEVER

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source import file_source, replica_reader
from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.source.replica_log import LETTERS, ReplicaLog


def expected_lines(chunks, streams):
    """Cut chunks into lines the slow way, and sort them by the chunk that each starts in."""
    lines = []
    for replica in range(3):
        partial = None
        for at, (owner, stream, data) in enumerate(chunks):
            if owner != replica:
                continue
            if partial is not None and partial[1] != stream:
                lines.append(partial)
                partial = None
            for piece in data.splitlines(keepends=True):
                started, _, head = partial or (at, stream, b"")
                partial = (started, stream, head + piece)
                if piece.endswith(b"\n"):
                    lines.append(partial)
                    partial = None
        lines += [partial] if partial else []
    return [line.rstrip(b"\n") for _, stream, line in sorted(lines, key=lambda line: line[0]) if stream in streams]


_CHUNKS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from("ooe"),
        st.one_of(st.text("ab\n", min_size=1, max_size=12), st.integers(17, 60).map(lambda n: "x" * n)).map(str.encode),
    ),
    max_size=14,
)


@pytest.mark.usefixtures("small_blocks")
@given(_CHUNKS, st.integers(0, 14), st.sampled_from(sorted(LETTERS)), *[st.booleans()] * 3)
def test_lines_are_whole_and_in_order(chunks, opened_after, stream, late, early_index, close):
    apart = 0.02 if close else 1.0
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(3)]
        log = MergedLog([writer.log for writer in writers], stream)
        for at, (replica, letter, data) in enumerate(chunks):
            if at == opened_after:
                log.open()
                log.read_older(1, 1)
            combined = writers[replica].folder / "combined.log"
            if early_index and at >= opened_after and combined.exists():
                record = f"{combined.stat().st_size} {at * apart + 1000:.3f} {letter}\n"
                append(combined.with_name("combined.index"), record.encode())
                log.poll()
            writers[replica].write(data, letter, at * apart + 1000)
            while at >= opened_after and (log.poll()[1] or (not late and log.read_older(1))):
                pass
        if opened_after >= len(chunks):
            log.open()
        found = read_all(log)
        log.close()
    assert found == expected_lines(chunks, LETTERS[stream])


def test_last_page_is_known_before_the_rest(tmp_path):
    (tmp_path / "c").write_bytes(b"".join(b"line %d\n" % n for n in range(100_000)))
    log = MergedLog([ReplicaLog("r", 0, combined=tmp_path / "c")])
    log.open()
    log.read_older(1, 1)
    assert [line.data for line in log.lines(-2, 2)] == [b"line 99998", b"line 99999"]
    assert not log.bounds().complete
    assert read_all(log) == [b"line %d" % n for n in range(100_000)]


def test_carriage_return_before_a_line_feed_is_dropped(tmp_path):
    assert read_all(log_of_file(tmp_path / "c", b"a\r\nb\r\r\n\n1 it\r2")) == [b"a", b"b", b"", b"1 it\r2"]


def test_long_line_is_cut_and_progress_bar_shows_its_end(tmp_path):
    bar = b"".join(b"\r%7d it" % n for n in range(100_000))
    log = log_of_file(tmp_path / "c", b"before\n" + b"x" * 10_000_000 + b"\n" + bar + b"\nafter\n")
    tracemalloc.start()
    before, huge, progress, after = log.lines(-4, 4, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    assert (before.data, after.data) == (b"before", b"after")
    assert (huge.data, huge.omitted) == (b"x" * 1000, 9_999_000)
    assert progress.data.endswith(b"\r  99999 it")
    assert (progress.omitted, len(progress.data) <= 1000) == (0, True)


def test_lines_without_a_combined_copy_follow(tmp_path):
    writer, short = LogWriter(tmp_path), LogWriter(tmp_path, 1)
    writer.write(b"a\n", "o", 1)
    writer.write(b"b\n", "e", 2)
    writer.write(b"c\n", "o", derive=False)
    writer.write(b"d\n", "e", derive=False)
    short.write(b"a", "o", derive=False)
    for path in (*writer.folder.iterdir(), *short.folder.iterdir()):
        os.utime(path, (1, 1))
    assert read_all(opened(writer)) == [b"a", b"b", b"c", b"d"]
    assert read_all(opened(writer, stream="stderr")) == [b"b", b"d"]
    assert read_all(opened(short)) == [b"a"]


@pytest.fixture
def short_lag(monkeypatch):
    monkeypatch.setattr(replica_reader, "COMBINED_LAG_S", 0.0)
    monkeypatch.setattr(replica_reader, "LAG_CHECK_INTERVAL_S", 0.0)


def test_lines_that_a_supervisor_copies_late_come_once(tmp_path, short_lag):
    writer = LogWriter(tmp_path)
    writer.write(b"a\n", "o")
    log = opened(writer)
    writer.write(b"lost 1\n", "o", derive=False)
    for _ in range(3):
        log.poll()
    assert read_all(log) == [b"a", b"lost 1"]
    append(writer.folder / "combined.index", b"2 5.000 o\n")
    append(writer.folder / "combined.log", b"lost 1\nnext\n")
    append(writer.folder / "stdout.log", b"next\n")
    read_on(log)
    assert read_all(log) == [b"a", b"lost 1", b"next"]


def test_combined_log_without_an_index_is_read_alone(tmp_path, short_lag):
    combined, out, err = (tmp_path / name for name in ("combined.log", "stdout.log", "stderr.log"))
    for path, data in ((combined, b"a\nwrong\nb\n"), (out, b"a\nb\nc\n"), (err, b"wrong\n")):
        path.write_bytes(data)
    log = opened(ReplicaLog("r", 0, combined, out, err))
    append(combined, b"c\n")
    read_on(log)
    assert read_all(log) == [b"a", b"wrong", b"b", b"c"]


def test_plain_files_without_a_combined_one(tmp_path):
    (tmp_path / "o").write_bytes(b"o1\n")
    (tmp_path / "e").write_bytes(b"e1\n")
    replica = ReplicaLog("r", 0, stdout=tmp_path / "o", stderr=tmp_path / "e")
    log = opened(replica)
    append(tmp_path / "o", b"o2\n")
    assert read_all(log) == [b"o1", b"e1", b"o2"]
    assert read_all(opened(replica, stream="stderr")) == [b"e1"]
    assert [line.stream for line in log.lines(-2, 3)] == ["o", "e", "o"]


def test_unopened_log_has_no_lines(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"first\n")
    log = MergedLog([writer.log])
    assert (log.read_older(1), log.lines(-1, 1)) == (False, [])
    log.open()
    assert read_all(log) == [b"first"]


_READ_WITHOUT_STDIN = """
import os, sys
from pathlib import Path
from torchx_tui.logs.source.log_file import LogFile
os.close(0)
file = LogFile(Path(sys.argv[1]))
print(file.read(0, 2), file.read(2, 9)[:3], file.opened_size(), file.stored_end(0, 1 << 20) < 1 << 20)
file.close()
print(file.read(0, 9), file.opened_size(), os.open(sys.argv[1], os.O_RDONLY))
"""


def test_file_is_read_as_descriptor_0(tmp_path):
    (tmp_path / "out").write_bytes(b"a\nb\n")
    os.truncate(tmp_path / "out", 1 << 20)
    ran = subprocess.run([sys.executable, "-c", _READ_WITHOUT_STDIN, str(tmp_path / "out")], capture_output=True)
    assert ran.stdout.decode().splitlines() == [r"b'a\n' b'b\n\x00' 1048576 True", "b'' 0 0"]


def test_short_reads_are_continued(tmp_path, monkeypatch):
    """Network file systems give less than was asked for."""
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, size, start: read(descriptor, min(size, 7), start))
    (tmp_path / "out").write_bytes(b"0123456789" * 3)
    file = LogFile(tmp_path / "out")
    assert [file.read(*part) for part in ((0, 100), (5, 20), (30, 5))] == [
        b"0123456789" * 3,
        b"56789012345678901234",
        b"",
    ]
    monkeypatch.setattr(os, "pread", lambda *_: os.read(-1, 1))
    assert file.read(0, 100) == b""
    file.close()


def test_file_may_be_longer_than_its_size_says(tmp_path):
    (tmp_path / "out").write_bytes(b"0123")
    found = [LogFile(tmp_path / "out").is_longer(size) for size in (0, 3, 4, 9, 2**63 - 1)]
    assert found == [True, True, False, False, False]
    assert not any(LogFile(tmp_path / missing).is_longer(0) for missing in ("none", ".", "nul\0"))


def test_truncated_file_adds_a_notice(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"one\ntwo\nthree\n")
    log = opened(ReplicaLog("trainer", 3, stdout=path))
    path.write_bytes(b"new\n")
    assert read_all(log) == [
        *[b"[this line is no longer in the file]"] * 3,
        b"trainer/3: out was cut short, its earlier lines are gone",
        b"new",
    ]


def test_rotated_file_loses_no_line(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"")
    log = opened(ReplicaLog("trainer", 0, stdout=path))
    expected = []
    for turn in range(5):
        append(path, b"early %d\n" % turn)
        read_on(log)
        append(path, b"late %d\n" % turn)
        path.rename(tmp_path / "out.1")
        path.write_bytes(b"first %d%s\n" % (turn, b" of a longer file" * (turn % 2)))
        read_on(log)
        expected += [b"early %d" % turn, b"late %d" % turn, path.read_bytes()[:-1]]
    found = [line for line in read_all(log) if not line.startswith(b"trainer/0: out was replaced")]
    assert found == expected
    assert len(read_all(log)) == len(expected) + 5


@pytest.mark.parametrize(
    "index", [b"", b"\xff\x00garbage\n1 2\n-5 1 o\n0 nan o\n99999999999 1 e\n", b"0 inf o\n3 1e400 e\n2 5 q"]
)
def test_damaged_index_loses_no_line(tmp_path, index):
    writer = LogWriter(tmp_path)
    (writer.folder / "combined.log").write_bytes(b"a\nb\nc\n")
    (writer.folder / "combined.index").write_bytes(index)
    assert b"".join(read_all(opened(writer))) == b"abc"


def test_pipes_and_folders_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert read_all(opened(ReplicaLog("r", 0, stdout=tmp_path / "pipe", stderr=tmp_path))) == []


@pytest.fixture
def read_sizes(monkeypatch):
    """Give a list of the sizes of all reads of log files."""
    sizes = []
    read = LogFile.read

    def counted(self, start, size):
        data = read(self, start, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(LogFile, "read", counted)
    return sizes


def test_hole_of_gigabytes_is_not_read(tmp_path, read_sizes):
    path = tmp_path / "c"
    path.write_bytes(b"first\nsecond\nthird")
    os.truncate(path, 50_000_000_000)
    append(path, b"end of the hole\nlast\n")
    lines = read_all(opened(ReplicaLog("r", 0, combined=path)), cap=100)
    assert [line[:5] for line in lines] == [b"first", b"secon", b"third", b"last"]
    assert sum(read_sizes) < 20_000_000


@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast\n"])
def test_line_of_many_chunks_is_read_twice_at_most(tmp_path, read_sizes, end):
    writer = LogWriter(tmp_path)
    for piece in (b"first\nstart of ", *[b"x" * 65536] * 200, end):
        writer.write(piece)
    assert read_all(opened(writer), cap=10) == [b"first", b"start of x", *end.split()]
    assert sum(read_sizes) < 2 * 65536 * 200


def test_memory_does_not_grow_with_lines(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"0123456789\n" * 1_000_000)
    tracemalloc.start()
    log = opened(ReplicaLog("r", 0, combined=path))
    append(path, b"0123456789\n" * 500_000)
    read_on(log)
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert log.bounds()[:2] == (-1_000_000, 500_000)
    assert current < 500_000


def test_flood_of_one_replica_leaves_room_for_others(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(2)]
    log = opened(*writers)
    writers[0].write(b"fifteen letters\n" * 700_000, at=1)
    writers[1].write(b"quiet\n", at=2)
    _, more = log.poll()
    assert more
    # A poll reads 4 MiB of a file.
    assert log.bounds().end == (4 << 20) // 16 + 1
    last = log.lines(log.bounds().end - 1, 1)[0]
    assert (last.replica, last.data) == (1, b"quiet")


def test_removed_folder_adds_one_notice(tmp_path, monkeypatch):
    monkeypatch.setattr(file_source, "REMOVED_AFTER_S", 0.0)
    writers = [LogWriter(tmp_path / "job", replica) for replica in range(4)]
    for writer in writers:
        writer.write(b"a\n")
    log = opened(*writers)
    with (writers[1].folder / "combined.log").open("ab") as still_open:
        shutil.rmtree(tmp_path / "job")
        for _ in range(5):
            log.poll()
        *lines, notice = read_all(log)
        assert lines == [b"a"] * 4
        still_open.write(b"still\n")
    assert read_all(log)[-1] == b"still"
    assert notice.decode().startswith(f"the folder {tmp_path / 'job'} was removed")
    # Files that are made again are read.
    LogWriter(tmp_path / "job", 2).write(b"b\n")
    assert read_all(log)[-1] == b"b"


def test_file_that_is_missing_for_a_moment_adds_no_notice(tmp_path, monkeypatch):
    monkeypatch.setattr(file_source, "REMOVED_AFTER_S", NEVER)
    writer = LogWriter(tmp_path)
    writer.write(b"a\n")
    log = opened(writer)
    combined = writer.folder / "combined.log"
    combined.rename(tmp_path / "away")
    read_on(log)
    (tmp_path / "away").rename(combined)
    writer.write(b"b\n")
    assert read_all(log) == [b"a", b"b"]


@pytest.mark.parametrize("live", [False, True])
def test_slow_lines_share_index_rows(tmp_path, live):
    writer = LogWriter(tmp_path)
    log = MergedLog([writer.log])
    if live:
        log.open()
    for number in range(2000):
        writer.write(b"%d\n" % number, "o" if number % 500 else "e", 1000 + number / 100)
        if live:
            log.poll()
    if not live:
        log.open()
    assert read_all(log) == [b"%d" % number for number in range(2000)]
    # Each row takes memory.
    assert sum(log.index.sizes()) < 2000 / 8
    for number, line in enumerate(log.lines(log.bounds().first, 2000)):
        assert -0.001 < 1000 + number / 100 - (line.time or 0) < 0.1
        assert line.stream == ("o" if number % 500 else "e")
