"""Whole lines of a stream: cut anywhere, taken up again, ended in time and from another thread."""

from __future__ import annotations

import re
import threading
import time

import pytest
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.shared.stream_lines import LATE, LineAssembler, StreamLines
from torchx_tui.backends.types import LogQuery
from torchx_tui.logs.source.stream import Cursor, LineCursor, Record
from torchx_tui.specs import BackendUnavailableError
from torchx_tui.specs.backoff import Backoff


class Canned:
    """A stream of records, and of errors to raise; then it waits until it is closed, or ends."""

    def __init__(self, records, *, waits=False):
        self._records = iter(records)
        self._waits = waits
        self._read = 0
        self.closed = threading.Event()

    @property
    def cursor(self):
        return LineCursor(self._read)

    is_complete = False

    def __iter__(self):
        return self

    def __next__(self):
        record = next(self._records, None)
        if isinstance(record, Exception):
            raise record
        if record is None:
            if self._waits:
                assert self.closed.wait(PATIENCE)
            raise StopIteration
        self._read += 1
        return record

    def close(self):
        self.closed.set()


class Backend:
    """Gives its streams one after another, and notes how each was asked for."""

    def __init__(self, *streams, is_over=lambda: True):
        self._streams = list(streams)
        self._is_over = is_over
        self.asked: list[tuple[Cursor | None, bool]] = []

    def lines(self, **query):
        def connect(cursor, follow):
            self.asked.append((cursor, follow))
            return self._streams.pop(0)

        return StreamLines(connect, self._is_over, LogQuery("app", "role", **query))


def record(text, at=None, stream="o"):
    return Record(text.encode(), at, stream)


def test_pieces_become_lines_each_with_the_time_of_its_first_byte():
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


def test_the_lines_of_a_log_with_its_last_one_that_has_no_end():
    stream = Canned([record("a\nb"), record("b\nc")])
    backend = Backend(stream)
    assert list(backend.lines()) == ["a\n", "bb\n", "c"]
    assert backend.asked == [(None, False)]
    assert stream.closed.is_set()


def test_only_lines_in_which_the_pattern_is_found():
    assert list(Backend(Canned([record("loss 1\nstep\nloss 2\n")])).lines(pattern=re.compile("loss"))) == [
        "loss 1\n",
        "loss 2\n",
    ]


def test_lines_up_to_a_time_and_nothing_after_it():
    records = [record("a\n", 10.0), record("b\n", 11.0), record("c\n", 11.5), record("d\n", 1.0)]
    assert list(Backend(Canned(records)).lines(until=11.0)) == ["a\n", "b\n"]
    # A line whose time is not known is given.
    assert list(Backend(Canned([record("a\n")])).lines(until=11.0)) == ["a\n"]


def test_a_time_in_the_past_is_not_followed():
    backend = Backend(Canned([record("a\n")]), is_over=lambda: pytest.fail("the app was asked for"))
    assert list(backend.lines(follow=True, until=time.time() - LATE - 5)) == ["a\n"]
    assert backend.asked == [(None, False)]


def test_a_time_that_may_still_bring_lines_is_followed():
    backend = Backend(Canned([record("a\n")]))
    assert list(backend.lines(follow=True, until=time.time())) == ["a\n"]
    assert backend.asked[0] == (None, True)


def test_following_ends_at_its_time_with_what_had_come():
    """The stream is read to its end without waiting, from where it was."""
    first, second = Canned([record("a\n")], waits=True), Canned([record("b\n")])
    backend = Backend(first, second, is_over=lambda: False)
    began = time.monotonic()
    assert list(backend.lines(follow=True, until=time.time())) == ["a\n", "b\n"]
    assert time.monotonic() - began < PATIENCE
    assert backend.asked == [(None, True), (LineCursor(1), False)]
    assert first.closed.is_set()
    assert second.closed.is_set()


