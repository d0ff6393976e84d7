"""Takes apart the log that an engine sends: what was printed, when, and on which stream."""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

from ...specs import SchedulerError
from ..logs.log_times import STAMP, LogClock

_HEADER = struct.Struct(">BxxxL")
# On any other stream the engine says why it cannot go on.
_LETTERS = {0: "o", 1: "o", 2: "e"}
# A longer line is logged in pieces of this size, each with its line's time.
_PIECE = 16_384
# Of a terminal's line that is longer than this, what is here is given (bytes).
_LONGEST = 1 << 20


class Message(NamedTuple):
    """What an engine logged at once: a line, or a piece of one that is longer than 16 KiB.

    Attributes:
        letter: ``o`` stdout, ``e`` stderr.
        nanoseconds: when, since the epoch.
        data: the bytes, with the end of the line where it has one.
    """

    letter: str
    nanoseconds: int
    data: bytes


class MessageParser(Protocol):
    """Makes messages of the bytes of a log with timestamps, however they were cut."""

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are whole with the next bytes."""
        ...

    def rest(self) -> list[Message]:
        """Return what is left at the end of the log."""
        ...


class FramedLog:
    """The log of a container without a terminal: frames that name the stream, one for each message."""

    def __init__(self) -> None:
        self._rest = b""
        self._clock = LogClock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are whole with the next bytes.

        Raises:
            SchedulerError: the engine says that it cannot go on.
        """
        if self._rest:
            data = self._rest + data
        messages = []
        at, size = 0, len(data)
        read = self._clock.read
        unpack = _HEADER.unpack_from
        while at + 8 <= size:
            kind, length = unpack(data, at)
            text = at + 8
            stop = text + length
            if stop > size:
                break
            nanoseconds, start = read(data, text)
            if kind not in _LETTERS:
                raise SchedulerError(f"the engine cannot read the log: {_words(data[text:stop])}")
            messages.append(Message(_LETTERS[kind], nanoseconds, data[start:stop]))
            at = stop
        self._rest = data[at:]
        return messages

    def rest(self) -> list[Message]:
        """Return nothing: a frame is whole or was never logged."""
        return []


class TerminalLog:
    """The log of a container with a terminal: lines, where only a longer line's time tells where its pieces begin."""

    def __init__(self) -> None:
        self._rest = b""
        self._clock = LogClock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the lines that are whole with the next bytes; of a very long one, what is there."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [message for line in lines for message in self._pieces(line + b"\n")]
        if len(self._rest) > _LONGEST:
            # Whole pieces only: the next one has its time in front of it.
            piece = STAMP + _PIECE
            whole = len(self._rest) // piece * piece
            messages += self._pieces(self._rest[:whole])
            self._rest = self._rest[whole:]
        return messages

    def rest(self) -> list[Message]:
        """Return the last line, which has no end."""
        rest, self._rest = self._rest, b""
        return self._pieces(rest) if rest else []

    def _pieces(self, line: bytes) -> list[Message]:
        nanoseconds, start = self._clock.read(line, 0)
        stamp = line[:start]
        pieces = line[start:].split(stamp) if len(line) > _PIECE and stamp else [line[start:]]
        return [Message("o", nanoseconds, piece) for piece in pieces]


def _words(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())
