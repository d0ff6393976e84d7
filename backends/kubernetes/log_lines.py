"""Takes apart the log that a server gives with timestamps: what was printed, and when."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..logs.log_times import LogClock

# Runtimes log a longer line in pieces of this size; older servers put a time in front of each.
_PIECE = 16_384
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d) ")
# Of a line that is longer than this, what is here is given (bytes).
_LONGEST = 1 << 20
UNKNOWN = -1
"""The time of what has none: it is not the container's, but the words of the node that cannot give its log."""


class Message(NamedTuple):
    """What a container printed at once: a line, or a piece of one that is longer than 16 KiB.

    Attributes:
        nanoseconds: when, since the epoch; `UNKNOWN` of what is not the container's.
        data: the bytes, with the end of the line where it has one.
    """

    nanoseconds: int
    data: bytes


class StampedLog:
    """Makes messages of the bytes of a log with timestamps, however they were cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._clock = LogClock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the lines that are whole with the next bytes; of a very long one, the pieces that are there."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Message] = []
        for line in lines:
            if len(line) <= _PIECE:
                messages.append(self._message(line + b"\n"))
            else:
                messages += self._pieces(line + b"\n")
        if len(self._rest) > _LONGEST:
            *pieces, last = _split_pieces(self._rest)
            messages += [self._message(piece) for piece in pieces]
            self._rest = last
        return messages

    def rest(self) -> list[Message]:
        """Return the last line, which has no end."""
        rest, self._rest = self._rest, b""
        return self._pieces(rest) if rest else []

    def _pieces(self, line: bytes) -> list[Message]:
        return [self._message(piece) for piece in _split_pieces(line)]

    def _message(self, line: bytes) -> Message:
        nanoseconds, start = self._clock.read(line, 0)
        return Message(nanoseconds, line[start:]) if start else Message(UNKNOWN, line)


def _split_pieces(line: bytes) -> list[bytes]:
    """Return the pieces of a long line, each with its time in front; of one that has none within, the line."""
    pieces: list[bytes] = []
    at = 0
    while found := _STAMP.match(line, at):
        end = found.end() + _PIECE
        if not _STAMP.match(line, end):
            break
        pieces.append(line[at:end])
        at = end
    return [*pieces, line[at:]]
