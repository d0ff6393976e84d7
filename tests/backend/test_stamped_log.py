"""Logs as servers give them, with a time in front of each line, cut anywhere."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.shared.stamped_log import UNKNOWN, LookWaits, Message, StampedLines, join_messages
from torchx_tui.logs.source.log_place import LogPlace
from torchx_tui.logs.source.stream import Record

STAMP = b"2026-11-21T21:49:46.%09dZ "
FIRST = 1795297786 * 10**9


def messages_of(data, cuts):
    log, found, at = StampedLines(), [], 0
    for cut in sorted(cuts):
        found += log.feed(data[at:cut])
        at = max(at, cut)
    return found + log.feed(data[at:]) + log.rest()


@given(
    st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=12),
    st.lists(st.integers(0, 900), max_size=6),
)
def test_lines_come_whole_however_they_were_cut(lines, cuts):
    data = b"".join(STAMP % number + line + b"\n" for number, line in enumerate(lines))
    expected = [Message("c", FIRST + number, line + b"\n") for number, line in enumerate(lines)]
    assert messages_of(data, cuts) == expected


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385, 32_768, 50_000, 1_500_000])
def test_a_long_line_is_one_though_each_of_its_pieces_has_a_time(size):
    line = bytes(65 + number % 26 for number in range(size))
    pieces = [line[at : at + 16_384] for at in range(0, size, 16_384)]
    data = b"".join(STAMP % number + piece for number, piece in enumerate(pieces)) + b"\n"
    data += STAMP % 999 + b"next\n"
    *found, last = messages_of(data, [20_000, 100_000])
    assert b"".join(message.data for message in found) == line + b"\n"
    assert [message.nanoseconds for message in found] == [FIRST + number for number in range(len(pieces))]
    assert last == Message("c", FIRST + 999, b"next\n")


def test_newer_servers_put_one_time_in_front_of_a_long_line():
    line = b"x" * 40_000 + b"\n"
    assert b"".join(message.data for message in messages_of(STAMP % 1 + line, [])) == line


def test_a_line_without_an_end():
    assert messages_of(STAMP % 1 + b"no end", [5]) == [Message("c", FIRST + 1, b"no end")]


def test_a_nodes_own_words_have_no_time():
    words = b"unable to retrieve container logs for containerd://1234"
    assert messages_of(words, []) == [Message("c", UNKNOWN, words)]


@pytest.mark.parametrize("stamp", [b"2026-11-21T21:49:46Z ", b"2026-11-21T22:49:46.00+01:00 "])
def test_times_in_other_forms(stamp):
    assert messages_of(stamp + b"line\n", []) == [Message("c", FIRST, b"line\n")]


def test_a_line_of_one_time_that_does_not_end_is_not_kept_for_ever():
    """It is divided alike, however it comes: on its messages it is counted where to go on."""
    size = 5_000_000
    log, found, most = StampedLines(), [], 0
    for at in range(0, size, 100_000):
        found += log.feed((STAMP % 1 if at == 0 else b"") + b"x" * 100_000)
        most = max(most, len(log._rest))
    found += log.feed(b"\n" + STAMP % 2 + b"next\n")
    assert most <= 1_200_000
    assert b"".join(message.data for message in found) == b"x" * size + b"\nnext\n"
    assert [message.nanoseconds - FIRST for message in found] == [1] * (len(found) - 1) + [2]
    assert found == messages_of(STAMP % 1 + b"x" * size + b"\n" + STAMP % 2 + b"next\n", [])


def record(text, nanoseconds, stream="o"):
    return Record(text, (FIRST + nanoseconds) / 1e9, stream)


def said(*printed):
    return [Message(stream, UNKNOWN if at < 0 else FIRST + at, data) for stream, at, data in printed]


def test_what_was_printed_together_is_one_record():
    messages = said(("o", 0, b"a\n"), ("o", 9, b"b\n"), ("e", 9, b"c\n"), ("o", 9, b"d\n"), ("o", 19, b"e\n"))
    place = LogPlace(None)
    found = list(join_messages(messages, place, 10))
    assert [one for one, _ in found] == [
        record(b"a\nb\n", 0),
        record(b"c\n", 9, "e"),
        record(b"d\n", 9),
        record(b"e\n", 19),
    ]
    # Each place is the one after its record: a log that is taken up there goes on with the next.
    for number, (_, cursor) in enumerate(found):
        rest = [one for one, _ in join_messages(messages, LogPlace(cursor), 10)]
        assert b"".join(one.data for one in rest) == b"".join(one.data for one, _ in found[number + 1 :])
    assert found[-1][1] == place.cursor


def test_a_line_without_a_time_is_as_old_as_the_one_before():
    messages = said(("o", -1, b"no log\n"), ("o", 5, b"a\n"), ("o", -1, b"its end\n"), ("o", 3, b"older\n"))
    found = [one for one, _ in join_messages(messages, LogPlace(None), 10)]
    assert found == [Record(b"no log\n", 0.0, "o"), record(b"a\nits end\n", 5), record(b"older\n", 3)]


def test_what_is_announced_stands_before_its_line():
    note = Record(b"it was restarted\n", None, "c")
    announced = []

    def announce(at):
        announced.append(at - FIRST)
        return note if at == FIRST + 2 else None

    messages = said(("o", 1, b"a\n"), ("o", 2, b"b\n"), ("o", 3, b"c\n"))
    found = list(join_messages(messages, LogPlace(None), 10, announce))
    assert [one for one, _ in found] == [record(b"a\n", 1), note, record(b"b\nc\n", 2)]
    assert [cursor is None for _, cursor in found] == [False, True, False]
    assert announced == [1, 2, 3]


def test_what_does_not_run_is_looked_at_less_and_less_often(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waits = LookWaits()
    assert [waits.next() for _ in range(5)] == [0.1, 0.2, 0.4, 0.4, 0.4]
    now += 29.9
    assert waits.next() == 0.4
    now += 0.1
    assert [waits.next() for _ in range(6)] == [0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
