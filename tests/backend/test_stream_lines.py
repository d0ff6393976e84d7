"""Whole lines of a stream: cut anywhere, resumed, ended in time and from another thread."""

import re
import threading
import time

import pytest
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.stream_lines import LATE, LineAssembler, StreamLines
from torchx_tui.backends.types import LogQuery
from torchx_tui.base.backoff import Backoff
from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.specs.errors import BackendUnavailableError

AWAY = BackendUnavailableError("docker", "away")
HOUR = 3600.0


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

    def __init__(self, *streams, is_over=lambda: True):
        self._streams = list(streams)
        self._is_over = is_over
        self.asked = []

    def connect(self, cursor, follow):
        self.asked.append((cursor, follow))
        return self._streams.pop(0)

    def lines(self, **query):
        return StreamLines(self.connect, self._is_over, LogQuery("app", "role", **query))


def record(text, at=None, stream="o"):
    return Record(text.encode(), at, stream)


@pytest.fixture
def alarms(monkeypatch):
    """Return the list of alarms, which do not go off by themselves."""
    alarms = []

    class Alarm(threading.Timer):
        def start(self):
            alarms.append(self)

    monkeypatch.setattr(threading, "Timer", Alarm)
    return alarms


# Pieces


def test_pieces_become_lines_with_the_time_of_the_first():
    assembler = LineAssembler()
    assert assembler.add(record("one\ntw", 1.0)) == [(1.0, b"one\n")]
    assert assembler.add(record("err", 2.0, "e")) == []
    assert assembler.add(record("o\n\nthree", 3.0)) == [(1.0, b"two\n"), (3.0, b"\n")]
    assert assembler.rest() == [(3.0, b"three"), (2.0, b"err")]
    assert assembler.rest() == []


def test_line_of_40_mib_comes_in_pieces():
    assembler = LineAssembler()
    piece = record("x" * (1 << 20))
    pieces = [len(line) for _ in range(40) for _, line in assembler.add(piece)]
    assert pieces == [17 << 20, 17 << 20]
    assert [len(line) for _, line in assembler.rest()] == [6 << 20]


# Without following


@pytest.mark.parametrize(
    ("items", "query", "lines"),
    [
        (["a\nb", "b\nc"], {}, ["a\n", "bb\n", "c"]),
        (["loss 1\nstep\nloss 2\n"], {"pattern": re.compile("loss")}, ["loss 1\n", "loss 2\n"]),
        ([("a\n", 10.0), ("b\n", 11.0), ("c\n", 11.5), ("d\n", 1.0)], {"until": 11.0}, ["a\n", "b\n"]),
        (["a\n"], {"until": 11.0}, ["a\n"]),
        (["a\n"], {"follow": True, "until": time.time() - LATE - 5}, ["a\n"]),
    ],
    ids=["last line without an end", "pattern", "until a time", "unknown time", "past time is not followed"],
)
def test_lines_that_are_there(items, query, lines):
    stream = Canned(*items)
    backend = Backend(stream, is_over=lambda: pytest.fail("the app was asked for"))
    assert list(backend.lines(**query)) == lines
    assert backend.asked == [(None, False)]
    assert stream.closed.is_set()


def test_a_cut_is_raised_and_can_be_retried():
    lines = Backend(Canned(AWAY), Canned("a\n")).lines()
    with pytest.raises(BackendUnavailableError):
        next(lines)
    assert list(lines) == ["a\n"]


# Following


def test_a_stream_that_was_cut_off_is_resumed(monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    cut = Canned("a\nb", AWAY)
    backend = Backend(cut, Canned(AWAY), Canned("b\n"))
    assert list(backend.lines(follow=True)) == ["a\n", "bb\n"]
    assert backend.asked == [(None, True), (LineCursor(1), True), (LineCursor(0), True)]
    assert cut.closed.is_set()


def test_following_ends_at_its_time():
    """The stream is read to its end without waiting, from where it was."""
    first, second = Canned("a\n", waits=True), Canned("b\n")
    backend = Backend(first, second, is_over=lambda: False)
    began = time.monotonic()
    assert list(backend.lines(follow=True, until=time.time())) == ["a\n", "b\n"]
    assert time.monotonic() - began < PATIENCE
    assert backend.asked == [(None, True), (LineCursor(1), False)]
    assert first.closed.is_set()
    assert second.closed.is_set()


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_stream_resumed_too_late_is_ended(alarms, is_closed):
    """It is closed while it is resumed, or the time of the last wanted line comes then."""
    backend = Backend(Canned(AWAY), late := Canned(waits=True), Canned("a\n"))
    connect = backend.connect

    def connect_late(cursor, follow):
        if len(backend.asked) == 1:
            lines.close() if is_closed else alarms[-1].function()
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

    def is_over():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert list(Backend(Canned("a\n"), is_over=is_over).lines(follow=True)) == ["a\n"]
    assert next(answers, None) is None
    assert len(waits) >= 2


def test_the_app_is_awaited_while_a_line_may_be_late(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    answers = iter([False, True])
    backend = Backend(Canned("a\n"), Canned(), is_over=lambda: next(answers))
    assert list(backend.lines(follow=True, until=1000.0 + LATE / 2)) == ["a\n"]
    assert backend.asked[0] == (None, True)
    assert next(answers, None) is None


@pytest.mark.parametrize(("until", "seconds"), [(1000.0 - LATE / 2, LATE / 2), (1010.0, 10.0 + LATE)])
def test_following_ends_when_no_line_can_come(monkeypatch, alarms, until, seconds):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    Backend(Canned()).lines(follow=True, until=until).close()
    assert [alarm.interval for alarm in alarms] == [seconds]


# Closing


def test_closing_ends_a_blocked_read():
    stream = Canned("a\n", waits=True)
    lines, found = Backend(stream, is_over=lambda: False).lines(follow=True), []
    assert next(lines) == "a\n"
    assert not stream.closed.is_set()
    thread = threading.Thread(target=lambda: found.extend(lines))
    thread.start()
    lines.close()
    lines.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert found == []


def test_closing_ends_the_wait_for_a_server():
    lines = Backend(Canned("a\n", AWAY), *(Canned(AWAY) for _ in range(1000))).lines(follow=True)
    assert next(lines) == "a\n"
    threading.Timer(0.05, lines.close).start()
    with pytest.raises((BackendUnavailableError, StopIteration)):
        next(lines)


def test_closed_lines_leave_nothing_behind():
    before = set(threading.enumerate())
    stream = Canned(waits=True)
    lines = Backend(stream).lines(follow=True, until=time.time() + HOUR)
    started = set(threading.enumerate()) - before
    assert all(thread.daemon for thread in started)
    lines.close()
    wait_until(lambda: not any(thread.is_alive() for thread in started), "the alarm is over")
    assert stream.closed.is_set()
