"""The lines of one replica whose log is files of this machine, and on while they grow."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from ...logs.source.log_file import LogFile, why_unreadable
from ...logs.source.replica_log import ReplicaLog, StreamName
from ...logs.source.replica_reader import ReplicaReader
from ...logs.source.segment import LogSegment
from ...logs.source.stream import Record
from ...specs.errors import SchedulerError
from ..types import LogQuery
from .stream_lines import LineAssembler

# How long to wait for more: short after something came, longer when it has been quiet for 2 s and for 30 s.
_WAITS = ((2.0, 0.02), (30.0, 0.05), (float("inf"), 0.2))


class Outlook(Protocol):
    """What is to be known of the app that writes."""

    @property
    def over(self) -> bool:
        """Whether nothing is written any more."""
        ...

    @property
    def supervised(self) -> bool:
        """Whether the combined file grows."""
        ...


def check_readable(paths: Iterable[Path]) -> None:
    """Check the files of a log that exist.

    Raises:
        SchedulerError: one cannot be read, such as a named pipe.
    """
    for path in paths:
        if fault := why_unreadable(path):
            raise SchedulerError(fault)


class FileLines:
    """The lines of one replica.

    ``close`` from any thread ends the iteration, a blocked read too. ``iterator[50]`` goes to the line of that number,
    counted from 0 among those that qualify, and returns it; the next one follows it.

    Args:
        log: the replica's files; those of one stream alone where that is asked for.
        query: which lines.
        look: tells how the app is doing.
    """

    def __init__(self, log: ReplicaLog, query: LogQuery, look: Callable[[], Outlook]) -> None:
        self._log = log
        self._query = query
        self._look = look
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        stream: StreamName = self._query.stream.value  # type: ignore[assignment]
        self._files: list[LogFile] = []
        self._taken: dict[int, int] = {}
        self._reader = ReplicaReader(self._log, stream, self._register, _notice)
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
        self._last: list[Record] = []
        self._line_number = 0
        self._ended = False
        self._active_at = time.monotonic()

    def _register(self, path: Path) -> tuple[LogFile, int]:
        self._files.append(LogFile(path))
        return self._files[-1], len(self._files)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._lines:
            if self._ended or self._closed.is_set():
                self._release()
                raise StopIteration
            self._fill()
        self._line_number += 1
        return self._lines.popleft()

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError(f"line {number}: lines are counted from 0")
        if number < self._line_number:
            self._release()
            self._begin()
        for line in self:
            if self._line_number == number + 1:
                return line
        raise IndexError(f"line {number}: there are {self._line_number}")

    def start_at_last(self, count: int) -> None:
        """Start at the last lines that each file has now. Call it before anything is read.

        Args:
            count: how many lines.
        """
        for segments in self._reader.open():
            found: list[Record] = []
            missing = count
            for segment in segments:
                self._taken.setdefault(segment.file, segment.end)
                if missing <= 0:
                    break
                data = self._files[segment.file - 1].read(segment.start, segment.end - segment.start)
                if segment.lines > missing:
                    data = data.split(b"\n", segment.lines - missing)[-1]
                found.append(Record(data, segment.time, segment.stream))
                missing -= segment.lines
            self._last += reversed(found)

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()

    def records(self) -> Iterator[Record]:
        """Yield the bytes as they are written, instead of lines; the query's expression and times do not apply."""
        while not self._closed.is_set() and (records := self._read()) is not None:
            yield from records
        self._release()

    def _fill(self) -> None:
        records = self._read()
        if records is None:
            self._take(self._assembler.rest())
            self._ended = True
        for record in records or ():
            self._take(self._assembler.add(record))

    def _read(self) -> list[Record] | None:
        """Read once, and wait if there was nothing to read; return None at the log's end."""
        if self._last:
            records, self._last = self._last, []
            return records
        outlook = self._look()  # before reading: what is over has nothing to add after that
        polled = self._reader.poll()
        if polled.notes:
            path = self._log.combined or self._log.stdout or self._log.stderr
            raise SchedulerError(f"the log was removed: {path}")
        segments = [segment for segment in (*polled.grown, *polled.fresh) if segment.file]
        if segments:
            self._active_at = time.monotonic()
            return [self._record(segment) for segment in segments]
        if (outlook.over or not outlook.supervised) and self._reader.begin_rest():
            return []
        if outlook.over or not self._query.follow or self._is_past_until():
            return None
        quiet = time.monotonic() - self._active_at
        self._closed.wait(next(wait for limit, wait in _WAITS if quiet < limit))
        return []

    def _record(self, segment: LogSegment) -> Record:
        """Read what is new of a segment: one whose last line went on was read up to there."""
        start = max(segment.start, self._taken.get(segment.file, 0))
        self._taken[segment.file] = segment.end
        return Record(self._files[segment.file - 1].read(start, segment.end - start), segment.time, segment.stream)

    def _take(self, lines: list[tuple[float | None, bytes]]) -> None:
        for at, data in lines:
            if self._query.since is not None and at is not None and at < self._query.since:
                continue
            if self._query.until is not None and at is not None and at > self._query.until:
                self._ended = True
                return
            line = data.decode("utf-8", "replace")
            if self._query.pattern is None or self._query.pattern.search(line):
                self._lines.append(line)

    def _is_past_until(self) -> bool:
        # A second of room: a line may be on its way into combined.log.
        return self._query.until is not None and time.time() > self._query.until + 1.0

    def _release(self) -> None:
        self._reader.close()
        for file in self._files:
            file.close()


def _notice(_sentence: str) -> LogSegment:
    """Stand for a sentence among the lines, which is not printed here."""
    return LogSegment(0, 0, 0, 0, None, "n")
