"""The logs of a job's replicas as blocks of whole lines, from their beginning on, each with its time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...logs.source.log_file import LogFile, NoticeFile, Readable
from ...logs.source.replica_log import LogReader, ReplicaLog
from ...logs.source.replica_reader import ReplicaReader
from ...logs.source.segment import BLOCK, LogSegment

_MOST_REPLICAS = 16
# A line that does not end within so many bytes is taken as it is.
_LONGEST_REST = 65_536


class LogBlock(NamedTuple):
    """Whole lines of one replica.

    Attributes:
        data: the lines; those that a carriage return ends count as whole.
        time: when they were printed (seconds since the epoch); nan where that is not known.
        replica: such as ``trainer/0``.
    """

    data: bytes
    time: float
    replica: str


class LogBlocks:
    """Reads logs forwards.

    Of more replicas than 16 the first ones and the last one are read: ranks of one job print the same, and in some
    trainers the last one alone prints.

    Args:
        logs: the replicas' logs. Those that are streams are read from their spools, beside any log pane.
    """

    def __init__(self, logs: Sequence[ReplicaLog]) -> None:
        self._files: list[Readable] = [NoticeFile()]
        self._consumed: list[int] = [0]
        self._readers = [self._reader(log) for log in (*logs[: _MOST_REPLICAS - 1], *logs[_MOST_REPLICAS - 1 :][-1:])]
        # What was there before the first poll has no time, where no index beside the file has it.
        self._is_timed = {id(reader): _has_times(reader.log) for reader in self._readers}

    def connect(self) -> None:
        """Begin to read logs that are streams."""
        for reader in self._readers:
            reader.connect()

    @property
    def caught_up(self) -> bool:
        """Whether the lines that streams had at the beginning have probably arrived."""
        return all(reader.caught_up for reader in self._readers)

    def poll(self) -> tuple[Iterator[LogBlock], bool]:
        """Read what was added since.

        Returns:
            the new blocks, which are read from disk as they are taken, and whether there is more to read at once.
        """
        found: list[tuple[LogSegment, str, bool]] = []
        more = False
        for reader in self._readers:
            polled = reader.poll()
            more = more or polled.more
            label = f"{reader.log.role}/{reader.log.replica}"
            timed = self._is_timed[id(reader)]
            found += [(segment, label, timed) for segment in (*polled.grown, *polled.fresh)]
            if not polled.more:
                self._is_timed[id(reader)] = True
        return self._blocks(found), more

    def close(self) -> None:
        """Release the files."""
        for reader in self._readers:
            reader.close()
        for file in self._files:
            if isinstance(file, LogFile):
                file.close()

    def _blocks(self, found: list[tuple[LogSegment, str, bool]]) -> Iterator[LogBlock]:
        for segment, label, timed in found:
            if segment.stream == "n":
                continue
            at = max(segment.start, self._consumed[segment.file])
            time = segment.time if timed and segment.time is not None else math.nan
            while at < segment.end:
                data = self._files[segment.file].read(at, min(BLOCK, segment.end - at))
                whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
                if whole == 0:
                    if len(data) < _LONGEST_REST:
                        break
                    whole = len(data)
                yield LogBlock(data[:whole], time, label)
                at += whole
            self._consumed[segment.file] = at

    def _reader(self, log: ReplicaLog) -> LogReader:
        if log.spool is None:
            return ReplicaReader(log, "combined", self._register, _notice)
        return log.spool.reader(log, "combined", self._add, _notice)

    def _register(self, path: Path) -> tuple[LogFile, int]:
        file = LogFile(path)
        return file, self._add(file)

    def _add(self, file: Readable) -> int:
        self._files.append(file)
        self._consumed.append(0)
        return len(self._files) - 1


def _notice(_sentence: str) -> LogSegment:
    """Return a segment for a notice of ours, which tells no progress."""
    return LogSegment(0, 0, 0, 0, None, "n")


def _has_times(log: ReplicaLog) -> bool:
    return log.spool is not None or (log.index is not None and log.index.exists())
