"""The log of one replica as bytes that arrive, from files of this machine or from a stream; and its lines.

`open_records` gives what ``torchx-tui log`` prints; `LogLines` is `Scheduler.log_iter` over them.
"""

from __future__ import annotations

import platform
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ..base.backoff import Backoff
from ..base.files import path_exists
from ..logs.source.log_file import LogFile, why_unreadable
from ..logs.source.replica_log import ReplicaLog, StreamName
from ..logs.source.replica_reader import ReplicaReader
from ..logs.source.segment import LogSegment
from ..logs.source.stream import Cursor, LineCursor, LineStream, LogStream, Record
from ..specs.errors import BackendUnavailableError, SchedulerError, UnknownReplicaError
from .abilities import KeepsLogFiles, StreamsLogs
from .shared.outage import until_answered
from .types import DescribeAppResponse, LogQuery, Stream

# Intervals (s) between two reads of files: short after something came, longer after 2 s and after 30 s of silence.
_POLL_INTERVALS = ((2.0, 0.02), (30.0, 0.05), (float("inf"), 0.2))
# Interval (s) for asking whether an app has ended.
_ASK_INTERVAL = 0.05
# The same after the stream of a replica has ended.
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
# Seconds for a line to arrive after it was printed.
_LATENCY_S = 1.0
# A longer line (bytes) comes in pieces: a stream without line feeds would fill the memory.
_MAX_LINE = 1 << 24
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_LETTERS = {Stream.STDOUT: "o", Stream.STDERR: "e", Stream.COMBINED: "c"}


class HasLogs(Protocol):
    """What is asked of the scheduler of a job whose log is read, see `Scheduler`."""

    def describe(self, app_id: str) -> DescribeAppResponse | None: ...
    def has_ended(self, app_id: str) -> bool: ...
    def log_iter(self, app_id: str, role_name: str, k: int = ..., *args: Any, **kwargs: Any) -> Iterable[str]: ...


def open_records(scheduler: HasLogs, query: LogQuery, last: int | None = None) -> LogRecords:
    """Read the log of one replica.

    Args:
        scheduler: the scheduler of its job.
        query: which log, from and until when, and whether to follow it; its pattern is not applied.
        last: begin with about so many of the existing lines, if the log is a file; None for all.

    Raises:
        JobNotFoundError, UnknownReplicaError: there is no such job, role, replica or stream.
        SchedulerError: the log cannot be read; the message says why.
    """

    def has_ended() -> bool:
        return scheduler.has_ended(query.app_id)

    if isinstance(scheduler, KeepsLogFiles):
        files = scheduler.log_files(query.app_id, query.role_name, query.k)
        if query.stream is not Stream.COMBINED and query.stream not in files:
            raise UnknownReplicaError(
                f"stdout and stderr of {query.app_id} go to one file: ask for the stream combined"
            )
        if not any(map(path_exists, files.values())):
            _refuse_missing_log(scheduler, query.app_id, next(iter(files.values())))
        if query.stream is not Stream.COMBINED and query.since is query.until is None:
            # The combined file has the times of lines, but gets an unfinished line later.
            files = {query.stream: files[query.stream]}
        return FileRecords(replica_files(query.role_name, query.k, files), query, has_ended, last)

    def connect(cursor: Cursor | None, follow: bool) -> LogStream:
        names = query.app_id, query.role_name, query.k, query.stream
        return open_stream(scheduler, *names, cursor, since=query.since, follow=follow, notices=False)

    return StreamRecords(connect, query, has_ended)


def _refuse_missing_log(scheduler: HasLogs, app_id: str, path: Path) -> None:
    described = scheduler.describe(app_id)
    if described is not None and described.has_ended and described.started_at is not None:
        other = described.host if described.host != platform.node() else ""
        raise SchedulerError(
            f"there is no log {path}: it was removed or never written{f', or {other} keeps it' if other else ''}"
        )


def replica_files(role_name: str, k: int, files: dict[Stream, Path]) -> ReplicaLog:
    """Return a replica's log that is in files."""
    return ReplicaLog(role_name, k, files.get(Stream.COMBINED), files.get(Stream.STDOUT), files.get(Stream.STDERR))


def open_stream(
    scheduler: HasLogs, app_id: str, role_name: str, k: int, stream: Stream, cursor: Cursor | None, **options: Any
) -> LogStream:
    """Return the stream of a log, see `StreamsLogs.log_stream`.

    Other schedulers have one over their `Scheduler.log_iter`: it begins anew, and skips what the cursor counts.
    """
    if isinstance(scheduler, StreamsLogs):
        return scheduler.log_stream(app_id, role_name, k, stream, cursor, **options)
    follow = options.get("follow", True)
    # Without a stream the scheduler chooses one: it may have no combined output.
    chosen = None if stream is Stream.COMBINED else stream
    return LineStream(
        lambda: scheduler.log_iter(app_id, role_name, k, should_tail=follow, streams=chosen),
        _LETTERS[stream],
        cursor if isinstance(cursor, LineCursor) else None,
    )


