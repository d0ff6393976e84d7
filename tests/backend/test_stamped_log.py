"""Logs as servers give them, with a time in front of each line, cut anywhere."""

import time
from unittest.mock import Mock, call

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
def test_lines_come_whole_however_cut(lines, cuts):
    data = b"".join(STAMP % number + line + b"\n" for number, line in enumerate(lines))
    expected = [Message("c", FIRST + number, line + b"\n") for number, line in enumerate(lines)]
    assert messages_of(data, cuts) == expected


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385, 32_768, 50_000, 1_500_000])
def test_a_long_line_with_a_time_in_each_piece(size):
    line = bytes(65 + number % 26 for number in range(size))
    pieces = [line[at : at + 16_384] for at in range(0, size, 16_384)]
    data = b"".join(STAMP % number + piece for number, piece in enumerate(pieces)) + b"\n"
    data += STAMP % 999 + b"next\n"
    *found, last = messages_of(data, [20_000, 100_000])
    assert b"".join(message.data for message in found) == line + b"\n"
    assert [message.nanoseconds for message in found] == [FIRST + number for number in range(len(pieces))]
    assert last == Message("c", FIRST + 999, b"next\n")


WORDS = b"unable to retrieve container logs for containerd://1234"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (STAMP % 1 + b"no end", [Message("c", FIRST + 1, b"no end")]),
        (WORDS, [Message("c", UNKNOWN, WORDS)]),
        (b"2026-11-21T21:49:46Z line\n", [Message("c", FIRST, b"line\n")]),
        (b"2026-11-21T22:49:46.00+01:00 line\n", [Message("c", FIRST, b"line\n")]),
    ],
    ids=["no end", "message of a node", "whole seconds", "time zone"],
)
def test_lines_of_other_forms(data, expected):
    assert messages_of(data, [5]) == expected


def test_an_endless_line_is_divided():
    """Newer servers send one time before a long line. Cuts do not matter: messages are counted to resume a log."""
    size = 5_000_000
    log, found, most = StampedLines(), [], 0
    for at in range(0, size, 100_000):
        found += log.feed((STAMP % 1 if at == 0 else b"") + b"x" * 100_000)
        most = max(most, at - sum(len(message.data) for message in found))
    found += log.feed(b"\n" + STAMP % 2 + b"next\n")
    assert most <= 1_200_000
    assert b"".join(message.data for message in found) == b"x" * size + b"\nnext\n"
    assert [message.nanoseconds - FIRST for message in found] == [1] * (len(found) - 1) + [2]
    assert found == messages_of(STAMP % 1 + b"x" * size + b"\n" + STAMP % 2 + b"next\n", [])


def record(text, nanoseconds, stream="o"):
    return Record(text, (FIRST + nanoseconds) / 1e9, stream)


def messages_at(*printed):
    return [Message(stream, UNKNOWN if at < 0 else FIRST + at, data) for stream, at, data in printed]


def test_messages_close_in_time_are_one_record():
    messages = messages_at(("o", 0, b"a\n"), ("o", 9, b"b\n"), ("e", 9, b"c\n"), ("o", 9, b"d\n"), ("o", 19, b"e\n"))
    place = LogPlace(None)
    records, cursors = zip(*join_messages(messages, place, 10), strict=True)
    assert records == (record(b"a\nb\n", 0), record(b"c\n", 9, "e"), record(b"d\n", 9), record(b"e\n", 19))
    # A log that is resumed at the cursor of a record begins with the next one.
    for number, cursor in enumerate(cursors, 1):
        rest = [one for one, _ in join_messages(messages, LogPlace(cursor), 10)]
        assert b"".join(one.data for one in rest) == b"".join(one.data for one in records[number:])
    assert cursors[-1] == place.cursor


def test_a_line_without_a_time_has_the_one_before():
    messages = messages_at(("o", -1, b"no log\n"), ("o", 5, b"a\n"), ("o", -1, b"its end\n"), ("o", 3, b"older\n"))
    found = [one for one, _ in join_messages(messages, LogPlace(None), 10)]
    assert found == [Record(b"no log\n", 0.0, "o"), record(b"a\nits end\n", 5), record(b"older\n", 3)]


def test_a_notice_comes_before_its_line():
    note = Record(b"it was restarted\n", None, "c")
    announce = Mock(side_effect=lambda at: note if at == FIRST + 2 else None)
    messages = messages_at(("o", 1, b"a\n"), ("o", 2, b"b\n"), ("o", 3, b"c\n"))
    records, cursors = zip(*join_messages(messages, LogPlace(None), 10, announce), strict=True)
    assert records == (record(b"a\n", 1), note, record(b"b\nc\n", 2))
    assert [cursor is None for cursor in cursors] == [False, True, False]
    assert announce.mock_calls == [call(FIRST + at) for at in (1, 2, 3)]


def test_a_quiet_log_is_read_less_often(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waits = LookWaits()
    assert [waits.next() for _ in range(5)] == [0.1, 0.2, 0.4, 0.4, 0.4]
    now += 29.9
    assert waits.next() == 0.4
    now += 0.1
    assert [waits.next() for _ in range(6)] == [0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
