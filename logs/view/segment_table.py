"""The rows of a line index: the data of each segment, in arrays that can be released a part at a time."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from typing import Protocol

from ..text.shown import Rendering

# Rows that are released together, and that a search for a time examines one by one.
_ROWS_PER_PART = 4096
_RENDERINGS = tuple(Rendering)
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
    rendering: Rendering


class _RowPart:
    """Up to ``_ROWS_PER_PART`` rows; ``through`` is the number of lines up to the end of each row."""

    __slots__ = ("end", "file", "latest", "rendering", "start", "stream", "through", "time")

    def __init__(self) -> None:
        self.file = array("I")
        self.start = array("Q")
        self.end = array("Q")
        self.through = array("Q")
        self.time = array("d")
        self.stream = bytearray()
        self.rendering = bytearray()
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
        part.rendering.append(segment.rendering)
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
        part.rendering[-1] = min(part.rendering[-1], segment.rendering)

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

    def grow(self, number: int, end: int, rendering: Rendering) -> None:
        """Change the end of a row."""
        part, at = self._part(number)
        part.end[at] = end
        if number == self.end - 1:
            self._last_end = end
        # Other lines of the row may be edited.
        part.rendering[at] = min(part.rendering[at], rendering)

    def note_rendering(self, number: int, end: int, rendering: Rendering) -> None:
        """Record the rendering of a row, if its end is still ``end``."""
        part, at = self._part(number)
        if part.end[at] == end:
            part.rendering[at] = rendering

    def before(self, number: int) -> int:
        """Count the lines of the segments before the ``number``-th one."""
        if number <= self.first:
            return self._lines_dropped
        part, at = self._part(number - 1)
        return part.through[at]

    def row(self, number: int) -> tuple[int, int, int, int, Rendering]:
        """Return file, start, end, number of lines and rendering of a row."""
        part, at = self._part(number)
        lines = part.through[at] - self.before(number)
        return part.file[at], part.start[at], part.end[at], lines, _RENDERINGS[part.rendering[at]]

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