class FileRecords:
    """The records of a replica whose log is in files.

    Args:
        log: the files.
        query: which stream, until when, and whether to follow.
        has_ended: whether the job writes no more.
        last: begin with about so many of the existing lines.
    """

    def __init__(
        self, log: ReplicaLog, query: LogQuery, has_ended: Callable[[], bool], last: int | None = None
    ) -> None:
        self._log, self._query, self._has_ended = log, query, has_ended
        self._closed = threading.Event()
        self._files: list[LogFile] = []
        # The end in each file of what was read.
        self._ends: dict[int, int] = {}
        stream: StreamName = query.stream.value  # type: ignore[assignment]
        self._reader = ReplicaReader(log, stream, self._register, lambda _: LogSegment(0, 0, 0, 0, None, "n"))
        self._asked_at, self._ended = 0.0, False
        for path in (log.combined, log.stdout, log.stderr):
            if path is not None and (fault := why_unreadable(path)):
                raise SchedulerError(fault)
        self._records = self._read([] if last is None else self._open_last(last))

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        record = next(self._records, None)
        if record is None:
            # Not by the generator: the garbage collector may end it while a thread holds the lock of open files.
            self._reader.close()
            for file in self._files:
                file.close()
            raise StopIteration
        return record

    def close(self) -> None:
        """End the iteration; may be called again."""
        self._closed.set()

    def _register(self, path: Path) -> tuple[LogFile, int]:
        self._files.append(LogFile(path))
        return self._files[-1], len(self._files)

    def _open_last(self, count: int) -> list[Record]:
        older = self._reader.open()
        if not self._query.follow:
            older += self._reader.open_rest()
        # After the combined file, the rest of the streams' own files.
        newer = older[1:] if self._files and self._files[0].path == self._log.combined else []
        rest = [record for segments in newer for record in self._last_of(segments, count)]
        missing = count - sum(record.data.count(b"\n") for record in rest)
        first = [record for segments in older[: len(older) - len(newer)] for record in self._last_of(segments, missing)]
        return first + rest

    def _last_of(self, segments: Iterator[LogSegment], count: int) -> list[Record]:
        """Read the last lines of a file, whose segments come the latest first."""
        found: list[Record] = []
        for segment in segments:
            self._ends.setdefault(segment.file, segment.end)
            if count <= 0:
                break
            data = self._files[segment.file - 1].read(segment.start, segment.end - segment.start)
            if segment.lines > count:
                data = data.split(b"\n", segment.lines - count)[-1]
            found.append(Record(data, segment.time, segment.stream))
            count -= segment.lines
        return found[::-1]

    def _read(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield records, then what is added to the files, up to the log's end or `close`."""
        active_at = time.monotonic()
        while not self._closed.is_set():
            for record in records:
                if self._closed.is_set():
                    return
                yield record
            # Asked before the files are read: a job that has ended then adds nothing.
            is_over = not self._query.follow or self._ask_whether_ended()
            polled = self._reader.poll()
            if polled.notes:
                path = self._log.combined or self._log.stdout or self._log.stderr
                raise SchedulerError(f"the log was removed: {path}")
            records = [self._record(segment) for segment in (*polled.grown, *polled.fresh) if segment.file]
            if records:
                active_at = time.monotonic()
            # The combined file lacks lines once its supervisor has died.
            elif is_over or _is_past(self._query.until):
                if not is_over or not self._reader.begin_rest():
                    return
            else:
                quiet = time.monotonic() - active_at
                self._closed.wait(next(interval for limit, interval in _POLL_INTERVALS if quiet < limit))

    def _ask_whether_ended(self) -> bool:
        now = time.monotonic()
        if not self._ended and now - self._asked_at >= _ASK_INTERVAL:
            self._asked_at = now
            with suppress(BackendUnavailableError):
                self._ended = self._has_ended()
        return self._ended

    def _record(self, segment: LogSegment) -> Record:
        """Read what is new of a segment, whose last line may have grown."""
        start = max(segment.start, self._ends.get(segment.file, 0))
        self._ends[segment.file] = segment.end
        return Record(self._files[segment.file - 1].read(start, segment.end - start), segment.time, segment.stream)


class StreamRecords:
    """The records of a replica whose log is a stream, connected again after it broke off.

    Args:
        connect: connects after a cursor, to a stream that waits for more if it is told to.
        query: until when, and whether to follow.
        has_ended: whether the job has ended.
    """

    def __init__(
        self, connect: Callable[[Cursor | None, bool], LogStream], query: LogQuery, has_ended: Callable[[], bool]
    ) -> None:
        self._connect, self._until, self._has_ended = connect, query.until, has_ended
        # The past is there already.
        self._follow = self._is_followed = query.follow and not _is_past(query.until)
        self._stream = connect(None, self._follow)
        self._broken = False
        self._closed = threading.Event()
        self._timer: threading.Timer | None = None
        if self._follow and query.until is not None:
            self._timer = threading.Timer(max(0.0, query.until + _LATENCY_S - time.time()), self._stop_following)
            self._timer.daemon = True
            self._timer.start()

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while not self._closed.is_set():
            record = until_answered(self._next, self._closed) if self._is_followed else self._next()
            if record is not None:
                return record
            if self._follow == self._is_followed:
                self._wait_for_end()
                break
            # What had arrived when the time was over is still to be read.
            self._reconnect()
        self.close()
        raise StopIteration

    def close(self) -> None:
        """End the iteration; may be called again."""
        self._closed.set()
        if self._timer is not None:
            self._timer.cancel()
        self._stream.close()

    def _next(self) -> Record | None:
        if self._broken:
            self._reconnect()
        try:
            return next(self._stream, None)
        except BackendUnavailableError:
            self._broken = True
            raise

    def _reconnect(self) -> None:
        follow = self._follow
        stream = self._connect(self._stream.cursor, follow)
        self._stream.close()
        self._stream, self._is_followed, self._broken = stream, follow, False
        if self._closed.is_set() or follow != self._follow:
            stream.close()

    def _wait_for_end(self) -> None:
        """Wait until the other replicas have ended too; an outage is waited out."""
        backoff = Backoff(_FIRST_WAIT, _LONGEST_WAIT)
        while self._follow and not self._closed.is_set():
            try:
                if self._has_ended():
                    return
            except BackendUnavailableError:
                pass
            backoff.wait(self._closed)

    def _stop_following(self) -> None:
        self._follow = False
        self._stream.close()


LogRecords: TypeAlias = FileRecords | StreamRecords
"""The bytes of one replica's log as they arrive.

`close` from any thread ends a blocked read. The iteration raises SchedulerError where the log cannot be read, or was
removed.
"""


def _is_past(until: float | None) -> bool:
    return until is not None and time.time() > until + _LATENCY_S


@dataclass
class LineAssembler:
    """Joins the bytes of each stream to lines."""

    _parts: dict[str, bytearray] = field(default_factory=dict)
    _times: dict[str, float | None] = field(default_factory=dict)

    def add(self, record: Record) -> Iterator[tuple[float | None, bytes]]:
        """Yield the lines that end in a record, each with the time of its first byte."""
        line = self._parts.setdefault(record.stream, bytearray())
        for piece in _LINE.findall(record.data):
            if not line:
                self._times[record.stream] = record.time
            line += piece
            if line.endswith(b"\n") or len(line) > _MAX_LINE:
                yield self._times[record.stream], bytes(line)
                line.clear()

    def rest(self) -> Iterator[tuple[float | None, bytes]]:
        """Yield the last lines, which have no line feed."""
        for stream, line in self._parts.items():
            if line:
                yield self._times[stream], bytes(line)
        self._parts.clear()


class LogLines:
    """The lines of a log in which a pattern is found, from a time on until another.

    ``lines[50]`` is the line of that number, counted from 0 among these; the next one follows it. `close` from any
    thread ends a blocked read.

    Args:
        open_records: opens the log; called again to go back.
        query: the pattern and the times.
    """

    def __init__(self, open_records: Callable[[], LogRecords], query: LogQuery) -> None:
        self._open_records, self._query = open_records, query
        self._records = open_records()
        self._lines = self._matching()
        self._number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._number += 1
        return line

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError(f"line {number}: lines are counted from 0")
        if number < self._number:
            self.close()
            next(self._records, None)  # closed files are released by their reader
            self._records, self._number = self._open_records(), 0
            self._lines = self._matching()
        for line in self:
            if self._number == number + 1:
                return line
        raise IndexError(f"line {number}: there are {self._number}")

    def close(self) -> None:
        """End the iteration; may be called again."""
        self._records.close()

    def _matching(self) -> Iterator[str]:
        query, assembler = self._query, LineAssembler()
        records = self._records
        for at, data in _all_lines(records, assembler):
            if at is not None and query.since is not None and at < query.since:
                continue
            if at is not None and query.until is not None and at > query.until:
                records.close()
                return
            line = data.decode("utf-8", "replace")
            if query.pattern is None or query.pattern.search(line):
                yield line


def _all_lines(records: LogRecords, assembler: LineAssembler) -> Iterator[tuple[float | None, bytes]]:
    for record in records:
        yield from assembler.add(record)
    yield from assembler.rest()
