"""The records and lines of one replica's log: from files and from streams, followed, cut off, resumed and closed."""

from __future__ import annotations

import os
import platform
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from log_writing import LogWriter
from support.background import in_background
from support.canned import CannedScheduler
from support.streaming import LinesScheduler
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.log_records import FileRecords, LineAssembler, LogLines, StreamRecords, open_stream
from torchx_tui.backends.shared import changes
from torchx_tui.backends.types import DescribeAppResponse, LogQuery, Stream
from torchx_tui.base.backoff import Backoff
from torchx_tui.logs.source import replica_reader
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.status import AppState

LINES = ["one\n", "two\n", "three\n"]
AWAY = BackendUnavailableError("docker", "away")
HOUR = 3600.0
LATENCY_S = 1.0
"""Seconds for a line to arrive after it was printed."""


def record(text, at=None, stream="o"):
    return Record(text.encode(), at, stream)


# Lines out of pieces


def test_pieces_become_lines_with_the_first_time():
    assembler = LineAssembler()
    assert list(assembler.add(record("one\ntw", 1.0))) == [(1.0, b"one\n")]
    assert list(assembler.add(record("err", 2.0, "e"))) == []
    assert list(assembler.add(record("o\n\nthree", 3.0))) == [(1.0, b"two\n"), (3.0, b"\n")]
    assert list(assembler.rest()) == [(3.0, b"three"), (2.0, b"err")]
    assert list(assembler.rest()) == []


def test_line_of_40_mib_comes_in_pieces():
    assembler = LineAssembler()
    piece = record("x" * (1 << 20))
    pieces = [len(line) for _ in range(40) for _, line in assembler.add(piece)]
    assert pieces == [17 << 20, 17 << 20]
    assert [len(line) for _, line in assembler.rest()] == [6 << 20]


# Files


@dataclass
class Writer:
    """A replica that writes into one file; its late bytes come when it is asked for the fifth time."""

    path: Path
    is_away: bool = False
    ended: bool = False
    asked: int = 0
    late: bytes = b""

    def write(self, data):
        with self.path.open("ab") as file:
            file.write(data)

    def has_ended(self):
        self.asked += 1
        if self.asked == 5 and self.late:
            self.write(self.late)
        if self.is_away:
            raise AWAY
        return self.ended

    def records(self, query, stdout=None, last=None):
        log = ReplicaLog("worker", 0, combined=self.path, stdout=stdout)
        return FileRecords(log, query, self.has_ended, last)

    def lines(self, stdout=None, last=None, **query):
        asked = LogQuery("app", "worker", **query)
        return LogLines(lambda: self.records(asked, stdout, last), asked)


@pytest.fixture
def writer(tmp_path):
    made = Writer(tmp_path / "combined.log")
    made.write(b"one\ntwo\nthree\n")
    yield made
    made.ended = True


def test_lines_are_found_by_number(writer):
    writer.write(b"t\xff\xfe\n")
    lines = writer.lines()
    assert [lines[1], next(lines), lines[0], next(lines), lines[3]] == [*LINES[1:], *LINES[:2], "t\ufffd\ufffd\n"]
    assert writer.lines(pattern=re.compile("t"))[1] == "three\n"
    with pytest.raises(IndexError, match="line 4: there are 4"):
        lines[4]
    with pytest.raises(IndexError, match="counted from 0"):
        lines[-1]


@pytest.mark.parametrize(("last", "count"), [(0, 0), (2, 2), (9, 3), (None, 3)])
def test_files_begin_at_the_last_lines(writer, last, count):
    writer.path.with_suffix(".index").write_text("0 900.000 o\n4 1000.000 e\n8 1100.000 o\n")
    lines = writer.lines(last=last, follow=True)
    writer.write(b"four\n")
    writer.ended = True
    assert list(lines) == [*LINES[3 - count :], "four\n"]


@pytest.mark.parametrize("age", [0, 3600])
@pytest.mark.parametrize("last", [0, 1, 3, 5])
def test_last_lines_where_the_combined_file_ends_early(tmp_path, last, age):
    writer = LogWriter(tmp_path)
    writer.write(b"1\n2\n")
    writer.write(b"3\n4\n5\n", derive=False)
    for path in writer.folder.glob("*.log"):
        os.utime(path, (time.time() - age,) * 2)
    asked = LogQuery("app", "trainer")
    lines = LogLines(lambda: FileRecords(writer.log, asked, lambda: False, last), asked)
    assert list(lines) == [f"{number}\n" for number in range(6 - last, 6)]


def test_files_are_followed_until_the_app_ends(writer):
    lines = writer.lines(follow=True)
    assert [next(lines) for _ in range(3)] == LINES
    writer.write(b"four\nfi")
    assert next(lines) == "four\n"
    writer.write(b"ve")
    writer.ended = True
    assert list(lines) == ["five"]


