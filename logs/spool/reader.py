"""Reads the spool of one replica as its log, while it grows and its files rotate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..source.chunks import ChunkIndex
from ..source.file_source import FileSource
from ..source.log_file import GrowingFile, Readable
from ..source.replica_log import LETTERS, PollResult, ReplicaLog, StreamName
from ..source.segment import LogSegment
from .feed import Origin
from .spool import Spool, SpoolPart
from .spools import LogSpools, folder_name


class SpooledLog:
    """One replica's log that is streamed from its scheduler; nothing is read before it is first used.

    Args:
        spools: the spools of this program.
        job: the job's handle.
        role: the role's name.
        replica: the replica's number in its role.
        origin: returns what opens a stream of the log.
        parted: whether stdout and stderr are separate streams, not letters within one stream.
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
        self._label = f"{role}/{replica}"
        self._folder = f"{folder_name(role)}-{replica}"
        self._origin = origin
        self._parted = parted and streams
        self.streams = streams

    def acquire(self, stream: StreamName, user: object) -> Spool:
        """Begin to read, or share a stream that is read; `release` ends it for the same user."""
        chosen = stream if self._parted else "combined"
        return self._spools.acquire(self._key(stream), self._label, lambda: self._origin(chosen), user)

    def release(self, stream: StreamName, user: object) -> None:
        """Stop reading; a second call does nothing."""
        self._spools.release(self._key(stream), user)

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
        """Return the current file of the spool; see `RemoteLog`."""
        spool = self._spools.find(self._key("combined"))
        parts = () if spool is None else spool.parts
        return parts[-1].data if parts else None

    def _key(self, stream: StreamName) -> tuple[str, str]:
        is_own = self._parted and stream != "combined"
        return self._job, f"{self._folder}.{stream}" if is_own else self._folder


class SpoolReader:
    """Reads one replica's log from its spool; see `LogReader`.

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
        self._spool: Spool | None = None
        self._closed = False
        self._sources: dict[int, FileSource] = {}
        self._next = 0
        self._notices_read = 0

    def connect(self) -> None:
        if self._spool is not None or self._closed:
            return
        spool = self._spooled_log.acquire(self._stream, self)
        spool.drop_removed()
        # Trouble that lasts is the last notice.
        self._notices_read = len(spool.notices) - bool(spool.trouble)
        self._spool = spool
        if self._closed:
            self.close()

    @property
    def caught_up(self) -> bool:
        return self._spool is None or self._spool.caught_up

    def open(self) -> list[Iterator[LogSegment]]:
        self.connect()
        spool = self._spool
        if spool is None:
            return []
        parts = spool.parts
        self._next = parts[0].number if parts else spool.first
        older = [(part, self._source(part).open()) for part in parts]
        return [self._older(spool, older[::-1])]

    def poll(self) -> PollResult:
        spool = self._spool
        if spool is None:
            return PollResult([], [], False)
        dropped, skipped = self._forget_dropped(spool)
        fresh: list[LogSegment] = []
        grown: list[LogSegment] = []
        more = False
        parts = spool.parts
        for part in parts:
            if part.number < self._next:
                continue
            source = self._source(part)
            segments, grown_segment, more = source.poll()
            fresh += segments
            grown += [] if grown_segment is None else [grown_segment]
            # The current file may grow after the poll; the previous one does not.
            if part is parts[-1] or source.position < part.data.size:
                break
            self._next = part.number + 1
        return PollResult(fresh, grown, more, tuple(dropped), skipped, spool.why_dropped, self._new_notices(spool))

    @property
    def fully_read(self) -> bool:
        spool = self._spool
        if spool is None:
            return True
        return spool.ended and not any(self._is_unread(part) for part in spool.parts)

    def close(self) -> None:
        self._closed = True
        if self._spool is not None:
            self._spool = None
            self._spooled_log.release(self._stream, self)

    def _is_unread(self, part: SpoolPart) -> bool:
        source = self._sources.get(part.number)
        return source is None or source.position < part.data.size

    def _older(self, spool: Spool, older: list[tuple[SpoolPart, Iterator[LogSegment]]]) -> Iterator[LogSegment]:
        for part, lines in older:
            if part.number >= spool.first:
                yield from lines
        if spool.first > 0:
            lost = f"{spool.name}: {spool.dropped_lines:,} older lines are gone: {spool.why_dropped}"
            gone = self._say(lost)
            gone.order = spool.dropped_until
            gone.time = spool.dropped_until if math.isfinite(spool.dropped_until) else None
            yield gone

    def _source(self, part: SpoolPart) -> FileSource:
        if part.number not in self._sources:
            number = self._register(part.data)
            self._sources[part.number] = FileSource(part.data, number, ChunkIndex(part.index), self._letters)
        return self._sources[part.number]

    def _forget_dropped(self, spool: Spool) -> tuple[list[int], bool]:
        """List the numbers of the dropped files, and tell whether any was dropped before it was read."""
        first = spool.first
        gone = {part: self._sources.pop(part) for part in tuple(self._sources) if part < first}
        unread = range(self._next, first)
        self._next = max(self._next, first)
        skipped = any(part not in gone or _is_behind(gone[part]) for part in unread)
        return [source.number for source in gone.values()], skipped

    def _new_notices(self, spool: Spool) -> tuple[str, ...]:
        start, self._notices_read = self._notices_read, len(spool.notices)
        return tuple(spool.notices[start : self._notices_read])


def _is_behind(source: FileSource) -> bool:
    state = source.file.stat()
    return state is not None and source.position < state.size
