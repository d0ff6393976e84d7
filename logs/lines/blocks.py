"""The logs of a job's replicas as blocks of whole lines, each with its time: from their beginning on, or their ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...base.files import path_exists
from ..source.job_files import JobFiles
from ..source.log_file import GrowingFile, LogFile, why_unreadable
from ..source.replica_log import ReplicaLog
from ..source.segment import BLOCK, LogSegment

_MAX_REPLICAS = 16
# A longer line without an end is split.
_MAX_REST_BYTES = 65_536
# Lines printed within this time (s) are one block: a block for each line costs 50 times as much.
_JOIN_S = 0.1


class LogBlock(NamedTuple):
    """Whole lines of one replica.

    Attributes:
        data: the lines; a carriage return ends a line, too.
        time: when they were printed, in seconds since the epoch; nan if that is not known.
        replica: such as ``trainer/0``.
    """

    data: bytes
    time: float
    replica: str


def followed(logs: Sequence[ReplicaLog]) -> list[ReplicaLog]:
    """Choose the logs that are read as they grow: of more than 16 the first ones and the last one.

    Ranks of one job print the same, and in some trainers the last one alone prints.
    """
    return [*logs[: _MAX_REPLICAS - 1], *logs[_MAX_REPLICAS - 1 :][-1:]]


def not_followed(logs: Sequence[ReplicaLog]) -> list[ReplicaLog]:
    """Return the logs that `followed` leaves out."""
    return list(logs[_MAX_REPLICAS - 1 : -1])


class LogBlocks(JobFiles):
    """Reads logs forwards, from their beginning on.

    Args:
        logs: the replicas' logs, of which some are chosen by `followed`. Those that are streams are read from their
            spools, beside any log pane.
    """

    def __init__(self, logs: Sequence[ReplicaLog]) -> None:
        super().__init__(followed(logs), join_s=_JOIN_S)
        self._consumed: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        # Bytes that existed before the first poll have a time only if an index beside the file has it.
        self._is_timed = [_has_times(log) for log in self.logs]

    @property
    def size(self) -> int:
        """The bytes that were printed; those of a line that is not whole count."""
        return sum(self._ends.values())

    def poll(self) -> tuple[Iterator[LogBlock], bool]:
        """Read what was added since.

        Returns:
            the new blocks, which are read from disk as they are taken, and whether there is more to read at once.
        """
        found: list[tuple[LogSegment, str, bool]] = []
        more = False
        for number, reader in enumerate(self.readers()):
            polled = reader.poll()
            more = more or polled.more
            label = f"{reader.log.role}/{reader.log.replica}"
            found += [(segment, label, self._is_timed[number]) for segment in (*polled.grown, *polled.fresh)]
            self._is_timed[number] |= not polled.more
        return self._blocks(found), more

    def _blocks(self, found: list[tuple[LogSegment, str, bool]]) -> Iterator[LogBlock]:
        for segment, label, timed in found:
            if segment.stream == "n":
                continue
            self._ends[segment.file] = segment.end
            at = max(segment.start, self._consumed.get(segment.file, 0))
            printed_at = segment.time if timed and segment.time is not None else math.nan
            while at < segment.end:
                data = self.read(segment.file, at, min(BLOCK, segment.end - at))
                whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
                if whole == 0:
                    if len(data) < _MAX_REST_BYTES:
                        break
                    whole = len(data)
                yield LogBlock(data[:whole], printed_at, label)
                at += whole
            self._consumed[segment.file] = at


def read_ends(logs: Iterable[ReplicaLog], most_bytes: int) -> Iterator[LogBlock]:
    """Read the end of each log, an unfinished last line too: it may be the state of a progress bar.

    Logs that are streams are read from their spools while others, such as a log pane, read them.

    Args:
        logs: the replicas' logs.
        most_bytes: the most bytes to read of a log.
    """
    for log in logs:
        for file in _files(log):
            state = file.stat()
            if state is None or not state.size:
                continue
            start = max(0, state.size - most_bytes)
            data = file.read(start, state.size - start)
            yield LogBlock(data[data.find(b"\n") + 1 if start else 0 :], state.written_at, f"{log.role}/{log.replica}")


def timed_end(log: ReplicaLog, most_bytes: int) -> list[LogBlock]:
    """Return the end of a replica's log with the time of each block; empty if no index beside the log has times."""
    if log.spool is not None or not _has_times(log):
        return []
    files = JobFiles([log])
    blocks: list[LogBlock] = []
    size = 0
    try:
        segments = itertools.chain.from_iterable(iterator for reader in files.readers() for iterator in reader.open())
        for segment in segments:
            data = files.read(segment.file, segment.start, segment.end - segment.start)[-most_bytes:]
            at = math.nan if segment.time is None else segment.time
            blocks.append(LogBlock(data, at, f"{log.role}/{log.replica}"))
            size += len(data)
            if size >= most_bytes:
                break
    finally:
        files.close()
    return blocks[::-1]


def log_paths(log: ReplicaLog) -> list[Path]:
    """Return the files that a replica's log is read from."""
    if log.combined is not None and path_exists(log.combined):
        return [log.combined]
    return [path for path in (log.stdout, log.stderr) if path is not None]


def unreadable_logs(logs: Iterable[ReplicaLog]) -> list[str]:
    """Describe the files of logs that exist and cannot be read, such as named pipes."""
    paths = [path for log in logs if log.spool is None for path in log_paths(log)]
    return [fault for path in paths if (fault := why_unreadable(path))]


def _files(log: ReplicaLog) -> list[GrowingFile]:
    if log.spool is None:
        return [LogFile(path, keep_open=False) for path in log_paths(log)]
    newest = log.spool.newest()
    return [] if newest is None else [newest]


def _has_times(log: ReplicaLog) -> bool:
    return log.spool is not None or (log.index is not None and path_exists(log.index))
