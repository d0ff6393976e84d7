from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_writing import LogWriter
from support.waiting import NEVER, PATIENCE

from torchx_tui.logs.source import file_source as source
from torchx_tui.logs.source import replica_reader
from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.spool.spool_file import SpoolFile
from torchx_tui.logs.view import line_index, merge
from torchx_tui.logs.view.merge import MergedLog


def read_all(log: MergedLog, cap: int = merge.LINE_CAP) -> list[bytes]:
    while log.read_older(1):
        pass
    drain(log)
    first, end, complete, _ = log.bounds()
    assert complete
    lines = log.lines(first, end - first, cap)
    assert [line.number for line in lines] == list(range(first, end))
    return [line.data for line in lines]


def drain(log: MergedLog) -> None:
    more = True
    while more:
        _, more = log.poll()


def opened(*logs: ReplicaLog, stream: replica_reader.StreamName = "combined") -> MergedLog:
    log = MergedLog(logs, stream)
    log.open()
    log.read_older(1, 1)
    return log


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK", 16)
        patch.setattr(source, "FIRST_READ", 5)
        patch.setattr(source, "POLL_LIMIT", 23)
        patch.setattr(merge, "BLOCK", 16)
        patch.setattr(line_index, "BLOCK", 16)
        yield


def expected_lines(chunks: list[tuple[int, str, bytes]], streams: str) -> list[tuple[float, int, bytes]]:
    """Cut chunks into lines the slow way: (time of the chunk that a line starts in, replica, line)."""
    lines: list[tuple[float, int, bytes]] = []
    for replica in {replica for replica, _, _ in chunks}:
        partial: tuple[float, str, bytes] | None = None
        for at, (owner, stream, data) in enumerate(chunks):
            if owner != replica or not data:
                continue
            if partial is not None and partial[1] != stream:
                lines += [(partial[0], replica, partial[2])] if partial[1] in streams else []
                partial = None
            for piece in data.splitlines(keepends=True):
                started, _, head = partial or (at, stream, b"")
                partial = (started, stream, head + piece)
                if piece.endswith(b"\n"):
                    lines += [(started, replica, (head + piece)[:-1])] if stream in streams else []
                    partial = None
        if partial is not None and partial[1] in streams:
            lines.append((partial[0], replica, partial[2]))
    return sorted(lines, key=lambda line: line[0])


_CHUNKS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from("ooe"),
        st.one_of(st.text("ab\n", min_size=1, max_size=12), st.integers(17, 60).map(lambda n: "x" * n)).map(str.encode),
    ),
    max_size=14,
)


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    _CHUNKS,
    st.integers(0, 14),
    st.sampled_from(["combined", "stdout", "stderr"]),
    st.booleans(),
    st.sampled_from((0.02, 1.0)),
)
def test_lines_are_whole_and_in_order_however_they_came(
    chunks: list[tuple[int, str, bytes]],
    opened_after: int,
    stream: replica_reader.StreamName,
    late: bool,
    apart: float,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(3)]
        log = MergedLog([writer.log for writer in writers], stream)
        for at, (replica, letter, data) in enumerate(chunks[:opened_after]):
            writers[replica].write(data, letter, at * apart + 1000)
        log.open()
        log.read_older(1, 1)
        while not late and log.read_older(1):
            pass
        for at, (replica, letter, data) in enumerate(chunks[opened_after:], opened_after):
            writers[replica].write(data, letter, at * apart + 1000)
            drain(log)
        found = read_all(log)
        log.close()
    want = [line for _, _, line in expected_lines(chunks, replica_reader.LETTERS[stream])]
    assert found == want


def test_the_last_page_is_known_before_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(200_000)))
    log = opened(ReplicaLog("r", 0, combined=path))
    assert [line.data for line in log.lines(-2, 2)] == [b"line 199998", b"line 199999"]
    assert not log.bounds().complete
    lines = read_all(log)
    assert len(lines) == 200_000
    assert lines[0] == b"line 0"
    first = log.bounds().first
    assert [line.data for line in log.lines(first + 123_456, 1)] == [b"line 123456"]


