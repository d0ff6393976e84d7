"""Reads the spool of one replica as its log, while the newest segment grows and the oldest ones go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..source.chunks import ChunkIndex
from ..source.file_source import Source
from ..source.log_file import Readable
from ..source.replica_log import LETTERS, Polled, ReplicaLog, StreamName
from ..source.segment import Segment
from .feed import Origin
from .replica_spool import ReplicaSpool
from .spool_file import SpoolSegment
from .spools import LogSpools, folder_name


class SpooledLog:
    """One replica's log that is read from its scheduler; nothing is read before it is first used.

    Args:
        spools: where it is kept.
        job: the job's handle.
        role: the role's name.
        replica: the replica's number in its role.
        origin: gives where a stream of it comes from.
        parted: whether stdout and stderr come as streams of their own, not as letters in one stream.
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
        """Begin to read, or read with those who do; `release` is called once for each call."""
        return self._spools.acquire(self._job, self._names(stream), lambda: self._origin(self._stream(stream)))

    def release(self, stream: StreamName) -> None:
        """Read no more."""
        self._spools.release(self._job, self._names(stream)[0])

    def reader(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], Segment],
    ) -> SpoolReader:
        """Return a reader of the log; see `Streamed.reader`."""
        return SpoolReader(self, log, stream, register, say)

    def _stream(self, stream: StreamName) -> StreamName:
        return stream if self._parted else "combined"

    def _names(self, stream: StreamName) -> tuple[str, str]:
        chosen = self._stream(stream)
        folder = f"{folder_name(self._role)}-{self._replica}"
        words = f"{self._role}/{self._replica}"
        return (folder, words) if chosen == "combined" else (f"{folder}.{chosen}", words)


class SpoolReader:
    """The sources of one replica whose log is no file here; see `ReplicaReader`.

    Args:
        kept: the log as it is kept.
        log: the replica's log.
        stream: which stream is wanted.
        register: takes a file and gives its number.
        say: makes lines of a sentence of ours.
    """

    def __init__(
        self,
        kept: SpooledLog,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], Segment],
    ) -> None:
        self.log = log
        self._kept = kept
        self._stream: StreamName = stream
        # Where streams cannot be told apart, there is one for all.
        self._letters = LETTERS[stream] if kept.streams else "oec"
        self._register = register
        self._say = say
        self._spool: ReplicaSpool | None = None
        self._closed = False
        self._numbers: dict[int, int] = {}
        self._first = 0
        self._next = 0
        self._source: Source | None = None
        self._segment: SpoolSegment | None = None
        self._told = 0
        self._trouble = ""

    def connect(self) -> None:
        """Begin to read the stream, so that what was there can come before `open`."""
        if self._spool is None and not self._closed:
            self._spool = self._kept.acquire(self._stream)
            self._told = len(self._spool.notices)
            # Whoever comes later is told of what holds on.
            self._trouble = self._spool.trouble

    @property
    def caught_up(self) -> bool:
        """Whether the lines that were there at the beginning have probably come."""
        return self._spool is None or self._spool.caught_up

    def open(self) -> list[Iterator[Segment]]:
        """Start at the end; return what is before it, the latest first."""
        self.connect()
        if self._spool is None:
            return []
        segments = self._spool.segments()
        self._first = self._next = segments[0].number if segments else self._spool.first
        older: list[tuple[SpoolSegment, Iterator[Segment]]] = []
        for segment in segments:
            source = self._begin(segment)
            older.append((segment, source.open()))
        return [self._older(older[::-1])]

    def poll(self) -> Polled:
        """Read what came since."""
        spool = self._spool
        if spool is None:
            return Polled([], [], False)
        dropped, skipped = self._find_dropped(spool)
        fresh: list[Segment] = []
        grown: list[Segment] = []
        more = False
        while (source := self._current(spool)) is not None and self._segment is not None:
            # Asked first: what is finished has nothing to add after that.
            finished = self._segment.finished
            segments, longer, more = source.poll()
            fresh += segments
            grown += [] if longer is None else [longer]
            if not finished or source.position < self._segment.data.size:
                break
            self._leave(self._segment)
            if segments:
                more = True
                break
        return Polled(fresh, grown, more, tuple(dropped), skipped, spool.why_dropped, self._notes(spool))

    @property
    def settled(self) -> bool:
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
        """Read no more."""
        self._closed = True
        if self._spool is not None:
            self._spool = None
            self._kept.release(self._stream)

    def _older(self, older: list[tuple[SpoolSegment, Iterator[Segment]]]) -> Iterator[Segment]:
        for segment, lines in older:
            if segment.dropped:
                break
            yield from lines
        spool = self._spool
        if spool is not None and spool.first > 0:
            words = f"{self.log.role}/{self.log.replica}: {spool.dropped_lines:,} older lines are gone"
            gone = self._say(f"{words}: {spool.why_dropped}")
            known = math.isfinite(spool.dropped_until)
            gone.order = spool.dropped_until
            gone.time = spool.dropped_until if known else None
            yield gone

    def _begin(self, segment: SpoolSegment) -> Source:
        number = self._numbers[segment.number] = self._register(segment.data)
        self._segment, self._next = segment, segment.number
        self._source = Source(segment.data, number, ChunkIndex(segment.index), self._letters)
        return self._source

    def _current(self, spool: ReplicaSpool) -> Source | None:
        if self._segment is None:
            segment = spool.at_or_after(self._next)
            return None if segment is None else self._begin(segment)
        return self._source

    def _leave(self, segment: SpoolSegment) -> None:
        self._segment, self._source, self._next = None, None, segment.number + 1

    def _find_dropped(self, spool: ReplicaSpool) -> tuple[list[int], bool]:
        """Return the numbers of the files that went, and whether any went before it was read."""
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

    def _notes(self, spool: ReplicaSpool) -> tuple[str, ...]:
        told, self._told = self._told, len(spool.notices)
        notes = tuple(spool.notices[told : self._told])
        if self._trouble:
            notes, self._trouble = (self._trouble, *notes), ""
        return notes
