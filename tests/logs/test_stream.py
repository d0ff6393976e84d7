import threading

import pytest
from support.streaming import LinesScheduler
from support.waiting import NEVER, PATIENCE

from torchx_tui.logs.source import stream
from torchx_tui.logs.source.stream import LineCursor, LineStream


def test_lines_are_taken_up_by_their_number():
    lines = ["a\n", "b\n", "c\n"]
    reading = LineStream(lambda: lines)
    assert [next(reading).data, next(reading).data] == [b"a\n", b"b\n"]
    assert reading.cursor == LineCursor(2)
    lines.append("d\n")
    assert [record.data for record in LineStream(lambda: lines, cursor=reading.cursor)] == [b"c\n", b"d\n"]


@pytest.mark.parametrize(("later", "rest"), [("par", []), ("partial", [b"tial"]), ("partial\n", [b"tial\n"])])
def test_a_line_that_was_not_whole_goes_on(later, rest):
    reading = LineStream(lambda: ["a\n", "par"])
    assert [record.data for record in reading] == [b"a\n", b"par"]
    assert reading.cursor == LineCursor(1, 3)
    again = LineStream(lambda: ["a\n", later], cursor=reading.cursor)
    assert [record.data for record in again] == rest
    assert again.cursor == (LineCursor(2) if later.endswith("\n") else LineCursor(1, len(later)))


def test_the_default_stream_of_a_scheduler_ends_when_it_is_closed():
    scheduler = LinesScheduler()
    scheduler.write(0, "a\n")
    reading = scheduler.log_stream("app", "trainer", 0)
    got = []
    first = threading.Event()

    def read():
        for record in reading:
            got.append(record.data)
            first.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert first.wait(PATIENCE)
    reading.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert got == [b"a\n"]
    assert scheduler.reading == 0


def test_only_lines_that_come_later_have_a_time(monkeypatch):
    monkeypatch.setattr(stream, "LIVE_AFTER_S", NEVER)
    scheduler = LinesScheduler()
    scheduler.write(0, "a\n", "b\n")
    reading = scheduler.log_stream("app", "trainer", 0)
    assert [next(reading).time, next(reading).time] == [None, None]
    monkeypatch.setattr(stream, "LIVE_AFTER_S", 0.1)
    threading.Timer(0.6, scheduler.write, (0, "later\n")).start()
    assert next(reading).time is not None


def test_a_generator_that_cannot_be_closed_while_it_runs_gives_nothing_more():
    go, begun = threading.Event(), threading.Event()

    def lines():
        yield "a\n"
        begun.set()
        go.wait(PATIENCE)
        yield "b\n"

    reading = LineStream(lines)
    got = []
    thread = threading.Thread(target=lambda: got.extend(record.data for record in reading), daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    reading.close()
    go.set()
    thread.join(PATIENCE)
    assert got == [b"a\n"]
