"""The log of one replica, line by line, and on while it grows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from ...logs.source.log_file import LogFile
from ...logs.source.replica_log import ReplicaLog, StreamName
from ...logs.source.replica_reader import ReplicaReader
from ...logs.source.segment import LogSegment
from ...logs.source.stream import Record
from ...specs import JobNotFoundError, SchedulerError
from ..shared.replicas import pick_replica
from ..shared.stream_lines import LineAssembler
from ..types import LogQuery, Stream
from .record import Run

# How long to wait for more: short after something came, longer when it has been quiet for 2 s and for 30 s.
_WAITS = ((2.0, 0.02), (30.0, 0.05), (float("inf"), 0.2))
# The state file is read again after this long: sooner while the reader is new, as the job may be, and short.
_LOOK_SECONDS, _SOON_SECONDS = 0.1, 0.02
_NEW_SECONDS = 2.0


class Outlook(Protocol):
    """What is to be known of the app that writes."""

    over: bool
    """Nothing is written any more."""

    supervised: bool
    """combined.log grows."""


class LocalLogIterator:
    """The lines of one replica.

    ``close`` from any thread ends the iteration, a blocked read too. ``iterator[50]`` goes to the line of that number,
    counted from 0 among those that qualify, and returns it; the next one follows it.

    Args:
        folder: the replica's folder.
        query: which lines.
        look: tells how the app is doing.
    """

    def __init__(self, folder: Path, query: LogQuery, look: Callable[[], Outlook]) -> None:
        self._folder = folder
        self._query = query
        self._look = look
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        names = {stream: self._folder / f"{stream.value}.log" for stream in Stream}
        # The times of lines are beside the combined file alone.
        timed = self._query.since is not None or self._query.until is not None
        combined = names[Stream.COMBINED] if timed or self._query.stream is Stream.COMBINED else None
        log = ReplicaLog("", 0, combined, names[Stream.STDOUT], names[Stream.STDERR])
        stream: StreamName = self._query.stream.value  # type: ignore[assignment]
        self._files: list[LogFile] = []
        self._taken: dict[int, int] = {}
        self._reader = ReplicaReader(log, stream, self._register, _notice)
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
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

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()

    def _fill(self) -> None:
        """Read once; wait, or end, when there was nothing to read."""
        outlook = self._look()  # before reading: what is over has nothing to add after that
        polled = self._reader.poll()
        if polled.notes:
            raise SchedulerError(f"the log was removed: {self._folder / self._query.stream.value}.log")
        segments = [segment for segment in (*polled.grown, *polled.fresh) if segment.file]
        if segments:
            self._active_at = time.monotonic()
            for segment in segments:
                self._take(self._assembler.add(self._record(segment)))
        elif (outlook.over or not outlook.supervised) and self._reader.begin_rest():
            return
        elif outlook.over or not self._query.follow or self._is_past_until():
            self._take(self._assembler.rest())
            self._ended = True
        else:
            quiet = time.monotonic() - self._active_at
            self._closed.wait(next(wait for limit, wait in _WAITS if quiet < limit))

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


def check_log(run: Run, query: LogQuery) -> None:
    """Check that a replica's log can be read.

    Raises:
        ValueError: there is no such role or replica; the message lists the valid ones.
        SchedulerError: the log was removed.
    """
    role_name, k, stream = query.role_name, query.k, query.stream
    if not run.document:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: {run.reason}")
    if run.log_folder is None:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: its processes do not tell where TorchX keeps it")
    roles: dict[str, dict[int, int | None]] = {}
    for entry in run.replicas:
        roles.setdefault(entry["role"], {})[entry["id"]] = entry["pid"]
    started = pick_replica(run.app_id, roles, role_name, k)
    folder = run.replica_folder(role_name, k)
    names = ("combined", "stdout") if stream == Stream.COMBINED else (stream.value,)
    if started and not any(LogFile(folder / f"{name}.log").stat() for name in names):
        raise SchedulerError(f"the log was removed: {folder / names[0]}.log")


def log_outlook(find: Callable[[str], Run | None], app_id: str) -> Callable[[], Outlook]:
    """Return a function that tells how an app that ``find`` finds is doing, at most some time ago.

    It raises `JobNotFoundError` once the app is gone.
    """
    began = time.monotonic()
    looked_at = 0.0
    last: Run | None = None

    def look() -> Outlook:
        nonlocal looked_at, last
        now = time.monotonic()
        if last is None or now - looked_at > (_SOON_SECONDS if now - began < _NEW_SECONDS else _LOOK_SECONDS):
            last = find(app_id)
            looked_at = now
        if last is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return last

    return look
