"""Logs that are no files on this machine: streams that can be closed, and resumed at a cursor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeAlias

LIVE_AFTER_S = 0.3
"""After this many seconds without a line, the next one is new and not one that existed before."""


class Record(NamedTuple):
    """Bytes of a log as they arrived: whole lines or any part of them.

    Attributes:
        data: the bytes.
        time: when they were printed (seconds since the epoch), None if not known.
        stream: ``o`` stdout, ``e`` stderr, ``c`` either.
    """

    data: bytes
    time: float | None
    stream: str


class LineCursor(NamedTuple):
    """A place in a log that can only be read from its start.

    Attributes:
        lines: whole lines before it.
        rest: bytes after these that are before it too, of a line that was not whole.
    """

    lines: int = 0
    rest: int = 0


class TimeCursor(NamedTuple):
    """A place in a log that can be read from a time on.

    Attributes:
        nanoseconds: the time to read from, since the epoch.
        seen: how many lines of that time or later were read already.
    """

    nanoseconds: int
    seen: int


class Part(NamedTuple):
    """A place in one of the parts of a log.

    Attributes:
        name: which part.
        place: where in it.
        latest: the latest time of a line before the place, in nanoseconds since the epoch.
    """

    name: str
    place: TimeCursor
    latest: int


class PartsCursor(NamedTuple):
    """A place in a log of several parts, such as a pod's containers.

    Attributes:
        parts: those that were begun, in any order.
    """

    parts: tuple[Part, ...]


Cursor: TypeAlias = LineCursor | TimeCursor | PartsCursor


class LogStream(Protocol):
    """The records of one replica, until the app is final or `close` is called.

    It raises when the connection breaks. A new stream with its `cursor` continues after the last record.
    """

    def __iter__(self) -> Iterator[Record]: ...

    def __next__(self) -> Record: ...

    @property
    def cursor(self) -> Cursor | None:
        """The place after the last record."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether a stream that has ended was complete, even if the app still runs."""
        ...

    def close(self) -> None:
        """End the iteration at once, a blocked read too; may be called from any thread."""
        ...


class LineStream:
    """A stream from an iterator of lines that always begins at the log's start.

    The time of a line is when it arrived; for lines that existed at the start it is not known.

    Args:
        open_lines: returns the iterator; called in the thread that reads.
        stream: the stream's letter.
        cursor: where to resume.
    """

    def __init__(
        self, open_lines: Callable[[], Iterable[str]], stream: str = "c", cursor: LineCursor | None = None
    ) -> None:
        self._open_lines = open_lines
        self._stream = stream
        self.is_complete = False
        self._start = cursor or LineCursor()
        self._cursor = self._start
        self._live = self._start.lines > 0
        self._lines: Iterable[str] | None = None
        self._iterator: Iterator[str] = iter(())
        self._closed = False

    @property
    def cursor(self) -> LineCursor:
        """The place after the last record."""
        return self._cursor

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        line = self._next()
        if self._cursor == self._start and self._start.rest:
            # The unfinished line may not have grown.
            line = line[self._start.rest :] or self._next()
        lines, rest = self._cursor
        self._cursor = LineCursor(lines + 1) if line.endswith(b"\n") else LineCursor(lines, rest + len(line))
        return Record(line, time.time() if self._live else None, self._stream)

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        close = getattr(self._lines, "close", None)
        if close is not None:
            # A generator cannot be closed while it runs: it ends with its next line.
            with suppress(ValueError):
                close()

    def _next(self) -> bytes:
        if self._lines is None and not self._closed:
            self._lines = self._open_lines()
            self._iterator = iter(self._lines)
            for _ in range(self._start.lines):
                self._read()
        began = time.monotonic()
        line = self._read()
        self._live = self._live or time.monotonic() - began > LIVE_AFTER_S
        return line.encode("utf-8", "replace")

    def _read(self) -> str:
        if self._closed:
            raise StopIteration
        line = next(self._iterator)
        if self._closed:
            raise StopIteration
        return line
