"""Reads the spool of one replica as its log, while the newest segment grows and the oldest ones are dropped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..source.chunks import ChunkIndex
from ..source.file_source import FileSource
from ..source.log_file import GrowingFile, Readable
from ..source.replica_log import LETTERS, PollResult, ReplicaLog, StreamName
from ..source.segment import LogSegment
from .feed import Origin
from .replica_spool import ReplicaSpool
from .spool_file import SpoolSegment
from .spools import LogSpools, folder_name


class SpooledLog:
    """One replica's log that is streamed from its scheduler; nothing is read before it is first used.

    Args:
        spools: the spools of this program.
        job: the job's handle.
        role: the role's name.
        replica: the replica's number in its role.
        origin: returns what opens a stream of the log.
        parted: whether stdout and stderr are streams of their own, not as letters in one stream.
        streams: whether stdout and stderr can be told apart at all.
    """

    def __init__(
        self,
        spools: LogSpools,
        job: str,
        role: str,
        replica: int,
        origin: Callable[[StreamName], Origin],
        *,
        parted: bool = False,
        streams: bool = False,
    ) -> None:
        self._spools = spools
        self._job = job
        self._role = role
        self._replica = replica
        self._origin = origin
        self._parted = parted and streams
        self.streams = streams

    def acquire(self, stream: StreamName) -> ReplicaSpool:
        """Begin to read, or share a stream that is read; `release` must be called once for each call."""
        label = f"{self._role}/{self._replica}"
        chosen = self._stream(stream)
        return self._spools.acquire(self._job, self._folder(stream), label, lambda: self._origin(chosen))

    def release(self, stream: StreamName) -> None:
        """Stop reading."""
        self._spools.release(self._job, self._folder(stream))

    def reader(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], LogSegment],
    ) -> SpoolReader:
        """Return a reader of the log; see `RemoteLog`."""
        return SpoolReader(self, log, stream, register, say)

    def newest(self) -> GrowingFile | None:
        """Return the last part of what was streamed; see `RemoteLog`."""
        spool = self._spools.find(self._job, self._folder("combined"))
        segments = [] if spool is None else spool.segments()
        return segments[-1].data if segments else None

    def _stream(self, stream: StreamName) -> StreamName:
        return stream if self._parted else "combined"

    def _folder(self, stream: StreamName) -> str:
        chosen = self._stream(stream)
        folder = f"{folder_name(self._role)}-{self._replica}"
        return folder if chosen == "combined" else f"{folder}.{chosen}"


class SpoolReader:
    """Reads one replica's log from its spool; see `ReplicaReader`.

    Args:
        spooled_log: the log in the spool.
        log: the replica's log.
        stream: which stream is wanted.
        register: takes a file and returns its number.
        say: adds a notice and returns its segment.
    """

    def __init__(
        self,
        spooled_log: SpooledLog,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], LogSegment],
    ) -> None:
        self.log = log
        self._spooled_log = spooled_log
        self._stream: StreamName = stream
        # Where streams cannot be told apart, there is one for all.
        self._letters = LETTERS[stream] if spooled_log.streams else "oec"
        self._register = register
        self._say = say
        self._spool: ReplicaSpool | None = None
        self._closed = False
        self._numbers: dict[int, int] = {}
        self._first = 0
        self._next = 0
        self._source: FileSource | None = None
        self._segment: SpoolSegment | None = None
        self._notices_read = 0
        self._trouble = ""

    def connect(self) -> None:
        """Begin to read the stream, so that existing lines can arrive before `open`."""
        if self._spool is None and not self._closed:
            self._spool = self._spooled_log.acquire(self._stream)
            self._notices_read = len(self._spool.notices)
            # A later reader gets the notice of trouble that lasts.
            self._trouble = self._spool.trouble

    @property
    def caught_up(self) -> bool:
        """Whether the lines that existed at the beginning have probably arrived."""
        return self._spool is None or self._spool.caught_up

    def open(self) -> list[Iterator[LogSegment]]:
        """Start at the end; return the segments before it, the latest first."""
        self.connect()
        if self._spool is None:
            return []
        segments = self._spool.segments()
        self._first = self._next = segments[0].number if segments else self._spool.first
        older: list[tuple[SpoolSegment, Iterator[LogSegment]]] = []
        for segment in segments:
            source = self._begin(segment)
            older.append((segment, source.open()))
        return [self._older(older[::-1])]

    def poll(self) -> PollResult:
        """Read what was added since."""
        spool = self._spool
        if spool is None:
            return PollResult([], [], False)
        dropped, skipped = self._find_dropped(spool)
        fresh: list[LogSegment] = []
        grown: list[LogSegment] = []
        more = False
        while (source := self._current(spool)) is not None and self._segment is not None:
            # Checked before the poll: a finished segment does not grow after that.
            finished = self._segment.finished
            segments, grown_segment, more = source.poll()
            fresh += segments
            grown += [] if grown_segment is None else [grown_segment]
            if not finished or source.position < self._segment.data.size:
                break
            self._leave(self._segment)
            if segments:
                more = True
                break
        return PollResult(fresh, grown, more, tuple(dropped), skipped, spool.why_dropped, self._new_notices(spool))

    @property
    def fully_read(self) -> bool:
        """Whether the stream has ended and all of it is read."""
        spool = self._spool
        if spool is None:
            return True
        if not spool.ended:
            return False
        segment = self._segment
        read = segment is None or (self._source is not None and self._source.position >= segment.data.size)
        return read and spool.at_or_after(self._next + (segment is not None)) is None

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        if self._spool is not None:
            self._spool = None
            self._spooled_log.release(self._stream)

    def _older(self, older: list[tuple[SpoolSegment, Iterator[LogSegment]]]) -> Iterator[LogSegment]:
        for segment, lines in older:
            if segment.dropped:
                break
            yield from lines
        spool = self._spool
        if spool is not None and spool.first > 0:
            lost = f"{self.log.role}/{self.log.replica}: {spool.dropped_lines:,} older lines are gone"
            gone = self._say(f"{lost}: {spool.why_dropped}")
            known = math.isfinite(spool.dropped_until)
            gone.order = spool.dropped_until
            gone.time = spool.dropped_until if known else None
            yield gone

    def _begin(self, segment: SpoolSegment) -> FileSource:
        number = self._numbers[segment.number] = self._register(segment.data)
        self._segment, self._next = segment, segment.number
        self._source = FileSource(segment.data, number, ChunkIndex(segment.index), self._letters)
        return self._source

    def _current(self, spool: ReplicaSpool) -> FileSource | None:
        if self._segment is None:
            segment = spool.at_or_after(self._next)
            return None if segment is None else self._begin(segment)
        return self._source

    def _leave(self, segment: SpoolSegment) -> None:
        self._segment, self._source, self._next = None, None, segment.number + 1

    def _find_dropped(self, spool: ReplicaSpool) -> tuple[list[int], bool]:
        """List the numbers of the dropped files, and tell whether any was dropped before it was read."""
        first = spool.first
        if first == self._first:
            return [], False
        dropped = [self._numbers.pop(number) for number in range(self._first, first) if number in self._numbers]
        self._first = first
        skipped = first > self._next
        if skipped and self._segment is not None and self._source is not None:
            skipped = self._source.position < self._segment.data.size or first > self._next + 1
        if self._segment is not None and self._segment.dropped:
            self._leave(self._segment)
        self._next = max(self._next, first)
        return dropped, skipped

    def _new_notices(self, spool: ReplicaSpool) -> tuple[str, ...]:
        start, self._notices_read = self._notices_read, len(spool.notices)
        notes = tuple(spool.notices[start : self._notices_read])
        if self._trouble:
            notes, self._trouble = (self._trouble, *notes), ""
        return notes
