import threading

import pytest
from support.streaming import LinesScheduler
from support.waiting import NEVER, PATIENCE

from torchx_tui.logs.source import stream
from torchx_tui.logs.source.stream import LineCursor, LineStream


def texts(reading):
    return [record.data for record in reading]


def test_stream_is_resumed_by_the_number_of_lines():
    lines = ["a\n", "b\n", "c\n"]
    reading = LineStream(lambda: lines)
    assert [next(reading).data, next(reading).data, reading.cursor] == [b"a\n", b"b\n", LineCursor(2)]
    lines.append("d\n")
    assert texts(LineStream(lambda: lines, cursor=reading.cursor)) == [b"c\n", b"d\n"]


@pytest.mark.parametrize(
    ("later", "rest", "cursor"),
    [
        ("par", [], LineCursor(1, 3)),
        ("partial", [b"tial"], LineCursor(1, 7)),
        ("partial\n", [b"tial\n"], LineCursor(2)),
    ],
)
def test_partial_line_is_continued(later, rest, cursor):
    reading = LineStream(lambda: ["a\n", "par"])
    assert (texts(reading), reading.cursor) == ([b"a\n", b"par"], LineCursor(1, 3))
    again = LineStream(lambda: ["a\n", later], cursor=reading.cursor)
    assert (texts(again), again.cursor) == (rest, cursor)


def read_in_thread(reading):
    """Read a stream in a thread; return the thread and what it reads."""
    read, first = [], threading.Event()

    def run():
        for record in reading:
            read.append(record.data)
            first.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert first.wait(PATIENCE)
    return thread, read


def test_stream_of_lines_ends_when_it_is_closed():
    scheduler = LinesScheduler()
    scheduler.write(0, "a\n")
    reading = LineStream(lambda: scheduler.log_iter("app", "trainer"))
    thread, read = read_in_thread(reading)
    reading.close()
    thread.join(PATIENCE)
    assert (thread.is_alive(), read, scheduler.reading) == (False, [b"a\n"], 0)


def test_only_new_lines_have_a_time(monkeypatch):
    monkeypatch.setattr(stream, "LIVE_AFTER_S", NEVER)
    scheduler = LinesScheduler()
    scheduler.write(0, "a\n", "b\n")
    reading = LineStream(lambda: scheduler.log_iter("app", "trainer"))
    assert [next(reading).time, next(reading).time] == [None, None]
    monkeypatch.setattr(stream, "LIVE_AFTER_S", 0.1)
    threading.Timer(0.6, scheduler.write, (0, "later\n")).start()
    assert next(reading).time is not None


def test_running_generator_gives_nothing_after_its_close():
    go, begun = threading.Event(), threading.Event()

    def lines():
        yield "a\n"
        begun.set()
        go.wait(PATIENCE)
        yield "b\n"

    reading = LineStream(lines)
    thread, read = read_in_thread(reading)
    assert begun.wait(PATIENCE)
    reading.close()
    go.set()
    thread.join(PATIENCE)
    assert read == [b"a\n"]
