"""What an engine sends of a log is taken apart rightly, however the bytes were cut."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.docker.log_stream import FramedLog
from torchx_tui.backends.shared.stamped_log import Message, StampedLines
from torchx_tui.logs.source.log_place import LogPlace
from torchx_tui.specs.errors import SchedulerError

NEW_YEAR = 1_767_225_600 * 10**9


def frame(kind, text):
    return struct.pack(">BxxxL", kind, len(text)) + text


def pieces_of(data, cuts):
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 2 * 10**9), st.binary(max_size=20)), max_size=8),
    st.lists(st.integers(0, 500), max_size=6),
)
def test_frames(lines, cuts):
    sent = b""
    for kind, later, text in lines:
        stamp = b"2026-01-01T00:00:0%d.%09dZ " % divmod(later, 10**9)
        sent += frame(kind, stamp + text)
    log = FramedLog()
    found = [message for piece in pieces_of(sent, cuts) for message in log.feed(piece)] + log.rest()
    assert found == [Message("oe"[kind - 1], NEW_YEAR + later, text) for kind, later, text in lines]


def test_the_pieces_of_a_long_line_have_their_times_taken_off():
    stamp = b"2026-01-01T00:00:01.000000002Z "
    first, last = b"x" * 16_384, b"y\n"
    framed = FramedLog().feed(frame(1, stamp + first) + frame(1, stamp + last))
    terminal = StampedLines("o")
    parts = terminal.feed(stamp + first + stamp) + terminal.feed(last + stamp + b"no end") + terminal.rest()
    assert [message.data for message in framed] == [first, last]
    assert [message.data for message in parts] == [first, last, b"no end"]
    assert {message.nanoseconds for message in framed + parts} == {NEW_YEAR + 1_000_000_002}


def test_a_terminal_line_without_end_is_not_kept_for_ever():
    stamp = b"2026-01-01T00:00:01.000000002Z "
    log = StampedLines("o")
    sent = found = 0
    for _ in range(100):
        sent += 16_384
        found += sum(len(message.data) for message in log.feed(stamp + b"x" * 16_384))
    assert sent - found < 2 << 20
    assert found + sum(len(message.data) for message in log.rest()) == sent


def test_the_engine_says_why_it_cannot_go_on():
    with pytest.raises(SchedulerError, match="disk is gone"):
        FramedLog().feed(frame(3, b"error from daemon in stream: the disk\n is gone\n"))


SECOND = 10**9


def take_up(times, stops, forwards_first):
    """Return which lines are new to a reader that is cut off now and then.

    The engine gives lines from a time on: each by its own time, or all after the first that is late enough.
    """
    cursor, found = None, []
    for stop in [*stops, len(times)]:
        place = LogPlace(cursor)
        since = cursor.nanoseconds if cursor else 0
        given_lines = [number for number in range(stop) if times[number] >= since]
        if forwards_first and given_lines:
            given_lines = list(range(given_lines[0], stop))
        found += [number for number in given_lines if place.is_new(times[number])]
        cursor = place.cursor
    return found


@given(st.lists(st.integers(0, 60_000_000), max_size=60), st.booleans(), st.data())
def test_lines_that_are_nearly_in_order_are_all_taken_up_once(jitters, forwards_first, data):
    times = [SECOND + number * 20_000_000 + jitter for number, jitter in enumerate(jitters)]
    stops = data.draw(st.lists(st.integers(0, len(times)), max_size=4).map(sorted))
    assert take_up(times, stops, forwards_first) == list(range(len(times)))


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=400), st.integers(0, 399), st.booleans())
def test_a_clock_that_is_set_back_repeats_nothing(steps, back, forwards_first):
    """One cut; all before it is remembered, however long ago."""
    times, now = [], 3600 * SECOND
    for number, step in enumerate(steps):
        now += step * 10_000_000
        if number == back:
            now -= 600 * SECOND
        times.append(now)
    assert take_up(times, [len(times)], forwards_first) == list(range(len(times)))
