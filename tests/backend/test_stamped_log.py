"""Logs as servers give them, with a time in front of each line, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.shared.stamped_log import UNKNOWN, Message, StampedLines

STAMP = b"2026-11-21T21:49:46.%09dZ "
FIRST = 1795297786 * 10**9


def messages_of(data: bytes, cuts: list[int]) -> list[Message]:
    log, found, at = StampedLines(), [], 0
    for cut in sorted(cuts):
        found += log.feed(data[at:cut])
        at = max(at, cut)
    return found + log.feed(data[at:]) + log.rest()


@given(
    st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=12),
    st.lists(st.integers(0, 900), max_size=6),
)
def test_lines_come_whole_however_they_were_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(STAMP % number + line + b"\n" for number, line in enumerate(lines))
    expected = [Message("c", FIRST + number, line + b"\n") for number, line in enumerate(lines)]
    assert messages_of(data, cuts) == expected


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385, 32_768, 50_000, 1_500_000])
def test_a_long_line_is_one_though_each_of_its_pieces_has_a_time(size: int) -> None:
    line = bytes(65 + number % 26 for number in range(size))
    pieces = [line[at : at + 16_384] for at in range(0, size, 16_384)]
    data = b"".join(STAMP % number + piece for number, piece in enumerate(pieces)) + b"\n"
    data += STAMP % 999 + b"next\n"
    *found, last = messages_of(data, [20_000, 100_000])
    assert b"".join(message.data for message in found) == line + b"\n"
    assert [message.nanoseconds for message in found] == [FIRST + number for number in range(len(pieces))]
    assert last == Message("c", FIRST + 999, b"next\n")


def test_newer_servers_put_one_time_in_front_of_a_long_line() -> None:
    line = b"x" * 40_000 + b"\n"
    assert b"".join(message.data for message in messages_of(STAMP % 1 + line, [])) == line


def test_a_line_without_an_end() -> None:
    assert messages_of(STAMP % 1 + b"no end", [5]) == [Message("c", FIRST + 1, b"no end")]


def test_a_nodes_own_words_have_no_time() -> None:
    words = b"unable to retrieve container logs for containerd://1234"
    assert messages_of(words, []) == [Message("c", UNKNOWN, words)]


@pytest.mark.parametrize("stamp", [b"2026-11-21T21:49:46Z ", b"2026-11-21T22:49:46.00+01:00 "])
def test_times_in_other_forms(stamp: bytes) -> None:
    assert messages_of(stamp + b"line\n", []) == [Message("c", FIRST, b"line\n")]


def test_a_line_of_one_time_that_does_not_end_is_not_kept_for_ever() -> None:
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
