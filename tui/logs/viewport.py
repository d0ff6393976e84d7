"""Which rows of a log a view shows: the position of its first row, and moving it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from textual.strip import Strip

from ...logs.lines.merge import LogLine
from .session import AnyLog


class Position(NamedTuple):
    """A row of a line: the line's number, and which of its rows."""

    line: int
    row: int


class Viewport:
    """The rows of a log from ``top`` on.

    Args:
        log: the log.
        rows_of: draws a line as one or more rows.
        height: how many rows are visible.
        wrap: whether a line may be drawn as more than one row.
    """

    def __init__(self, log: AnyLog, rows_of: Callable[[LogLine], list[Strip]], height: int, *, wrap: bool) -> None:
        self.height = height
        self._wrap = wrap
        self.top = Position(0, 0)
        self._log = log
        self._rows_of = rows_of
        self.drawn: dict[int, tuple[LogLine, list[Strip]]] = {}

    def set_maker(self, rows_of: Callable[[LogLine], list[Strip]], wrap: bool) -> None:
        """Draw lines in another way from now on."""
        self._rows_of = rows_of
        self._wrap = wrap
        self.drawn.clear()
        self.top = Position(self.top.line, 0)

    def visible(self) -> Iterator[tuple[LogLine, Strip]]:
        """Yield the rows on screen, each with its line; fewer than the height at the log's end."""
        self.top = Position(max(self.top.line, self._log.bounds().first), self.top.row)
        left = self.height
        kept: dict[int, tuple[LogLine, list[Strip]]] = {}
        skip = self.top.row
        for line in self._log.lines(self.top.line, self.height):
            rows = self._rows(line)
            kept[line.number] = (line, rows)
            for row in rows[skip : skip + left]:
                yield line, row
            left -= len(rows) - skip
            skip = 0
            if left <= 0:
                break
        self.drawn = kept

    def to_start(self) -> None:
        """Go to the first known row."""
        self.top = Position(self._log.bounds().first, 0)

    def to_end(self) -> None:
        """Go to where the last row is at the bottom."""
        self.top = self._last_top()

    def clamped(self, position: Position) -> Position:
        """Return the position, or the nearest one that has a full screen after it."""
        bounds = self._log.bounds()
        # Each line has a row at least, so that a place further up needs no look at the last lines.
        if position.line >= bounds.end - self.height:
            position = min(position, self._last_top())
        return max(Position(bounds.first, 0), position)

    def show(self, line: int) -> None:
        """Move no further than it takes to have a line on screen."""
        if line <= self.top.line:
            self.top = self.clamped(Position(line, 0))
            return
        rows = 0
        for found in reversed(self._log.lines(line - self.height + 1, self.height)):
            rows += len(self._rows(found))
            if rows >= self.height:
                self.top = max(self.top, Position(found.number, rows - self.height))
                return

    def move(self, rows: int) -> None:
        """Move by rows: down, or up by a negative number."""
        line, row = self.top
        if not self._wrap:
            line += rows
        elif rows >= 0:
            row += rows
            for found in self._log.lines(line, rows + 1):
                count = len(self._rows(found))
                if row < count:
                    break
                row -= count
                line += 1
            else:
                row = 0
        else:
            row += rows
            for found in reversed(self._log.lines(line + rows, -rows)) if row < 0 else ():
                line -= 1
                row += len(self._rows(found))
                if row >= 0:
                    break
            row = max(0, row)
        self.top = self.clamped(Position(line, row))

    def _last_top(self) -> Position:
        bounds = self._log.bounds()
        if not self._wrap:
            return Position(max(bounds.first, bounds.end - self.height), 0)
        left = self.height
        for line in reversed(self._log.lines(bounds.end - self.height, self.height)):
            count = len(self._rows(line))
            if count >= left:
                return Position(line.number, count - left)
            left -= count
        return Position(bounds.first, 0)

    def _rows(self, line: LogLine) -> list[Strip]:
        known = self.drawn.get(line.number)
        if known is not None and known[0] == line:
            return known[1]
        rows = self._rows_of(line)
        self.drawn[line.number] = (line, rows)
        return rows
