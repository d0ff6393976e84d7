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
from typing import NamedTuple

from ..source.segment import BLOCK, LogSegment, SegmentKey

# The maximum number of rows returned at once, while the lock is held.
_MAX_ROWS = 1024
# Segments that follow each other in a file within this many seconds share a row, since a trickle of lines would take a
# row each. The time of a line is that of its row, so it may be wrong by this much.
_SHARED_ROW_S = 0.1


class SegmentTable:
    """Segments in the order they were added; the first ones, or the last ones, can be dropped.

    Attributes:
        first: the number of the first row that was not dropped.
    """

    def __init__(self) -> None:
        self.first = 0
        self._lines_dropped = 0
        self._files, self._starts, self._ends = array("I"), array("Q"), array("Q")
        # The number of lines up to the end of each row, dropped ones at the front included.
        self._through = array("Q")
        # NaN for a row without a time.
        self._times = array("d")
        self._streams, self._plain = bytearray(), bytearray()
        # The time of the segment that began the last row.
        self._row_began = math.nan

    @property
    def end(self) -> int:
        """The number after the last row."""
        return self.first + len(self._files)

    @property
    def lines(self) -> int:
        """How many lines all rows up to the last one have, dropped ones at the front included."""
        return self.before(self.end)

    @property
    def has_times(self) -> bool:
        """Whether a row has a time."""
        return not all(map(math.isnan, self._times))

    def add(self, segment: LogSegment) -> int:
        """Add a segment; return its number."""
        self._through.append(self.lines + segment.lines)
        self._files.append(segment.file)
        self._starts.append(segment.start)
        self._ends.append(segment.end)
        self._row_began = math.nan if segment.time is None else segment.time
        self._times.append(self._row_began)
        self._streams.append(ord(segment.stream))
        self._plain.append(False)
        return self.end - 1

    def join(self, segment: LogSegment) -> bool:
        """Extend the last row by a segment that is next to it, in its file and in time; return whether it did."""
        if segment.time is None or segment.file != self._files[-1] or ord(segment.stream) != self._streams[-1]:
            return False
        start, end = self._starts[-1], self._ends[-1]
        is_near = abs(segment.time - self._row_began) < _SHARED_ROW_S
        if not is_near or (segment.start != end and segment.end != start):
            return False
        start, end = min(start, segment.start), max(end, segment.end)
        if end - start > BLOCK:
            return False
        self._starts[-1], self._ends[-1], self._times[-1] = start, end, min(self._times[-1], segment.time)
        self._through[-1] += segment.lines
        self._plain[-1] = False
        return True

    def drop(self, number: int) -> None:
        """Drop the rows before the ``number``-th one."""
        self._lines_dropped = self.before(number)
        self._delete(slice(0, number - self.first))
        self.first = number

    def cut(self, number: int) -> None:
        """Drop the ``number``-th row and those after it; none may be added after that."""
        self._delete(slice(number - self.first, None))

    def _delete(self, rows: slice) -> None:
        columns = self._files, self._starts, self._ends, self._through, self._times, self._streams, self._plain
        for column in columns:
            del column[rows]

    def grow(self, number: int, end: int) -> None:
        """Change the end of a row."""
        self._ends[number - self.first] = end
        self._plain[number - self.first] = False

    def note_plain(self, number: int, end: int) -> None:
        """Record that the lines of a row are plain, if its end is still ``end``."""
        self._plain[number - self.first] = self._ends[number - self.first] == end

    def before(self, number: int) -> int:
        """Count the lines of the segments before the ``number``-th one."""
        return self._through[number - self.first - 1] if number > self.first else self._lines_dropped

    def row(self, key: SegmentKey) -> IndexRow:
        """Return a row of the table, which is of one side of line 0."""
        at, before, through = key.number - self.first, self.before(key.number), self.before(key.number + 1)
        time = self._times[at]
        return IndexRow(
            key,
            before if key.newer else -through,
            self._files[at],
            self._starts[at],
            self._ends[at],
            through - before,
            bool(self._plain[at]),
            None if math.isnan(time) else time,
            chr(self._streams[at]),
        )

    def find(self, line: int) -> int:
        """Return the number of the segment with the ``line``-th line."""
        return self.first + bisect_right(self._through, line)

    def first_at(self, time: float, *, backwards: bool = False) -> int | None:
        """Return the first row with this time or a later one; ``backwards`` searches from the end."""
        rows = range(len(self._times))
        at = next((at for at in (reversed(rows) if backwards else rows) if self._times[at] >= time), None)
        return None if at is None else self.first + at


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
        time: when it was written (seconds since the epoch), None if not known.
        stream: see `LogSegment`.
    """

    key: SegmentKey
    first: int
    file: int
    start: int
    end: int
    lines: int
    is_plain: bool
    time: float | None
    stream: str

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
                joined = table.end > start and table.join(segment)
                segment.key = SegmentKey(False, table.end - 1 if joined else table.add(segment))
                if not joined:
                    self._last_of.setdefault(segment.file, segment.key)

    def append(self, segments: Iterable[LogSegment]) -> None:
        """Add segments after all others."""
        with self._lock:
            table = self._newer
            for segment in segments:
                joined = table.end > table.first and table.join(segment)
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
        """Drop the segments whose lines all come before ``line``; nothing may be prepended afterwards."""
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
            size: the bytes after which the list ends.
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

    def row_of(self, line: int) -> IndexRow | None:
        """Return the segment of a line, None if the line is not known."""
        with self._lock:
            return self._row_of(line)

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
            while line < stop and (row := self._row_of(line)) is not None:
                take = min(row.stop, stop) - line
                slices.append(LineSlice(row.file, row.start, row.end, line - row.first, take, row.time, row.stream))
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
        return None if table is None else table.row(key)

    def _row_of(self, line: int) -> IndexRow | None:
        newer = line >= 0
        number = self._newer.find(line) if newer else self._older.find(-line - 1)
        return self._row(SegmentKey(newer, number)) if line >= self._first() else None

    def _drop_before(self, line: int) -> None:
        before = self._first()
        if line <= before:
            return
        older, newer = self._older, self._newer
        if line < 0:
            # The segment that the line is in stays.
            older.cut(older.find(-line - 1) + 1)
        else:
            older.cut(0)
            newer.drop(newer.find(line))
        self._gone += self._first() - before
