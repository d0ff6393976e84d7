"""The readers of a job's logs and the files that they read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .log_file import LogFile, NoticeFile, Readable
from .replica_log import LogReader, ReplicaLog, StreamName
from .replica_reader import ReplicaReader
from .segment import LogSegment


class JobFiles:
    """One reader for each replica's log. A file's number, as in `LogSegment.file`, is its place in the order of use.

    Args:
        logs: the replicas' logs.
        stream: the stream to read.
        join_s: bytes written to one stream within this time (s) share a time.
    """

    def __init__(self, logs: Sequence[ReplicaLog], stream: StreamName = "combined", *, join_s: float = 0.0) -> None:
        self.logs = tuple(logs)
        self._notices = NoticeFile()
        self._files: list[Readable] = [self._notices]
        self._replica_of: list[int] = [-1]
        self._registering = 0
        self._readers: list[LogReader] = []
        for number, log in enumerate(self.logs):
            self._registering = number
            self._readers.append(self._reader(log, stream, join_s))

    def connect(self) -> None:
        """Begin to read the logs that are streams, so that existing lines can arrive."""
        for reader in self._readers:
            reader.connect()

    @property
    def caught_up(self) -> bool:
        """Whether the lines that existed at the beginning have probably arrived."""
        return all(reader.caught_up for reader in self._readers)

    def read(self, file: int, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes of a file."""
        return self._files[file].read(start, size)

    def close(self) -> None:
        """Release the files. Any thread may call it, and more than once."""
        with suppress(IndexError):
            while True:
                # Each reader is closed once: a stream counts its readers.
                self._readers.pop().close()
        for file in self._files:
            if isinstance(file, LogFile):
                file.close()

    def readers(self) -> Iterator[LogReader]:
        """Yield the readers in the order of the logs; files that a reader opens belong to its replica."""
        for number, reader in enumerate(self._readers):
            self._registering = number
            yield reader

    def notice(self, sentence: str) -> LogSegment:
        """Add a notice of ours and return its segment."""
        start, end = self._notices.add(sentence)
        return LogSegment(0, start, end, 1, time.time(), "n")

    def _reader(self, log: ReplicaLog, stream: StreamName, join_s: float) -> LogReader:
        if log.spool is None:
            return ReplicaReader(log, stream, self._register, self.notice, join_s=join_s)
        return log.spool.reader(log, stream, self._add, self.notice)

    def _register(self, path: Path) -> tuple[LogFile, int]:
        file = LogFile(path)
        return file, self._add(file)

    def _add(self, file: Readable) -> int:
        self._replica_of.append(self._registering)
        self._files.append(file)
        return len(self._files) - 1