def test_files_are_followed_while_the_backend_is_away(writer):
    writer.is_away, writer.ended = True, True
    lines = writer.lines(follow=True)
    assert [next(lines) for _ in range(3)] == LINES
    writer.late, asked = b"four\n", writer.asked
    assert next(lines) == "four\n"
    assert writer.asked > asked
    writer.is_away = False
    assert list(lines) == []


def test_files_are_followed_up_to_a_time(writer):
    writer.late = b"four\n"
    lines = writer.lines(follow=True, until=time.time() + HOUR)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    lines.close()
    assert list(lines) == []


def test_quiet_files_are_read_less_often(writer, monkeypatch):
    times, now = iter([101.5, 102.0, 129.5, 130.0, 1e6, 1e6 + 1.5]), 100.0
    waits = []

    class Passing(threading.Event):
        """Lets time pass at once."""

        def wait(self, timeout=None):
            nonlocal now
            waits.append((now, timeout))
            now = next(times, 2e6)
            writer.ended = now == 2e6
            if now == 1e6:
                writer.write(b"four\n")
            return self.is_set()

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(threading, "Event", Passing)
    assert list(writer.lines(follow=True))[-1] == "four\n"
    assert waits == [
        (100.0, 0.02), (101.5, 0.02), (102.0, 0.05), (129.5, 0.05), (130.0, 0.2), (1e6, 0.02), (1e6 + 1.5, 0.02),
    ]  # fmt: skip


def test_a_line_may_be_a_second_late(writer, monkeypatch):
    writer.path.with_suffix(".index").write_text("0 900.000 o\n")
    until, now = 1000.0, 1000.5
    monkeypatch.setattr(time, "time", lambda: now)
    writer.late = b"four\n"
    lines = writer.lines(follow=True, until=until)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    now = 1001.5
    assert list(lines) == []


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"since": 1000.0}, [1, 2]),
        ({"until": 1000.0}, [0, 1]),
        ({"since": 950.0, "until": 1050.0}, [1]),
        # Times in the past are not waited for.
        ({"follow": True, "until": 899.0}, []),
        ({"follow": True, "until": 2000.0}, [0, 1, 2]),
    ],
)
def test_lines_of_a_time_range(writer, query, numbers):
    writer.path.with_suffix(".index").write_text("0 900.000 o\n4 1000.000 o\n8 1100.000 o\n")
    assert list(writer.lines(**query)) == [LINES[number] for number in numbers]


def test_files_without_an_index_have_one_time(writer):
    assert list(writer.lines(since=time.time() + HOUR)) == []
    assert list(writer.lines(since=time.time() - HOUR)) == LINES


@pytest.mark.parametrize(("follow", "ended"), [(True, True), (True, False), (False, False)])
def test_missing_lines_are_read_from_the_outputs(writer, tmp_path, monkeypatch, follow, ended):
    """At the end of the app, or once they have been missing for a while; at once without following."""
    monkeypatch.setattr(replica_reader, "COMBINED_LAG_S", 0.0 if follow and not ended else HOUR)
    monkeypatch.setattr(replica_reader, "LAG_CHECK_INTERVAL_S", 0.0)
    writer.path.with_suffix(".index").write_text("0 900.000 o\n")
    (tmp_path / "stdout.log").write_bytes(b"one\ntwo\nthree\nfour\n")
    writer.ended = ended
    lines = writer.lines(stdout=tmp_path / "stdout.log", follow=follow)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    assert follow or list(lines) == []
    lines.close()


def test_files_are_read_once_and_left_closed(writer):
    def opened():
        folder = Path("/proc/self/fd")
        return sum(os.path.realpath(folder / name) == str(writer.path) for name in os.listdir(folder))

    lines = writer.lines()
    assert lines[0] == "one\n"
    count = opened()
    # Only a line before the last one read is read again.
    writer.path.write_bytes(b"ONE\nTWO\nTHREE\n")
    assert (lines[1], lines[2]) == ("two\n", "three\n")
    assert lines[0] == "ONE\n"
    assert opened() == count > 0
    assert list(lines) == ["TWO\n", "THREE\n"]
    assert opened() == 0


def test_a_removed_log_is_named(writer):
    lines = writer.lines(follow=True)
    assert next(lines) == "one\n"
    assert lines[2] == "three\n"
    writer.path.unlink()
    with pytest.raises(SchedulerError, match=rf"the log was removed: {writer.path}"):
        wait_until(lambda: next(lines) and False, "it is noticed")


