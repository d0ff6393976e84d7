"""Takes apart the log that an engine sends: what was printed, when, and on which stream."""

from __future__ import annotations

import calendar
import struct
import time
from datetime import datetime, timezone
from typing import NamedTuple, Protocol

from ...specs import SchedulerError

_HEADER = struct.Struct(">BxxxL")
# On any other stream the engine says why it cannot go on.
_LETTERS = {0: "o", 1: "o", 2: "e"}
# ``2026-01-31T12:00:00.123456789Z ``
_STAMP = 31
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
        self._clock = _Clock()

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
        self._clock = _Clock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the lines that are whole with the next bytes; of a very long one, what is there."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [message for line in lines for message in self._pieces(line + b"\n")]
        if len(self._rest) > _LONGEST:
            # Whole pieces only: the next one has its time in front of it.
            piece = _STAMP + _PIECE
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


class _Clock:
    """Reads the times in front of messages; nearly all are of the same second as the one before."""

    def __init__(self) -> None:
        self._second = b"none yet"
        self._nanoseconds = 0

    def read(self, data: bytes, at: int) -> tuple[int, int]:
        """Return a message's time, in nanoseconds since the epoch, and where its text begins."""
        if data.startswith(self._second, at) and data.startswith(b"Z ", at + 29):
            return self._nanoseconds + int(data[at + 20 : at + 29]), at + _STAMP
        return self._read_anew(data, at)

    def _read_anew(self, data: bytes, at: int) -> tuple[int, int]:
        if not data.startswith(b"Z ", at + 29):
            return self._read_other(data, at)
        second = data[at : at + 19]
        if second != self._second:
            try:
                parsed = time.strptime(second.decode("ascii"), "%Y-%m-%dT%H:%M:%S")
            except ValueError:
                return self._nanoseconds, at
            self._second, self._nanoseconds = second, calendar.timegm(parsed) * 10**9
        return self._nanoseconds + int(data[at + 20 : at + 29]), at + _STAMP

    def _read_other(self, data: bytes, at: int) -> tuple[int, int]:
        """Read a time in another form: with the engine's time zone, or with fewer digits."""
        end = data.find(b" ", at, at + 40)
        try:
            return nanoseconds_of(data[at:end].decode("ascii")), end + 1
        except ValueError:
            return self._nanoseconds, at


def nanoseconds_of(text: str) -> int:
    """Return a time as an engine writes it, such as ``2026-01-31T12:00:00.12+01:00``, in nanoseconds since the epoch.

    Raises:
        ValueError: it is no time.
    """
    whole, _, rest = text.removesuffix("Z").partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if rest else ""
    zone = rest[len(digits) :] or "+00:00"
    if not rest and len(whole) > 19:
        whole, zone = whole[:19], whole[19:]
    at = datetime.fromisoformat(f"{whole}{zone}").astimezone(timezone.utc)
    return calendar.timegm(at.utctimetuple()) * 10**9 + int(digits.ljust(9, "0")[:9] or 0)


def _words(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())
