"""A sparse index of lines: where segments of lines are stored, and how many lines each has.

Lines are numbered from the moment the log was opened: 0 is the first line that came after, -1 the last one before. So
the last page is known at once, older lines get their (negative) numbers as they are counted in the background, and no
number ever changes. A row costs 38 bytes whatever number of lines it has; segments that follow each other closely
share one.

The oldest segments can be dropped. The numbers of the others, and of their lines, do not change.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ..source.segment import BLOCK, LogSegment, SegmentKey

# Rows that are released together, and that a search for a time examines one by one.
_ROWS_PER_PART = 4096
# Rows that are returned at once, at most: the lock is held meanwhile.
_MAX_ROWS = 1024
# Segments that follow each other in a file within so many seconds share a row, since a trickle of lines would take a
# row each. The time of a line is that of its row, so it may be wrong by this much.
_SHARED_ROW_S = 0.1


class _Segment(Protocol):
    file: int
    start: int
    end: int
    lines: int
    time: float | None
    stream: str


class _RowPart:
    """Up to ``_ROWS_PER_PART`` rows; ``through`` is the number of lines up to the end of each row."""

    __slots__ = ("end", "file", "latest", "plain", "start", "stream", "through", "time")

    def __init__(self) -> None:
        self.file = array("I")
        self.start = array("Q")
        self.end = array("Q")
        self.through = array("Q")
        self.time = array("d")
        self.stream = bytearray()
        self.plain = bytearray()
        self.latest = -math.inf


class SegmentTable:
    """Segments in the order they were added; the first ones, or the last ones, can be dropped.

    Attributes:
        first: the number of the first row that was not dropped.
        end: the number after the last row.
        lines: how many lines all rows up to the last one have, dropped ones at the front included.
    """

    def __init__(self) -> None:
        self.first = 0
        self.end = 0
        self.lines = 0
        self._parts: list[_RowPart] = []
        self._lines_before = array("Q")
        self._released = 0
        self._lines_dropped = 0
        # A copy of the last row, to compare the next segment with.
        self._last_file = -1
        self._last_start = self._last_end = 0
        self._last_stream = ""
        self._last_time = math.nan

    @property
    def has_times(self) -> bool:
        """Whether a row has a time."""
        return any(part.latest > -math.inf for part in self._parts)

    def add(self, segment: _Segment) -> int:
        """Add a segment; return its number."""
        number = self.end
        if number % _ROWS_PER_PART == 0:
            self._parts.append(_RowPart())
            self._lines_before.append(self.lines)
        part = self._parts[-1]
        self.lines += segment.lines
        part.file.append(segment.file)
        part.start.append(segment.start)
        part.end.append(segment.end)
        part.through.append(self.lines)
        time = segment.time
        if time is None:
            part.time.append(math.nan)
        else:
            part.time.append(time)
            if time > part.latest:
                part.latest = time
        part.stream.append(ord(segment.stream))
        part.plain.append(False)
        self._last_file, self._last_stream = segment.file, segment.stream
        self._last_start, self._last_end = segment.start, segment.end
        self._last_time = math.nan if time is None else time
        self.end = number + 1
        return number

    def follow(self, segment: _Segment, largest: int) -> bool:
        """Extend the last row by a segment that follows closely, within ``largest`` bytes; return whether it did."""
        if segment.start != self._last_end or segment.file != self._last_file or segment.stream != self._last_stream:
            return False
        time = segment.time
        if time is None or not 0 <= time - self._last_time < _SHARED_ROW_S or segment.end - self._last_start > largest:
            return False
        self._last_end = segment.end
        part = self._parts[-1]
        part.end[-1] = segment.end
        part.latest = max(part.latest, time)
        self._add_lines(part, segment)
        return True

    def precede(self, segment: _Segment, largest: int) -> bool:
        """Extend the last row by a segment that comes closely before it; see `follow`."""
        if segment.end != self._last_start or segment.file != self._last_file or segment.stream != self._last_stream:
            return False
        time = segment.time
        if time is None or not 0 <= self._last_time - time < _SHARED_ROW_S or self._last_end - segment.start > largest:
            return False
        self._last_start = segment.start
        part = self._parts[-1]
        part.start[-1] = segment.start
        part.time[-1] = time
        self._add_lines(part, segment)
        return True

    def _add_lines(self, part: _RowPart, segment: _Segment) -> None:
        self.lines += segment.lines
        part.through[-1] = self.lines
        part.plain[-1] = False

    def drop(self, number: int) -> None:
        """Drop the rows before the ``number``-th one."""
        self._lines_dropped = self.before(number)
        self.first = number
        parts = number // _ROWS_PER_PART - self._released
        del self._parts[:parts]
        del self._lines_before[:parts]
        self._released += parts

    def cut(self, number: int) -> None:
        """Drop the ``number``-th row and those after it; none may be added after that."""
        self.lines = self.before(number)
        self.end = number
        parts = -(-number // _ROWS_PER_PART)
        del self._parts[parts:]
        del self._lines_before[parts:]

    def grow(self, number: int, end: int) -> None:
        """Change the end of a row."""
        part, at = self._part(number)
        part.end[at] = end
        part.plain[at] = False
        if number == self.end - 1:
            self._last_end = end

    def note_plain(self, number: int, end: int) -> None:
        """Record that the lines of a row are plain, if its end is still ``end``."""
        part, at = self._part(number)
        part.plain[at] = part.end[at] == end

    def before(self, number: int) -> int:
        """Count the lines of the segments before the ``number``-th one."""
        if number <= self.first:
            return self._lines_dropped
        part, at = self._part(number - 1)
        return part.through[at]

    def row(self, number: int) -> tuple[int, int, int, int, bool]:
        """Return file, start, end and number of lines of a row, and whether they are known to be plain."""
        part, at = self._part(number)
        lines = part.through[at] - self.before(number)
        return part.file[at], part.start[at], part.end[at], lines, bool(part.plain[at])

    def origin(self, number: int) -> tuple[float | None, str]:
        """Return time and stream of a row."""
        part, at = self._part(number)
        time = part.time[at]
        return None if math.isnan(time) else time, chr(part.stream[at])

    def find(self, line: int) -> tuple[int, int, int]:
        """Return the number of the segment with the ``line``-th line, the line's number in it, and its line count."""
        which = bisect_right(self._lines_before, line) - 1
        through = self._parts[which].through
        number = (self._released + which) * _ROWS_PER_PART + bisect_right(through, line)
        before = self.before(number)
        part, at = self._part(number)
        return number, line - before, part.through[at] - before

    def first_at(self, time: float, *, backwards: bool = False) -> int | None:
        """Return the first row with this time or a later one; ``backwards`` searches from the end."""
        parts = range(len(self._parts))
        for which in reversed(parts) if backwards else parts:
            part = self._parts[which]
            if part.latest < time:
                continue
            base = (self._released + which) * _ROWS_PER_PART
            rows = range(max(self.first - base, 0), min(self.end - base, len(part.time)))
            for at in reversed(rows) if backwards else rows:
                if part.time[at] >= time:
                    return base + at
        return None

    def _part(self, number: int) -> tuple[_RowPart, int]:
        return self._parts[number // _ROWS_PER_PART - self._released], number % _ROWS_PER_PART


class LineSlice(NamedTuple):
    """Lines to read: ``take`` lines after the first ``skip`` of the segment ``start`` to ``end`` of a file."""

    file: int
    start: int
    end: int
    skip: int
    take: int
    time: float | None
    stream: str


class IndexRow(NamedTuple):
    """A segment in the index.

    Attributes:
        key: its position in the index.
        first: the number of its first line.
        file: the number of its file in the merged log.
        start: the offset of its first byte.
        end: the offset after its last byte.
        lines: how many lines it has.
        is_plain: whether its lines are known to be shown as they were printed.
    """

    key: SegmentKey
    first: int
    file: int
    start: int
    end: int
    lines: int
    is_plain: bool

    @property
    def stop(self) -> int:
        """The number after its last line."""
        return self.first + self.lines


class LineIndex:
    """All segments of a log, in the order they are shown; written by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._older = SegmentTable()
        self._newer = SegmentTable()
        self._last_of: dict[int, SegmentKey] = {}
        self._gone = 0

    def bounds(self) -> tuple[int, int]:
        """Return the number of the first known line and the number after the last one."""
        with self._lock:
            return self._first(), self._newer.lines

    @property
    def gone(self) -> int:
        """How many lines were dropped."""
        return self._gone

    def prepend(self, segments: Iterable[LogSegment]) -> None:
        """Add segments before all others, the latest first."""
        with self._lock:
            table = self._older
            # Rows that exist already may have been counted, and of those only the very last one may change.
            start = table.end
            for segment in segments:
                joined = table.end > start and table.precede(segment, BLOCK)
                segment.key = SegmentKey(False, table.end - 1 if joined else table.add(segment))
                if not joined:
                    self._last_of.setdefault(segment.file, segment.key)

    def append(self, segments: Iterable[LogSegment]) -> None:
        """Add segments after all others."""
        with self._lock:
            table = self._newer
            for segment in segments:
                joined = table.end > table.first and table.follow(segment, BLOCK)
                segment.key = SegmentKey(True, table.end - 1 if joined else table.add(segment))
                if not joined:
                    self._last_of[segment.file] = segment.key

    def grow(self, segment: LogSegment) -> None:
        """Update the end of a segment whose last line grew."""
        with self._lock:
            table = self._table_of(segment.key)
            if table is not None and segment.key is not None:
                table.grow(segment.key.number, segment.end)

    def drop_before(self, line: int) -> None:
        """Drop the segments whose lines all come before ``line``; nothing may be prepended after that."""
        with self._lock:
            self._drop_before(min(line, self._newer.lines))

    def drop_file(self, file: int) -> bool:
        """Drop everything up to the last known line of a file.

        Returns:
            whether any line of that file was known.
        """
        with self._lock:
            key = self._last_of.pop(file, None)
            if key is None:
                return False
            if key.newer:
                self._drop_before(self._newer.before(key.number + 1))
            elif key.number < self._older.end:
                self._drop_before(-self._older.before(key.number))
            return True

    def sizes(self) -> tuple[int, int]:
        """Return the numbers after the last segment before line 0, and after the last one from it on."""
        with self._lock:
            return self._older.end, self._newer.end

    @property
    def first_newer(self) -> int:
        """The number of the first segment from line 0 on that was not dropped."""
        return self._newer.first

    def rows(self, key: SegmentKey, size: int, *, outward: bool = True) -> list[IndexRow]:
        """List a segment and those next to it on its side of line 0; none if it is not known.

        Args:
            key: the first one.
            size: the bytes after which no more are listed.
            outward: list those away from line 0, or those towards it.
        """
        rows: list[IndexRow] = []
        with self._lock:
            number = key.number
            while size > 0 and len(rows) < _MAX_ROWS and (row := self._row(SegmentKey(key.newer, number))) is not None:
                rows.append(row)
                size -= row.end - row.start
                number += 1 if outward else -1
        return rows

    def row(self, key: SegmentKey) -> IndexRow | None:
        """Return a segment, None if it was dropped."""
        with self._lock:
            return self._row(key)

    def note_plain(self, rows: Iterable[IndexRow]) -> None:
        """Record that lines are shown as they were printed, unless they have grown since."""
        with self._lock:
            for row in rows:
                table = self._table_of(row.key)
                if table is not None:
                    table.note_plain(row.key.number, row.end)

    def locate(self, line: int) -> tuple[SegmentKey, int] | None:
        """Find the segment of a line, and the line's number in it; None if the line is not known."""
        with self._lock:
            if not self._first() <= line < self._newer.lines:
                return None
            if line < 0:
                number, from_last, lines = self._older.find(-line - 1)
                return SegmentKey(False, number), lines - 1 - from_last
            number, skip, _ = self._newer.find(line)
            return SegmentKey(True, number), skip

    def line_at(self, time: float) -> int | None:
        """Return the number of the first line of ``time`` (s since the epoch) or later.

        Returns:
            the number after the last line if all are earlier; None if no line has a time.
        """
        with self._lock:
            older = self._older.first_at(time, backwards=True)
            if older is not None:
                return -self._older.before(older + 1)
            newer = self._newer.first_at(time)
            if newer is not None:
                return self._newer.before(newer)
            return self._newer.lines if self._older.has_times or self._newer.has_times else None

    def slices(self, first: int, count: int) -> tuple[int, list[LineSlice]]:
        """List where the lines ``first`` to ``first + count`` are stored, without unknown ones.

        Returns:
            the number of the first known one, and the slices.
        """
        slices: list[LineSlice] = []
        with self._lock:
            stop = min(first + count, self._newer.lines)
            first = line = max(first, self._first())
            while line < stop:
                if line < 0:
                    number, from_last, lines = self._older.find(-line - 1)
                    table, skip = self._older, lines - 1 - from_last
                else:
                    number, skip, lines = self._newer.find(line)
                    table = self._newer
                take = min(lines - skip, stop - line)
                file, start, end, _, _ = table.row(number)
                slices.append(LineSlice(file, start, end, skip, take, *table.origin(number)))
                line += take
        return first, slices

    def _first(self) -> int:
        return -self._older.lines or self._newer.before(self._newer.first)

    def _table_of(self, key: SegmentKey | None) -> SegmentTable | None:
        """Return the table that has a segment, None if it was dropped or never added."""
        if key is None:
            return None
        table = self._newer if key.newer else self._older
        return table if table.first <= key.number < table.end else None

    def _row(self, key: SegmentKey) -> IndexRow | None:
        table = self._table_of(key)
        if table is None:
            return None
        first = table.before(key.number) if key.newer else -table.before(key.number + 1)
        return IndexRow(key, first, *table.row(key.number))

    def _drop_before(self, line: int) -> None:
        before = self._first()
        if line <= before:
            return
        older, newer = self._older, self._newer
        if line < 0:
            # The segment that the line is in stays.
            older.cut(older.find(-line - 1)[0] + 1)
        else:
            older.cut(0)
            newer.drop(newer.end if line >= newer.lines else newer.find(line)[0])
        self._gone += self._first() - before
