"""Logs of engines and API servers whose lines have a time in front: ``2026-01-31T12:00:00.123456789Z text``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...logs.source.log_place import LogPlace
from ...logs.source.log_times import LogClock
from ...logs.source.stream import Record, TimeCursor

UNKNOWN = -1
"""The time of a line that has none in front: it is not the container's, but the words of who cannot give its log."""
TOGETHER_NS = 1_000_000
"""Lines of one stream that were printed within this time may be one record."""
# Runtimes log a longer line in pieces of this size; engines and older API servers put a time in front of each.
_PIECE = 16_384
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d) ")
# A line that is longer than this is given in parts (bytes).
_LONGEST = 1 << 20


# How long (s) to wait before something is looked at again that may come yet: at first, at most while it has been waited
# for a while only, and at most. A replica that fails at once and is started anew has its log for no longer than that.
_FIRST_WAIT, _EARLY_WAIT, _LAST_WAIT = 0.1, 0.4, 3.0
_A_WHILE = 30.0


class Message(NamedTuple):
    """What a container printed at once: a line, or a piece of one that is longer than 16 KiB.

    Attributes:
        stream: ``o`` stdout, ``e`` stderr, ``c`` either.
        nanoseconds: when, since the epoch; `UNKNOWN` where there is no time.
        data: the bytes, with the end of the line where it has one.
    """

    stream: str
    nanoseconds: int
    data: bytes


class StampedLines:
    """Makes messages of the bytes of a log whose lines begin with a time, however they were cut.

    How a line is divided depends on its bytes alone: the messages are counted to go on after a cut.

    Args:
        stream: the stream that all of it is of.
    """

    def __init__(self, stream: str = "c") -> None:
        self._stream = stream
        self._rest = b""
        self._clock = LogClock()
        # The time of a line whose first part was given.
        self._within: int | None = None

    def feed(self, data: bytes) -> list[Message]:
        """Return the lines that are whole with the next bytes; of a very long one, the parts that are there."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Message] = []
        for line in lines:
            if len(line) <= _PIECE and self._within is None:
                messages.append(self._message(line + b"\n"))
            else:
                messages += self._take_line(line + b"\n")
        if len(self._rest) > _LONGEST:
            pieces, self._rest = self._split(self._rest)
            messages += pieces
        return messages

    def rest(self) -> list[Message]:
        """Return the last line, which has no end."""
        rest, self._rest = self._rest, b""
        return self._take_line(rest) if rest else []

    def _take_line(self, line: bytes) -> list[Message]:
        messages, rest = self._split(line)
        within, self._within = self._within, None
        messages.append(self._message(rest) if within is None else Message(self._stream, within, rest))
        return messages

    def _split(self, line: bytes) -> tuple[list[Message], bytes]:
        """Return the parts of a long line but the last one, and that."""
        messages: list[Message] = []
        at = 0
        while self._within is None and (stamp := _STAMP.match(line, at)):
            end = stamp.end() + _PIECE
            if not _STAMP.match(line, end):
                break
            messages.append(self._message(line[at:end]))
            at = end
        while len(line) - at > _LONGEST:
            part = line[at : at + _LONGEST]
            # Newer API servers put one time in front of a line, however long.
            message = self._message(part) if self._within is None else Message(self._stream, self._within, part)
            messages.append(message)
            self._within = message.nanoseconds
            at += _LONGEST
        return messages, line[at:]

    def _message(self, line: bytes) -> Message:
        nanoseconds, start = self._clock.read(line, 0)
        return Message(self._stream, nanoseconds, line[start:]) if start else Message(self._stream, UNKNOWN, line)


def join_messages(
    messages: Iterable[Message],
    place: LogPlace,
    together: int,
    announce: Callable[[int], Record | None] | None = None,
) -> Iterator[tuple[Record, TimeCursor | None]]:
    """Make records of the messages that are new: few, as each costs more than the lines in it.

    Args:
        messages: what came.
        place: which messages were seen before a cut.
        together: messages of one stream that were printed within so many nanoseconds are one record.
        announce: called with the time of each message before it is counted; gives a record of ours to put before it.

    Yields:
        each record with the place after it; None for the place of what `announce` gave.
    """
    is_new = place.is_new
    pieces: list[bytes] = []
    began, stream = 0, ""
    for message in messages:
        at = message.nanoseconds
        if at == UNKNOWN:
            # As old as what came before it.
            at = max(place.latest, 0)
        announced = announce(at) if announce is not None else None
        if pieces and (message.stream != stream or announced is not None or not 0 <= at - began < together):
            # Before the next message is counted: the cursor is that after these.
            yield Record(b"".join(pieces), began / 1e9, stream), place.cursor
            pieces = []
        if announced is not None:
            yield announced, None
        if not is_new(at):
            continue
        if not pieces:
            began, stream = at, message.stream
        pieces.append(message.data)
    if pieces:
        yield Record(b"".join(pieces), began / 1e9, stream), place.cursor


class LookWaits:
    """How long to wait until a container that does not run is looked at again: longer and longer."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.seconds = _FIRST_WAIT

    def next(self) -> float:
        """Return how many seconds to wait now."""
        seconds = self.seconds
        most = _EARLY_WAIT if time.monotonic() - self._began < _A_WHILE else _LAST_WAIT
        self.seconds = min(2 * seconds, most)
        return seconds