def test_a_stream_that_was_cut_off_is_taken_up_where_it_was():
    cut = Canned([record("a\nb"), BackendUnavailableError("docker", "away")])
    backend = Backend(cut, Canned([record("b\n")]))
    assert list(backend.lines(follow=True)) == ["a\n", "bb\n"]
    assert backend.asked == [(None, True), (LineCursor(1), True)]
    assert cut.closed.is_set()


def test_without_following_a_cut_is_raised_and_can_be_asked_again():
    lines = Backend(Canned([BackendUnavailableError("docker", "away")]), Canned([record("a\n")])).lines()
    with pytest.raises(BackendUnavailableError):
        next(lines)
    assert list(lines) == ["a\n"]


def test_a_stream_that_is_taken_up_too_late_is_ended(monkeypatch):
    """It is closed meanwhile, or the time has come up to which lines are wanted."""

    class Alarm(threading.Timer):
        """Goes off when a test says so."""

        def start(self):
            alarms.append(self.function)

    alarms = []
    monkeypatch.setattr(threading, "Timer", Alarm)
    ways = [lambda: lines.close(), lambda: alarms[-1]()]
    for way in ways:
        streams = [Canned([BackendUnavailableError("docker", "away")]), Canned([], waits=True), Canned([record("a\n")])]
        asked = []

        def connect(_, follow, way=way, asked=asked, streams=streams):
            asked.append(follow)
            if len(asked) == 2:
                way()
            return streams[len(asked) - 1]

        query = LogQuery("app", "role", follow=True, until=time.time() + 3600)
        lines = StreamLines(connect, lambda: True, query)
        assert list(lines) == ([] if way is ways[0] else ["a\n"])
        assert asked == [True, True, False][: 2 + ways.index(way)]
        assert streams[1].closed.is_set()


def test_the_end_waits_for_the_app_also_while_it_cannot_be_asked(monkeypatch):
    waits = []
    monkeypatch.setattr(Backoff, "wait", lambda _, closed, limit=None: waits.append(closed))
    answers = iter([False, BackendUnavailableError("docker", "away"), True])

    def is_over():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert list(Backend(Canned([record("a\n")]), is_over=is_over).lines(follow=True)) == ["a\n"]
    assert next(answers, None) is None
    assert len(waits) >= 2


def test_the_app_is_waited_for_while_a_line_may_be_on_its_way(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    answers = iter([False, True])
    backend = Backend(Canned([record("a\n")]), Canned([]), is_over=lambda: next(answers))
    assert list(backend.lines(follow=True, until=1000.0 + LATE / 2)) == ["a\n"]
    assert next(answers, None) is None


def test_following_ends_when_no_line_can_come_any_more(monkeypatch):
    class Alarm(threading.Timer):
        """Is not waited for."""

        def start(self):
            waited.append(self.interval)

    waited = []
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(threading, "Timer", Alarm)
    for until in (1000.0 - LATE / 2, 1010.0):
        Backend(Canned([])).lines(follow=True, until=until).close()
    assert waited == [LATE / 2, 10.0 + LATE]


def test_closing_ends_a_read_that_is_blocked():
    stream = Canned([record("a\n")], waits=True)
    lines = Backend(stream, is_over=lambda: False).lines(follow=True)
    assert next(lines) == "a\n"
    assert not stream.closed.is_set()
    found = []
    thread = threading.Thread(target=lambda: found.extend(lines))
    thread.start()
    lines.close()
    lines.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert found == []


def test_what_is_closed_before_its_time_leaves_nothing_behind():
    before = set(threading.enumerate())
    stream = Canned([], waits=True)
    lines = Backend(stream).lines(follow=True, until=time.time() + 3600)
    started = set(threading.enumerate()) - before
    assert all(thread.daemon for thread in started)
    lines.close()
    wait_until(lambda: not any(thread.is_alive() for thread in started), "the alarm is over")
    assert stream.closed.is_set()