def test_lines_have_stream_and_time(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"out\n", "o", 100.5)
    writer.write(b"err\n", "e", 101.25)
    log = opened(writer.log)
    writer.write(b"later\n", "o", 102)
    read_all(log)
    found = [(line.stream, line.time, line.data) for line in log.lines(-2, 3)]
    assert found == [("o", 100.5, b"out"), ("e", 101.25, b"err"), ("o", 102, b"later")]


def test_carriage_return_and_line_feed_end_a_line(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"a\r\nb\r\r\n\n1 it\r2")
    assert read_all(opened(ReplicaLog("r", 0, combined=tmp_path / "c"))) == [b"a", b"b", b"", b"1 it\r2"]


def test_a_huge_line_is_capped_and_a_progress_bar_shows_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "c"
    bar = b"".join(b"\r%7d it" % n for n in range(100_000))
    path.write_bytes(b"before\n" + b"x" * 10_000_000 + b"\n" + bar + b"\nafter\n")
    log = opened(ReplicaLog("r", 0, combined=path))
    tracemalloc.start()
    before, huge, progress, after = (log.lines(n, 1, 1000)[0] for n in range(-4, 0) if read_all(log, 1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    assert (before.data, after.data) == (b"before", b"after")
    assert (huge.data, huge.omitted) == (b"x" * 1000, 9_999_000)
    assert progress.data.endswith(b"\r  99999 it")
    assert progress.omitted == 0
    assert len(progress.data) <= 1000


def test_what_the_supervisor_could_not_derive_follows(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"a\n", "o", 1)
    writer.write(b"b\n", "e", 2)
    writer.write(b"c\n", "o", derive=False)
    writer.write(b"d\n", "e", derive=False)
    for path in writer.folder.iterdir():
        os.utime(path, (1, 1))
    assert read_all(opened(writer.log)) == [b"a", b"b", b"c", b"d"]
    assert read_all(opened(writer.log, stream="stderr")) == [b"b", b"d"]


def test_a_single_byte_that_no_combined_file_has_is_shown(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"a", "o", derive=False)
    os.utime(writer.folder / "stdout.log", (1, 1))
    assert read_all(opened(writer.log)) == [b"a"]


def test_a_supervisor_that_dies_while_we_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_reader, "COMBINED_LAG_S", 0.0)
    monkeypatch.setattr(replica_reader, "LAG_CHECK_INTERVAL_S", 0.0)
    writer = LogWriter(tmp_path)
    writer.write(b"a\n", "o")
    log = opened(writer.log)
    writer.write(b"lost 1\n", "o", derive=False)
    for _ in range(3):
        log.poll()
    assert read_all(log) == [b"a", b"lost 1"]
    # It was only slow: what it adds late is not shown twice.
    with (writer.folder / "combined.index").open("a") as index:
        index.write("2 5.000 o\n")
    with (writer.folder / "combined.log").open("ab") as combined:
        combined.write(b"lost 1\nnext\n")
    with (writer.folder / "stdout.log").open("ab") as raw:
        raw.write(b"next\n")
    drain(log)
    assert read_all(log) == [b"a", b"lost 1", b"next"]


def test_a_combined_log_without_an_index_whose_writer_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchX's: lines that are in it already do not come again, those of both streams that are not do."""
    monkeypatch.setattr(replica_reader, "COMBINED_LAG_S", 0.05)
    monkeypatch.setattr(replica_reader, "LAG_CHECK_INTERVAL_S", 0.0)
    paths = {name: tmp_path / f"{name}.log" for name in ("combined", "stdout", "stderr")}
    paths["combined"].write_bytes(b"a\nwrong\nb\n")
    paths["stdout"].write_bytes(b"a\nb\n")
    paths["stderr"].write_bytes(b"wrong\n")
    log = opened(ReplicaLog("r", 0, paths["combined"], paths["stdout"], paths["stderr"]))
    assert read_all(log) == [b"a", b"wrong", b"b"]
    with paths["stdout"].open("ab") as out, paths["stderr"].open("ab") as err:
        out.write(b"c\n")
        err.write(b"worse\n")
    deadline = time.monotonic() + PATIENCE
    while len(read_all(log)) < 5:
        assert time.monotonic() < deadline, read_all(log)
        drain(log)
        time.sleep(0.01)
    drain(log)
    assert read_all(log)[:3] == [b"a", b"wrong", b"b"]
    assert sorted(read_all(log)[3:]) == [b"c", b"worse"]


def test_plain_files_without_a_combined_one(tmp_path: Path) -> None:
    (tmp_path / "o").write_bytes(b"o1\n")
    (tmp_path / "e").write_bytes(b"e1\n")
    replica = ReplicaLog("r", 0, stdout=tmp_path / "o", stderr=tmp_path / "e")
    log = opened(replica)
    with (tmp_path / "o").open("ab") as file:
        file.write(b"o2\n")
    assert read_all(log) == [b"o1", b"e1", b"o2"]
    assert read_all(opened(replica, stream="stderr")) == [b"e1"]
    assert [line.stream for line in log.lines(-2, 3)] == ["o", "e", "o"]


def test_a_log_that_is_not_open_has_no_lines(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"first\n")
    log = MergedLog([writer.log])
    assert not log.read_older(1)
    assert log.lines(-1, 1) == []
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


def test_a_log_is_read_where_the_standard_input_is_closed(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a\nb\n")
    os.truncate(tmp_path / "out", 1 << 20)
    ran = subprocess.run(
        [sys.executable, "-c", _READ_WITHOUT_STDIN, str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [r"b'a\n' b'b\n\x00' 1048576 True", "b'' 0 0"]


def test_reads_that_give_less_than_was_asked_for_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As network file systems give, and one read of more than 2 GB."""
    (tmp_path / "out").write_bytes(b"0123456789" * 3)
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, size, start: read(descriptor, min(size, 7), start))
    spooled = SpoolFile(tmp_path / "spooled")
    spooled.append(b"0123456789" * 3)
    for file in (LogFile(tmp_path / "out"), spooled):
        assert file.read(0, 100) == b"0123456789" * 3
        assert file.read(5, 20) == b"56789012345678901234"
        assert file.read(30, 5) == b""
        with monkeypatch.context() as broken:
            broken.setattr(os, "pread", lambda *_: os.read(-1, 1))
            assert file.read(0, 100) == b""
        file.close()
    spooled.finish()


def test_a_file_may_be_longer_than_its_size_says(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"0123")
    assert [LogFile(tmp_path / "out").is_longer(size) for size in (0, 3, 4, 9)] == [True, True, False, False]
    for missing in ("none", ".", "nul\0"):
        assert not LogFile(tmp_path / missing).is_longer(0)


def test_files_that_come_later(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "later")
    log = opened(writer.log)
    assert read_all(log) == []
    writer.write(b"first\n")
    assert read_all(log) == [b"first"]


def test_a_file_that_is_cut_short_says_so(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\ntwo\nthree\n")
    log = opened(ReplicaLog("trainer", 3, stdout=path))
    assert len(read_all(log)) == 3
    path.write_bytes(b"new\n")
    *gone, notice, new = read_all(log)
    assert gone == [b"[this line is no longer in the file]"] * 3
    assert notice == b"trainer/3: out was cut short, its earlier lines are gone"
    assert new == b"new"


def test_a_file_that_is_rotated_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\n")
    log = opened(ReplicaLog("trainer", 0, stdout=path))
    path.rename(tmp_path / "out.1")
    path.write_bytes(b"a longer new one\n")
    one, notice, new = read_all(log)
    assert (one, new) == (b"one", b"a longer new one")
    assert notice.startswith(b"trainer/0: out was replaced")


@pytest.mark.parametrize(
    "index", [b"", b"\xff\x00garbage\n1 2\n-5 1 o\n0 nan o\n99999999999 1 e\n", b"0 inf o\n3 1e400 e\n2 5 q"]
)
def test_an_index_of_any_content_loses_no_byte(tmp_path: Path, index: bytes) -> None:
    writer = LogWriter(tmp_path)
    (writer.folder / "combined.log").write_bytes(b"a\nb\nc\n")
    (writer.folder / "combined.index").write_bytes(index)
    log = opened(writer.log)
    assert b"".join(read_all(log)) == b"abc"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    log = opened(ReplicaLog("r", 0, stdout=tmp_path / "pipe", stderr=tmp_path))
    assert read_all(log) == []


def test_a_hole_of_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c"
    with path.open("wb") as file:
        file.write(b"first\nsecond\nthird")
        file.truncate(50_000_000_000)
        file.seek(50_000_000_000)
        file.write(b"end of the hole\nlast\n")
    taken = [0]
    read = LogFile.read

    def counted(self: LogFile, start: int, size: int) -> bytes:
        taken[0] += size
        return read(self, start, size)

    monkeypatch.setattr(LogFile, "read", counted)
    lines = read_all(opened(ReplicaLog("r", 0, combined=path)), cap=100)
    assert [line[:5] for line in lines] == [b"first", b"secon", b"third", b"last"]
    assert taken[0] < 20_000_000


def test_memory_does_not_grow_with_lines(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with path.open("wb") as file:
        for _ in range(20):
            file.write(b"0123456789\n" * 100_000)
    log = opened(ReplicaLog("r", 0, combined=path))
    tracemalloc.start()
    while log.read_older(1):
        pass
    with path.open("ab") as file:
        file.write(b"0123456789\n" * 500_000)
    drain(log)
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(abs, log.bounds()[:2])) == 2_500_000
    assert current < 500_000


def test_a_flood_of_one_replica_leaves_room_for_the_others(tmp_path: Path) -> None:
    writers = [LogWriter(tmp_path, replica) for replica in range(2)]
    log = opened(*(writer.log for writer in writers))
    writers[0].write(b"fifteen letters\n" * 700_000, at=1)
    writers[1].write(b"quiet\n", at=2)
    _, more = log.poll()
    assert more
    # One look takes 4 MiB of a file.
    assert log.bounds().end == (4 << 20) // 16 + 1
    last = log.lines(log.bounds().end - 1, 1)[0]
    assert (last.replica, last.data) == (1, b"quiet")


def test_what_came_just_before_a_file_was_rotated_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"")
    log = opened(ReplicaLog("trainer", 0, stdout=path))
    expected: list[bytes] = []
    for turn in range(5):
        with path.open("ab") as file:
            file.write(b"early %d\n" % turn)
        drain(log)
        with path.open("ab") as file:
            file.write(b"late %d\n" % turn)
        path.rename(tmp_path / "out.1")
        path.write_bytes(b"first %d\n" % turn)
        drain(log)
        expected += [b"early %d" % turn, b"late %d" % turn, b"first %d" % turn]
    assert [line for line in read_all(log) if b"was replaced" not in line] == expected


def test_a_log_folder_that_is_removed_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "REMOVED_AFTER_S", 0.0)
    writers = [LogWriter(tmp_path / "job", replica) for replica in range(4)]
    for writer in writers:
        writer.write(b"a\n")
    log = opened(*(writer.log for writer in writers))
    read_all(log)
    with writers[1].log.combined.open("ab") as still_open:  # type: ignore[union-attr]
        shutil.rmtree(tmp_path / "job")
        for _ in range(5):
            log.poll()
        *lines, notice = read_all(log)
        assert lines == [b"a"] * 4
        still_open.write(b"still\n")
    assert read_all(log)[-1] == b"still"
    assert notice.decode().startswith(f"the folder {tmp_path / 'job'} was removed")
    # Written anew, they are read again.
    LogWriter(tmp_path / "job", 2).write(b"b\n")
    assert read_all(log)[-1] == b"b"


def test_a_file_that_is_away_for_a_moment_is_no_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "REMOVED_AFTER_S", NEVER)
    writer = LogWriter(tmp_path)
    writer.write(b"a\n")
    log = opened(writer.log)
    away = tmp_path / "away"
    (writer.folder / "combined.log").rename(away)
    drain(log)
    away.rename(writer.folder / "combined.log")
    writer.write(b"b\n")
    assert read_all(log) == [b"a", b"b"]


@pytest.mark.parametrize("live", [False, True])
def test_a_trickle_takes_no_row_for_each_line(tmp_path: Path, live: bool) -> None:
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
    assert sum(log.index.sizes()) < 2000 / 8
    first = log.bounds().first
    for line in log.lines(first, 2000):
        assert line.time is not None
        assert -0.001 < 1000 + (line.number - first) / 100 - line.time < 0.1
        assert line.stream == ("o" if (line.number - first) % 500 else "e")
