"""Chunks of a log file: when bytes were written, and to which stream.

``combined.index`` has one text line for each run of bytes that was added to ``combined.log``:
``<start offset> <seconds since the epoch> <o|e|c>``. A record is written before its bytes, and ends where the next one
starts. So every byte that can be read has a record, if the file's size is read before the index.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol

from .log_file import GrowingFile

_READ_SIZE = 65536


class Chunk(NamedTuple):
    """Bytes from ``start`` on: when they came (seconds since the epoch, None if unknown) and their stream's letter."""

    start: int
    time: float | None
    stream: str


class Chunks(Protocol):
    """Splits a file's bytes by time and stream."""

    def older(self, size: int) -> Iterator[Chunk]:
        """Yield the chunks of the bytes before ``size``, the latest first."""
        ...

    def newer(self, start: int, size: int) -> list[tuple[int, int, Chunk]]:
        """Return the chunks of the bytes ``start`` to ``size``, each with its part of that range.

        Each call continues where the one before ended.
        """
        ...


class WholeFile:
    """Chunks of a file without an index: old bytes have no time, new bytes have the time of reading.

    Args:
        stream: the stream's letter.
        floor: the offset of the first byte that counts.
    """

    def __init__(self, stream: str, floor: int = 0) -> None:
        self._stream = stream
        self._floor = floor

    def older(self, size: int) -> Iterator[Chunk]:
        """Yield one chunk for all bytes before ``size``."""
        if size > self._floor:
            yield Chunk(self._floor, None, self._stream)

    def newer(self, start: int, size: int) -> list[tuple[int, int, Chunk]]:
        """Return the whole range as one chunk, written now."""
        return [(start, size, Chunk(start, time.time(), self._stream))] if start < size else []


class ChunkIndex:
    """Chunks of ``combined.log`` from ``combined.index``; without an index, as for a file that has none.

    Args:
        index: the index file; malformed records are skipped.
        join_s: records of one stream within this time (s) are one chunk when they are read forwards.
    """

    def __init__(self, index: GrowingFile, join_s: float = 0.0) -> None:
        self._index = index
        self._join_s = join_s
        self._read_to = 0
        self._queue: deque[Chunk] = deque()

    def older(self, size: int) -> Iterator[Chunk]:
        """Yield the chunks of the bytes before ``size``, the latest first."""
        state = self._index.stat()
        self._read_to = self._whole_records(state.size if state else 0)
        records = self._backwards(self._read_to)
        # The latest chunk may still grow, and one more may be recorded before any of its bytes are written.
        for record in records:
            self._queue.appendleft(record)
            if record.start <= size:
                break
        return self._older(size, list(reversed(self._queue)), records)

    @staticmethod
    def _older(size: int, taken: list[Chunk], records: Iterator[Chunk]) -> Iterator[Chunk]:
        lowest = size
        for source in (taken, records):
            for chunk in source:
                if chunk.start < lowest:
                    yield chunk
                    lowest = chunk.start
        if lowest > 0:
            yield Chunk(0, None, "c")

    def newer(self, start: int, size: int) -> list[tuple[int, int, Chunk]]:
        """Return the chunks of the bytes ``start`` to ``size``, each with its part of that range."""
        if start >= size:
            return []
        self._read_new()
        queue = self._queue
        if not queue:
            return [(start, size, Chunk(start, time.time(), "c"))]
        chunks = []
        if start < queue[0].start:
            chunks.append((start, min(size, queue[0].start), Chunk(start, None, "c")))
        stops = [*(chunk.start for chunk in islice(queue, 1, None)), size]
        for chunk, stop in zip(list(queue), stops, strict=True):
            low, high = max(start, chunk.start), min(size, stop)
            if low < high:
                chunks.append((low, high, chunk))
        while len(queue) > 1 and queue[1].start <= size:
            queue.popleft()
        return chunks

    def _read_new(self) -> None:
        while data := self._index.read(self._read_to, _READ_SIZE):
            end = data.rfind(b"\n") + 1
            if end == 0:
                break
            self._read_to += end
            for line in data[:end].splitlines():
                chunk = _record(line)
                if chunk is not None and (not self._queue or self._is_next(self._queue[-1], chunk)):
                    self._queue.append(chunk)
            if len(data) < _READ_SIZE:
                break

    def _is_next(self, last: Chunk, chunk: Chunk) -> bool:
        """Tell whether a record begins a chunk after the last one."""
        if chunk.start < last.start:
            return False
        joins = chunk.stream == last.stream and chunk.time is not None and last.time is not None
        return not (joins and 0 <= chunk.time - last.time < self._join_s)  # type: ignore[operator]

    def _whole_records(self, size: int) -> int:
        """Return the end of the last whole line within ``size`` bytes of the index."""
        start = max(0, size - _READ_SIZE)
        return start + self._index.read(start, size - start).rfind(b"\n") + 1

    def _backwards(self, end: int) -> Iterator[Chunk]:
        rest = b""
        while end > 0:
            start = max(0, end - _READ_SIZE)
            lines = (self._index.read(start, end - start) + rest).split(b"\n")
            rest = lines.pop(0) if start > 0 else b""
            for line in reversed(lines):
                chunk = _record(line)
                if chunk is not None:
                    yield chunk
            end = start


def stream_lengths(index: GrowingFile, size: int) -> dict[str, int]:
    """Count the bytes of each stream in the first ``size`` bytes of ``combined.log``, by the stream's letter."""
    lengths = {"o": 0, "e": 0, "c": 0}
    end = size
    for chunk in ChunkIndex(index).older(size):
        lengths[chunk.stream] += end - chunk.start
        end = chunk.start
    return lengths


def _record(line: bytes) -> Chunk | None:
    """Parse one line of the index; None if it is malformed."""
    fields = line.split()
    if len(fields) != 3 or fields[2] not in (b"o", b"e", b"c"):
        return None
    try:
        start, at = int(fields[0]), float(fields[1])
    except ValueError:
        return None
    # Times are added up and shown: infinities and years that time.localtime rejects count as unknown.
    return Chunk(start, at if 0 <= at < 2**40 else None, fields[2].decode()) if 0 <= start < 2**63 else None
