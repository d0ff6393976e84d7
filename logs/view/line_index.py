"""A sparse index of lines: where segments of lines are stored, and how many lines each has.

Lines are numbered from the moment the log was opened: 0 is the first line that came after, -1 the last one before. So
the last page is known at once, older lines get their (negative) numbers as they are counted in the background, and no
number ever changes. A row costs 38 bytes whatever number of lines it has; segments that follow each other closely
share one.

The oldest segments can be dropped. The numbers of the others, and of their lines, do not change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from ..source.segment import BLOCK, LogSegment, SegmentKey
from ..text.shown import Rendering
from .segment_table import SegmentTable


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
    """A segment in the index: where it is, how many lines it has, how they are shown."""

    file: int
    start: int
    end: int
    lines: int
    rendering: Rendering


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
                table.grow(segment.key.number, segment.end, segment.rendering)

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

    def rows(self, newer: bool, first: int, count: int) -> list[IndexRow]:
        """Return segments of one side of line 0, by their distance from it; none if the first one was dropped."""
        with self._lock:
            table = self._newer if newer else self._older
            stop = min(first + count, table.end) if first >= table.first else first
            return [self._row(table, number) for number in range(first, stop)]

    def row(self, key: SegmentKey) -> IndexRow | None:
        """Return a segment, None if it was dropped."""
        with self._lock:
            table = self._table_of(key)
            return None if table is None else self._row(table, key.number)

    def note_rendering(self, key: SegmentKey, end: int, rendering: Rendering) -> None:
        """Record how the lines of a segment are shown, which ended at ``end`` when they were examined."""
        with self._lock:
            table = self._table_of(key)
            if table is not None:
                table.note_rendering(key.number, end, rendering)

    def first_line(self, key: SegmentKey) -> int | None:
        """Return the number of the first line of a segment, None if it was dropped."""
        with self._lock:
            table = self._table_of(key)
            if table is None:
                return None
            return table.before(key.number) if key.newer else -table.before(key.number + 1)

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

    @staticmethod
    def _row(table: SegmentTable, number: int) -> IndexRow:
        return IndexRow(*table.row(number))

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