@pytest.mark.parametrize(
    ("state", "started_at", "host", "words"),
    [
        (AppState.RUNNING, 5.0, "", ""),
        (AppState.CANCELLED, None, "", ""),
        (AppState.FAILED, 5.0, "", "combined.log: it was removed or never written$"),
        (AppState.FAILED, 5.0, platform.node(), "combined.log: it was removed or never written$"),
        (AppState.FAILED, 5.0, "n7", "combined.log: it was removed or never written, or n7 keeps it$"),
    ],
)
def test_a_missing_log_of_an_ended_app_is_an_error(tmp_path, state, started_at, host, words):
    scheduler = CannedScheduler(logs=tmp_path)
    scheduler.described["app"] = DescribeAppResponse("app", state, started_at=started_at, host=host)
    if not words:
        assert list(scheduler.log_iter("app", "trainer")) == []
        return
    with pytest.raises(SchedulerError, match=words):
        scheduler.log_iter("app", "trainer")


def test_one_output_is_read_from_its_own_file(tmp_path):
    scheduler: Any = CannedScheduler()
    scheduler.log_files = lambda *_: {stream: tmp_path / f"{stream.value}.log" for stream in Stream}
    (tmp_path / "stderr.log").write_text("unfinished")
    scheduler.add("app", AppState.RUNNING, 60)
    assert list(scheduler.log_iter("app", "trainer", streams=Stream.STDERR)) == ["unfinished"]


def test_a_named_pipe_is_not_read(writer):
    writer.path.unlink()
    os.mkfifo(writer.path)
    with pytest.raises(SchedulerError, match=rf"the log cannot be read: {writer.path}"):
        writer.lines()


# Streams


class Canned:
    """A stream of texts, times, and errors to raise; then it waits until it is closed, or ends."""

    is_complete = False

    def __init__(self, *items, waits=False):
        self._items = iter(items)
        self._waits = waits
        self._read = 0
        self.closed = threading.Event()

    @property
    def cursor(self):
        return LineCursor(self._read)

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self._items, None)
        if isinstance(item, Exception):
            raise item
        if item is None:
            if self._waits:
                assert self.closed.wait(PATIENCE)
            raise StopIteration
        self._read += 1
        return record(*item) if isinstance(item, tuple) else record(item)

    def close(self):
        self.closed.set()


class Backend:
    """Gives its streams one after another, and keeps how each was asked for."""

    def __init__(self, *streams, has_ended=lambda: True):
        self._streams = list(streams)
        self._has_ended = has_ended
        self.asked = []

    def connect(self, cursor, follow):
        self.asked.append((cursor, follow))
        return self._streams.pop(0)

    def records(self, query):
        return StreamRecords(self.connect, query, self._has_ended)

    def lines(self, **query):
        asked = LogQuery("app", "role", **query)
        return LogLines(lambda: self.records(asked), asked)


@pytest.fixture
def timers(monkeypatch):
    """Return the list of timers, which do not go off by themselves."""
    timers = []

    class Timer(threading.Timer):
        def start(self):
            timers.append(self)

    monkeypatch.setattr(threading, "Timer", Timer)
    return timers


@pytest.mark.parametrize(
    ("items", "query", "lines"),
    [
        (["a\nb", "b\nc"], {}, ["a\n", "bb\n", "c"]),
        (["loss 1\nstep\nloss 2\n"], {"pattern": re.compile("loss")}, ["loss 1\n", "loss 2\n"]),
        ([("a\n", 10.0), ("b\n", 11.0), ("c\n", 11.5), ("d\n", 1.0)], {"until": 11.0}, ["a\n", "b\n"]),
        ([("a\n", 10.0), ("b\n", 11.0), "c\n"], {"since": 10.5}, ["b\n", "c\n"]),
        (["a\n"], {"until": 11.0}, ["a\n"]),
        (["a\n"], {"follow": True, "until": time.time() - LATENCY_S - 5}, ["a\n"]),
    ],
    ids=["last line without an end", "pattern", "until a time", "since", "unknown time", "past time is not followed"],
)
def test_existing_lines_of_a_stream(items, query, lines):
    stream = Canned(*items)
    backend = Backend(stream, has_ended=lambda: pytest.fail("the app was asked for"))
    assert list(backend.lines(**query)) == lines
    assert backend.asked == [(None, False)]
    assert stream.closed.is_set()


@pytest.mark.parametrize(("stream", "letter"), [("combined", "c"), ("stdout", "o"), ("stderr", "e")])
def test_a_stream_of_lines_knows_its_output(stream, letter):
    scheduler = LinesScheduler()
    scheduler.write(0, "line\n", stream=letter)
    scheduler.end()
    assert list(open_stream(scheduler, "app", "trainer", 0, Stream(stream), None, follow=True)) == [
        record("line\n", None, letter)
    ]


@pytest.mark.parametrize(("stream", "asked"), [(Stream.COMBINED, None), (Stream.STDERR, Stream.STDERR)])
def test_a_scheduler_of_lines_may_choose_its_stream(stream, asked):
    scheduler = SimpleNamespace(log_iter=Mock(return_value=[]))
    assert list(open_stream(scheduler, "app", "r", 2, stream, None, follow=False)) == []
    scheduler.log_iter.assert_called_once_with("app", "r", 2, should_tail=False, streams=asked)


