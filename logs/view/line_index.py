"""A sparse index of lines: where runs of lines are kept, and how many lines each has.

Lines are numbered from the moment the log was opened: 0 is the first line that came since, -1 the last one that was
there. So the last page is known at once, older lines get their (negative) numbers as they are counted in the
background, and no number ever changes. A row costs 38 bytes whatever number of lines it has; segments that follow
each other closely share one.

The oldest segments can be dropped. What is left keeps its numbers, of lines and of segments.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from ..source.segment import BLOCK, Place, Segment
from ..text.shown import Look
from .index_column import Column


class Piece(NamedTuple):
    """Lines to read: of the segment ``start`` to ``end`` of a file, ``take`` lines after the first ``skip``."""

    file: int
    start: int
    end: int
    skip: int
    take: int
    time: float | None
    stream: str


class Row(NamedTuple):
    """A segment as the index keeps it: where it is, how many lines it has, how they are shown."""

    file: int
    start: int
    end: int
    lines: int
    look: Look


class LineIndex:
    """All segments of a log, in the order they are shown; written by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._older = Column()
        self._newer = Column()
        self._last_of: dict[int, Place] = {}
        self._gone = 0

    def bounds(self) -> tuple[int, int]:
        """Return the number of the first known line and the number after the last one."""
        with self._lock:
            return self._first(), self._newer.lines

    @property
    def gone(self) -> int:
        """How many lines were dropped."""
        return self._gone

    def prepend(self, segments: Iterable[Segment]) -> None:
        """Add segments before all others, the latest first."""
        with self._lock:
            column = self._older
            # Rows that are there already may have been counted, and only the very last one may change.
            start = column.end
            for segment in segments:
                joined = column.end > start and column.precede(segment, BLOCK)
                segment.place = Place(False, column.end - 1 if joined else column.add(segment))
                if not joined:
                    self._last_of.setdefault(segment.file, segment.place)

    def append(self, segments: Iterable[Segment]) -> None:
        """Add segments after all others."""
        with self._lock:
            column = self._newer
            for segment in segments:
                joined = column.end > column.first and column.follow(segment, BLOCK)
                segment.place = Place(True, column.end - 1 if joined else column.add(segment))
                if not joined:
                    self._last_of[segment.file] = segment.place

    def grow(self, segment: Segment) -> None:
        """Take over the end of a segment whose last line went on."""
        with self._lock:
            column = self._column_of(segment.place)
            if column is not None and segment.place is not None:
                column.grow(segment.place.number, segment.end, segment.look)

    def drop_before(self, line: int) -> None:
        """Drop the segments whose lines all come before ``line``; nothing may be prepended any more."""
        with self._lock:
            self._drop_before(min(line, self._newer.lines))

    def drop_file(self, file: int) -> bool:
        """Drop everything up to the last known line of a file.

        Returns:
            whether any line of that file was known.
        """
        with self._lock:
            place = self._last_of.pop(file, None)
            if place is None:
                return False
            if place.newer:
                self._drop_before(self._newer.before(place.number + 1))
            elif place.number < self._older.end:
                self._drop_before(-self._older.before(place.number))
            return True

    def sizes(self) -> tuple[int, int]:
        """Return the numbers after the last segment before line 0, and after the last one from it on."""
        with self._lock:
            return self._older.end, self._newer.end

    @property
    def first_newer(self) -> int:
        """The number of the first segment from line 0 on that was not dropped."""
        return self._newer.first

    def rows(self, newer: bool, first: int, count: int) -> list[Row]:
        """Return segments of one side of line 0, by their distance from it; none if the first one was dropped."""
        with self._lock:
            column = self._newer if newer else self._older
            stop = min(first + count, column.end) if first >= column.first else first
            return [self._row(column, number) for number in range(first, stop)]

    def row(self, place: Place) -> Row | None:
        """Return a segment, None if it was dropped."""
        with self._lock:
            column = self._column_of(place)
            return None if column is None else self._row(column, place.number)

    def learn(self, place: Place, end: int, look: Look) -> None:
        """Remember how the lines of a segment are shown that ended at ``end`` when they were looked at."""
        with self._lock:
            column = self._column_of(place)
            if column is not None:
                column.learn(place.number, end, look)

    def first_line(self, place: Place) -> int | None:
        """Return the number of the first line of a segment, None if it was dropped."""
        with self._lock:
            column = self._column_of(place)
            if column is None:
                return None
            return column.before(place.number) if place.newer else -column.before(place.number + 1)

    def place(self, line: int) -> tuple[Place, int] | None:
        """Return the segment of a line, and which of its lines it is; None if the line is not known."""
        with self._lock:
            if not self._first() <= line < self._newer.lines:
                return None
            if line < 0:
                number, from_last, lines = self._older.find(-line - 1)
                return Place(False, number), lines - 1 - from_last
            number, skip, _ = self._newer.find(line)
            return Place(True, number), skip

    def line_at(self, time: float) -> int | None:
        """Return the number of the first line that came at ``time`` (s since the epoch) or later.

        Returns:
            the number after the last line where all came before; None where no line has a time.
        """
        with self._lock:
            older = self._older.first_at(time, backwards=True)
            if older is not None:
                return -self._older.before(older + 1)
            newer = self._newer.first_at(time)
            if newer is not None:
                return self._newer.before(newer)
            return self._newer.lines if self._older.has_times or self._newer.has_times else None

    def pieces(self, first: int, count: int) -> tuple[int, list[Piece]]:
        """Return where the lines ``first`` to ``first + count`` are, without those that are not known.

        Returns:
            the number of the first one that is known, and the pieces.
        """
        found: list[Piece] = []
        with self._lock:
            stop = min(first + count, self._newer.lines)
            first = line = max(first, self._first())
            while line < stop:
                if line < 0:
                    number, from_last, lines = self._older.find(-line - 1)
                    column, skip = self._older, lines - 1 - from_last
                else:
                    number, skip, lines = self._newer.find(line)
                    column = self._newer
                take = min(lines - skip, stop - line)
                file, start, end, _, _ = column.row(number)
                found.append(Piece(file, start, end, skip, take, *column.origin(number)))
                line += take
        return first, found

    def _first(self) -> int:
        return -self._older.lines or self._newer.before(self._newer.first)

    def _column_of(self, place: Place | None) -> Column | None:
        """Return the column that has a segment, None if it was dropped or never added."""
        if place is None:
            return None
        column = self._newer if place.newer else self._older
        return column if column.first <= place.number < column.end else None

    @staticmethod
    def _row(column: Column, number: int) -> Row:
        return Row(*column.row(number))

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
