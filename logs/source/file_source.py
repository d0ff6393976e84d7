"""Splits one growing file into segments of whole lines: backwards from where it was opened, forwards as it grows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

from .chunks import Chunk, Chunks
from .log_file import GrowingFile
from .segment import BLOCK, LogSegment

FIRST_READ = 65536
"""Bytes of the first block that is read when a file is opened: enough for any screen."""
REMOVED_AFTER_S = 1.0
"""Seconds after which a missing file counts as removed: during a rotation it is missing for a moment."""
# Bytes of one file that are read in one poll, so that a flood from one replica does not starve the others.
POLL_LIMIT = 4 * 1024 * 1024


class _Headless(NamedTuple):
    """The end of a line that begins in an earlier chunk: no line feed comes in it before the last byte."""

    start: int
    end: int
    unfinished: bool


class FileSource:
    """The lines of one file.

    A line ends with its line feed, or where bytes of the other stream follow. It is never split where a read or a chunk
    ends: an unfinished last line is shown, and grows when more of it comes.

    Args:
        file: the file.
        number: the file's number, for its segments.
        chunks: when its bytes were written, and to which stream.
        streams: the letters of the wanted streams.
        floor: the offset of the first byte to read.
        timeless_order: the time by which lines without a time are merged: before all others, or after them.
    """

    def __init__(
        self,
        file: GrowingFile,
        number: int,
        chunks: Chunks,
        streams: str,
        *,
        floor: int = 0,
        timeless_order: float = -math.inf,
    ) -> None:
        self.file = file
        self.number = number
        self.position = floor
        self._chunks = chunks
        self._streams = streams
        self._floor = floor
        self._timeless_order = timeless_order
        self._tail: LogSegment | None = None
        self._headless: _Headless | None = None
        self._inode = 0
        self._away_since: float | None = None

    def open(self) -> Iterator[LogSegment]:
        """Start at the file's end; yield the segments before it, the latest first."""
        state = self.file.stat()
        if state is not None:
            self._inode = state.inode
            self.position = max(self._floor, state.size)
            # Open it now, so that it can be read to its end even if another file replaces it.
            self.file.read(0, 1)
        return self._older(self._chunks.older(self.position))

    def poll(self) -> tuple[list[LogSegment], LogSegment | None, bool]:
        """Read what was added.

        Returns:
            the new segments, an earlier segment whose last line grew, and whether there is more to read at once.

        Raises:
            FileReplacedError: another file is at the path now, or this one was cut.
            FileRemovedError: the file is gone; that is raised once.
        """
        state = self.file.stat()
        if state is None:
            self._note_away()
            # A process that has it open may still write to it.
            size = max(self.position, self.file.opened_size())
        elif self._inode not in (0, state.inode):
            size = self.file.opened_size()
            if size <= self.position:
                raise FileReplacedError(cut=False)
        else:
            size = state.size
            if size < self.position:
                raise FileReplacedError(cut=True)
            self._inode, self._away_since = state.inode, None
        return self._read_on(size) if size > self.position else ([], None, False)

    def _read_on(self, size: int) -> tuple[list[LogSegment], LogSegment | None, bool]:
        """Read what was added up to ``size``; see `poll`."""
        stop = min(size, self.position + POLL_LIMIT)
        fresh: list[LogSegment] = []
        tail, tail_end = self._tail, self._tail.end if self._tail else 0
        for start, end, chunk in self._chunks.newer(self.position, stop):
            if not self._take(start, end, chunk, fresh):
                break
        grown = tail if tail is not None and tail.end != tail_end else None
        return fresh, grown, self.position < size

    def _note_away(self) -> None:
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        elif self._inode and now - self._away_since > REMOVED_AFTER_S:
            self._away_since = math.inf
            raise FileRemovedError

    def _take(self, start: int, end: int, chunk: Chunk, fresh: list[LogSegment]) -> bool:
        """Read one chunk forwards; return False if its bytes cannot be read."""
        self.position = start
        if chunk.stream not in self._streams:
            self._tail = None
            self.position = end
            return True
        while self.position < end:
            data = self.file.read(self.position, min(BLOCK, end - self.position))
            if not data:
                return False
            self._add(data, chunk, fresh)
            self.position += len(data)
        return True

    def _add(self, data: bytes, chunk: Chunk, fresh: list[LogSegment]) -> None:
        start, end = self.position, self.position + len(data)
        tail = self._tail
        if tail is not None and tail.stream == chunk.stream and tail.end == start:
            feed = data.find(b"\n")
            if feed < 0:
                tail.end = end
                return
            start += feed + 1
            tail.end = start
        self._tail = None
        if start < end:
            feeds = data.count(b"\n", start - self.position)
            segment = self._segment(start, end, feeds, data[-1:] != b"\n", chunk)
            fresh.append(segment)
            self._tail = segment if data[-1:] != b"\n" else None

    def _segment(self, start: int, end: int, feeds: int, unfinished: bool, chunk: Chunk) -> LogSegment:
        order = self._timeless_order if chunk.time is None else chunk.time
        return LogSegment(self.number, start, end, feeds + unfinished, chunk.time, chunk.stream, order)

    def _older(self, chunks: Iterator[Chunk]) -> Iterator[LogSegment]:
        end = self.position
        first = True
        chunk = next(chunks, None)
        while chunk is not None:
            before = next(chunks, None)
            if chunk.stream in self._streams:
                for segment in self._older_in_chunk(chunk, end, before):
                    # An unfinished last line of the file may still grow.
                    if first and segment.end == self.position and self.file.read(segment.end - 1, 1) != b"\n":
                        self._tail = segment
                    first = False
                    end = segment.start
                    yield segment
                if before is None or before.stream != chunk.stream:
                    end = chunk.start
            else:
                end = chunk.start
            chunk = before

    def _older_in_chunk(self, chunk: Chunk, end: int, before: Chunk | None) -> Iterator[LogSegment]:
        """Yield the segments of one chunk from ``end`` backwards; leave a head that ends an earlier line."""
        floor = max(chunk.start, self._floor)
        goes_on = before is not None and before.stream == chunk.stream and self.file.read(floor - 1, 1) != b"\n"
        size = FIRST_READ if end == self.position else BLOCK
        while end > floor:
            line = self._headless
            if line is None or line.end != end:
                start = max(floor, end - size)
                size = BLOCK
                data = self.file.read(start, end - start)
                if len(data) < end - start:
                    return
                unfinished = data[-1:] != b"\n"
                may_be_cut = start > floor or goes_on
                head = data.find(b"\n", 0, -1) + 1 if may_be_cut else 0
                if head or not may_be_cut:
                    # Copying the block without its head would cost as much as counting its lines.
                    feeds = data.count(b"\n", head)
                    yield self._segment(start + head, end, feeds, unfinished, chunk)
                    end = start + head
                    continue
                line = _Headless(start, end, unfinished)
            line_start = self._line_start(floor, line.start)
            if line_start is None and goes_on:
                self._headless = line._replace(start=floor)
                return
            start = floor if line_start is None else line_start
            yield self._segment(start, end, 0 if line.unfinished else 1, line.unfinished, chunk)
            end = start

    def _line_start(self, floor: int, end: int) -> int | None:
        """Find the start of the line that reaches ``end``; None if no line ends after ``floor``."""
        while end > floor:
            start = max(floor, end - BLOCK)
            data = self.file.read(start, end - start)
            feed = data.rfind(b"\n")
            if feed >= 0:
                return start + feed + 1
            # Zeros may be a hole of gigabytes: a program leaves one if its file is truncated while it writes.
            end = start if data.count(0) < len(data) else self.file.stored_end(floor, start)
        return None


class FileReplacedError(Exception):
    """The file at a path was replaced by another one (rotated), or was truncated.

    Args:
        cut: the same file was truncated, so that its earlier bytes are gone.
    """

    def __init__(self, *, cut: bool) -> None:
        self.cut = cut


class FileRemovedError(Exception):
    """The file at a path was removed."""
