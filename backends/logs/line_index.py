"""A sparse index of lines: where runs of lines are kept, and how many lines each has.

Lines are numbered from the moment the log was opened: 0 is the first line that came since, -1 the last one that was
there. So the last page is known at once, older lines get their (negative) numbers as they are counted in the
background, and no number ever changes. A segment costs 38 bytes whatever number of lines it has.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .shown import Look

# A segment's lines all start within its first BLOCK bytes: what has to be read to find one of them.
BLOCK = 262_144
_LOOKS = tuple(Look)


class Place(NamedTuple):
    """Where a segment stands in the index."""

    newer: bool
    number: int


@dataclass
class Segment:
    """A run of whole lines in one file, of one stream, that came at one time.

    Attributes:
        file: the number of the file, as its reader counts them.
        start: the offset of the first byte.
        end: the offset after the last byte; it grows while the last line has no line feed.
        lines: how many lines it has; an unfinished last one counts.
        time: when it came (seconds since the epoch), None where nobody noted it.
        stream: ``o`` stdout, ``e`` stderr, ``c`` both, ``n`` a notice of ours.
        order: the time to merge it by.
        look: what is known of how its lines are shown.
        place: where it is in the index, None while it is in none.
    """

    file: int
    start: int
    end: int
    lines: int
    time: float | None
    stream: str
    order: float = -math.inf
    look: Look = Look.EDITED
    place: Place | None = None


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


class _Column:
    """Segments in the order they were added, in arrays."""

    def __init__(self) -> None:
        self._file = array("I")
        self._start = array("Q")
        self._end = array("Q")
        self._through = array("Q")
        self._time = array("d")
        self._stream = bytearray()
        self._look = bytearray()
        self.lines = 0

    def __len__(self) -> int:
        return len(self._file)

    def add(self, segment: Segment) -> int:
        """Add a segment; return its number."""
        self.lines += segment.lines
        self._file.append(segment.file)
        self._start.append(segment.start)
        self._end.append(segment.end)
        self._through.append(self.lines)
        self._time.append(math.nan if segment.time is None else segment.time)
        self._stream.append(ord(segment.stream))
        self._look.append(segment.look)
        return len(self._file) - 1

    def grow(self, number: int, end: int, look: Look) -> None:
        self._end[number] = end
        self._look[number] = look

    def learn(self, number: int, end: int, look: Look) -> None:
        if self._end[number] == end:
            self._look[number] = look

    def before(self, number: int) -> int:
        """Return how many lines the segments before the ``number``-th one have."""
        return self._through[number - 1] if number else 0

    def row(self, number: int) -> Row:
        lines = self._through[number] - self.before(number)
        return Row(self._file[number], self._start[number], self._end[number], lines, _LOOKS[self._look[number]])

    def find(self, line: int) -> tuple[int, int, int]:
        """Return the number of the segment with the ``line``-th line, that line's place in it, and its lines."""
        number = bisect_right(self._through, line)
        before = self._through[number - 1] if number else 0
        return number, line - before, self._through[number] - before

    def piece(self, number: int, skip: int, take: int) -> Piece:
        time = self._time[number]
        return Piece(
            self._file[number],
            self._start[number],
            self._end[number],
            skip,
            take,
            None if math.isnan(time) else time,
            chr(self._stream[number]),
        )


class LineIndex:
    """All segments of a log, in the order they are shown; written by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._older = _Column()
        self._newer = _Column()

    def bounds(self) -> tuple[int, int]:
        """Return the number of the first known line and the number after the last one."""
        with self._lock:
            return -self._older.lines, self._newer.lines

    def prepend(self, segments: Iterable[Segment]) -> None:
        """Add segments before all others, the latest first."""
        with self._lock:
            for segment in segments:
                segment.place = Place(False, self._older.add(segment))

    def append(self, segments: Iterable[Segment]) -> None:
        """Add segments after all others."""
        with self._lock:
            for segment in segments:
                segment.place = Place(True, self._newer.add(segment))

    def grow(self, segment: Segment) -> None:
        """Take over the end of a segment whose last line went on."""
        if segment.place is not None:
            with self._lock:
                column = self._newer if segment.place.newer else self._older
                column.grow(segment.place.number, segment.end, segment.look)

    def sizes(self) -> tuple[int, int]:
        """Return how many segments there are before the line 0, and from it on."""
        with self._lock:
            return len(self._older), len(self._newer)

    def rows(self, newer: bool, first: int, count: int) -> list[Row]:
        """Return segments of one side of line 0, by their distance from it."""
        with self._lock:
            column = self._newer if newer else self._older
            return [column.row(number) for number in range(first, min(first + count, len(column)))]

    def learn(self, place: Place, end: int, look: Look) -> None:
        """Remember how the lines of a segment are shown that ended at ``end`` when they were looked at."""
        with self._lock:
            (self._newer if place.newer else self._older).learn(place.number, end, look)

    def first_line(self, place: Place) -> int:
        """Return the number of the first line of a segment."""
        with self._lock:
            if place.newer:
                return self._newer.before(place.number)
            return -self._older.before(place.number + 1)

    def place(self, line: int) -> tuple[Place, int]:
        """Return the segment of a known line, and which of its lines it is."""
        with self._lock:
            if line < 0:
                number, from_last, lines = self._older.find(-line - 1)
                return Place(False, number), lines - 1 - from_last
            number, skip, _ = self._newer.find(line)
            return Place(True, number), skip

    def pieces(self, first: int, count: int) -> list[Piece]:
        """Return where the lines ``first`` to ``first + count`` are; lines that are not known are left out."""
        found: list[Piece] = []
        with self._lock:
            line, stop = max(first, -self._older.lines), min(first + count, self._newer.lines)
            while line < stop:
                if line < 0:
                    number, from_last, lines = self._older.find(-line - 1)
                    column, skip = self._older, lines - 1 - from_last
                else:
                    number, skip, lines = self._newer.find(line)
                    column = self._newer
                take = min(lines - skip, stop - line)
                found.append(column.piece(number, skip, take))
                line += take
        return found