def test_a_broken_stream_can_be_read_again():
    records = Backend(Canned(AWAY), Canned("a\n")).records(LogQuery("app", "role"))
    with pytest.raises(BackendUnavailableError):
        next(records)
    assert list(records) == [record("a\n")]


def test_a_stream_is_opened_anew_to_go_back():
    backend = Backend(Canned("a\nb\n"), Canned("a\nb\n"))
    lines = backend.lines()
    assert [lines[1], lines[0], next(lines)] == ["b\n", "a\n", "b\n"]
    assert backend.asked == [(None, False)] * 2


def test_a_broken_stream_is_resumed(monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    cut = Canned("a\nb", AWAY)
    backend = Backend(cut, Canned(AWAY), Canned("b\n"))
    assert list(backend.lines(follow=True)) == ["a\n", "bb\n"]
    assert backend.asked == [(None, True), (LineCursor(1), True), (LineCursor(0), True)]
    assert cut.closed.is_set()


def test_following_ends_at_its_time():
    """The stream is read to its end without waiting, from where it was."""
    first, second = Canned("a\n", waits=True), Canned("b\n")
    backend = Backend(first, second, has_ended=lambda: False)
    began = time.monotonic()
    assert list(backend.lines(follow=True, until=time.time())) == ["a\n", "b\n"]
    assert time.monotonic() - began < PATIENCE
    assert backend.asked == [(None, True), (LineCursor(1), False)]
    assert first.closed.is_set()
    assert second.closed.is_set()


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_stream_resumed_too_late_is_ended(timers, is_closed):
    """It is closed while it is resumed, or the time of the last wanted line comes then."""
    backend = Backend(Canned(AWAY), late := Canned(waits=True), Canned("a\n"))
    connect = backend.connect

    def connect_late(cursor, follow):
        if len(backend.asked) == 1:
            lines.close() if is_closed else timers[-1].function()
        return connect(cursor, follow)

    backend.connect = connect_late
    lines = backend.lines(follow=True, until=time.time() + HOUR)
    assert list(lines) == ([] if is_closed else ["a\n"])
    assert [follow for _, follow in backend.asked] == [True, True, False][: 2 if is_closed else 3]
    assert late.closed.is_set()


def test_the_end_waits_for_the_app(monkeypatch):
    waits = []
    monkeypatch.setattr(Backoff, "wait", lambda _, closed, limit=None: waits.append(closed))
    answers = iter([False, AWAY, True])

    def has_ended():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert list(Backend(Canned("a\n"), has_ended=has_ended).lines(follow=True)) == ["a\n"]
    assert next(answers, None) is None
    assert len(waits) >= 2


def test_the_app_is_awaited_while_a_line_may_be_late(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    answers = iter([False, True])
    backend = Backend(Canned("a\n"), Canned(), has_ended=lambda: next(answers))
    assert list(backend.lines(follow=True, until=1000.0 + LATENCY_S / 2)) == ["a\n"]
    assert backend.asked[0] == (None, True)
    assert next(answers, None) is None


@pytest.mark.parametrize(("until", "seconds"), [(1000.0 - LATENCY_S / 2, LATENCY_S / 2), (1010.0, 10.0 + LATENCY_S)])
def test_following_ends_when_no_line_can_come(monkeypatch, timers, until, seconds):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    Backend(Canned()).lines(follow=True, until=until).close()
    assert [timer.interval for timer in timers] == [seconds]


def test_closing_ends_a_blocked_read():
    stream = Canned("a\n", waits=True)
    lines = Backend(stream, has_ended=lambda: False).lines(follow=True)
    assert next(lines) == "a\n"
    assert not stream.closed.is_set()
    rest = in_background(lambda: list(lines))
    lines.close()
    lines.close()
    assert rest.result(PATIENCE) == []


def test_closing_ends_the_wait_for_a_server():
    lines = Backend(Canned("a\n", AWAY), *(Canned(AWAY) for _ in range(1000))).lines(follow=True)
    assert next(lines) == "a\n"
    threading.Timer(0.05, lines.close).start()
    with pytest.raises((BackendUnavailableError, StopIteration)):
        next(lines)


def test_closed_streams_leave_nothing_behind():
    before = set(threading.enumerate())
    stream = Canned(waits=True)
    lines = Backend(stream).lines(follow=True, until=time.time() + HOUR)
    started = set(threading.enumerate()) - before
    assert all(thread.daemon for thread in started)
    lines.close()
    wait_until(lambda: not any(thread.is_alive() for thread in started), "the timer is over")
    assert stream.closed.is_set()
