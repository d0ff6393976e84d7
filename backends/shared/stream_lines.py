"""Whole lines of a stream, for those who want neither records nor cursors."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...base.backoff import Backoff
from ...logs.source.stream import Cursor, LogStream, Record
from ...specs.errors import BackendUnavailableError
from ..types import LogQuery
from .outage import until_answered

# How often (s) an app is looked at whose replica has ended: at first, and at most.
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.1, 2.0
LATE = 1.0
"""Seconds that a line may be on its way."""
_MAX_LINE_BYTES = 1 << 24


@dataclass
class LineAssembler:
    """Whole lines of the records of both streams, however these were cut.

    A line of more than 16 MiB comes in pieces: a stream without line ends would fill the memory.
    """

    _parts: dict[str, bytearray] = field(default_factory=dict)
    _began: dict[str, float | None] = field(default_factory=dict)

    def add(self, record: Record) -> list[tuple[float | None, bytes]]:
        """Return the lines that end in a record, each with the time of its first byte."""
        lines = []
        start = 0
        while start < len(record.data):
            line = self._parts.setdefault(record.stream, bytearray())
            if not line:
                self._began[record.stream] = record.time
            end = record.data.find(b"\n", start) + 1 or len(record.data)
            line += record.data[start:end]
            if line.endswith(b"\n") or len(line) > _MAX_LINE_BYTES:
                lines.append((self._began[record.stream], bytes(line)))
                line.clear()
            start = end
        return lines

    def rest(self) -> list[tuple[float | None, bytes]]:
        """Return the last lines, which have no end."""
        rest = [(self._began[stream], bytes(line)) for stream, line in self._parts.items() if line]
        self._parts.clear()
        return rest


class StreamLines:
    """The lines of one replica, taken up again where its stream was cut off.

    ``close`` from any thread ends the iteration, a blocked read too.

    Args:
        connect: begins to read after a cursor; waits for more where it is told to.
        is_over: tells whether the app has ended.
        query: which lines.
    """

    def __init__(
        self,
        connect: Callable[[Cursor | None, bool], LogStream],
        is_over: Callable[[], bool],
        query: LogQuery,
    ) -> None:
        self._connect = connect
        self._pattern = query.pattern
        self._until = until = query.until
        # What lies in the past is there already.
        follow = query.follow and (until is None or time.time() < until + LATE)
        self._is_over = is_over if follow else None
        self._follow = self._stream_follows = follow
        self._stream = connect(None, self._follow)
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
        self._ended = False
        self._is_cut = False
        self._closed = threading.Event()
        self._alarm: threading.Timer | None = None
        if follow and until is not None:
            self._alarm = threading.Timer(max(0.0, until + LATE - time.time()), self._end_following)
            self._alarm.daemon = True
            self._alarm.start()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, with its end where it has one.

        Raises:
            SchedulerError: the log cannot be read, or was removed.
        """
        while not self._lines:
            if self._ended or self._closed.is_set():
                self._release()
                raise StopIteration
            self._fill()
        return self._lines.popleft()

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()
        self._release()

    def records(self) -> Iterator[Record]:
        """Yield the bytes as they arrive, instead of lines; the query's expression and times do not apply."""
        while (record := self._read()) is not None:
            yield record
        if not self._closed.is_set():
            self._wait_for_the_app()
        self._release()

    def _fill(self) -> None:
        record = self._read()
        if record is not None:
            self._take(self._assembler.add(record))
        elif not self._closed.is_set():
            self._take(self._assembler.rest())
            self._ended = True
            self._wait_for_the_app()

    def _read(self) -> Record | None:
        """Return the next record; None at the log's end, and after `close`."""
        while not self._closed.is_set():
            record = self._next_record() if self._is_over is None else until_answered(self._next_record, self._closed)
            if record is not None:
                return record
            if not self._stream_follows or self._follow:
                return None
            # A slow reader has yet to read what had come until then.
            self._take_up()
        return None

    def _next_record(self) -> Record | None:
        """Return the next record, of a stream that takes up the one that was cut off; None at the log's end.

        Raises:
            SchedulerError: the log cannot be read; where the stream was cut off, it can be asked for again.
        """
        if self._is_cut:
            self._take_up()
        try:
            return next(self._stream, None)
        except BackendUnavailableError:
            self._is_cut = True
            raise

    def _take_up(self) -> None:
        """Go on with a stream that begins where the last ended."""
        follow = self._follow
        stream = self._connect(self._stream.cursor, follow)
        self._stream.close()
        self._stream, self._stream_follows, self._is_cut = stream, follow, False
        if self._closed.is_set() or follow != self._follow:
            stream.close()

    def _wait_for_the_app(self) -> None:
        """Wait until the other replicas have ended too; what cannot be told is not waited for."""
        backoff = Backoff(_FIRST_LOOK_S, _LONGEST_LOOK_S)
        while self._is_over is not None and not self._is_past_until() and not self._closed.is_set():
            try:
                if self._is_over():
                    return
            except BackendUnavailableError:
                pass
            backoff.wait(self._closed)

    def _take(self, lines: list[tuple[float | None, bytes]]) -> None:
        for at, data in lines:
            if self._until is not None and at is not None and at > self._until:
                self._ended = True
                return
            line = data.decode("utf-8", "replace")
            if self._pattern is None or self._pattern.search(line):
                self._lines.append(line)

    def _is_past_until(self) -> bool:
        return self._until is not None and time.time() > self._until + LATE

    def _end_following(self) -> None:
        """Give what came until now: nothing that comes from now on is wanted."""
        self._follow = False
        self._stream.close()

    def _release(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._stream.close()
