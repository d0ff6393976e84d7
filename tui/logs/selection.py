"""Lines that are selected in a log, by their numbers: they stay what they are whatever comes or scrolls away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from textual.timer import Timer

from ...logs.lines.merge import Bounds


@dataclass
class LogSelection:
    """The lines between where a selection was begun and its cursor.

    Attributes:
        anchor: the number of the line that it was begun at.
        cursor: the number of the line that it goes to, one of the selected lines as well; minus infinity is the log's
            first line, also while older ones become known.
    """

    anchor: int
    cursor: float

    def move(self, lines: float, bounds: Bounds) -> None:
        """Let it go so many lines further down, or up by a negative number; as far as there are lines."""
        if lines == -math.inf:
            self.cursor = lines
        else:
            self.go_to(max(self.cursor, bounds.first) + lines, bounds)

    def go_to(self, number: float, bounds: Bounds) -> None:
        """Let it go to a line, or to the nearest known one."""
        self.cursor = min(max(number, bounds.first), max(bounds.first, bounds.end - 1))

    def numbers(self, bounds: Bounds) -> range:
        """Return the numbers of the selected lines that are known."""
        first, last = sorted((self.anchor, self.cursor))
        return range(int(max(first, bounds.first)), int(min(last + 1, bounds.end)))


# Seconds between two rows while the pointer is held beyond an edge.
_SCROLL_EVERY = 0.05


class LineDrag:
    """A drag from a line to wherever the pointer is.

    Args:
        drag_to: called with the number of the line it began at and the pointer's row; again and again beyond an edge.
    """

    def __init__(self, drag_to: Callable[[int, int], object]) -> None:
        self.anchor: int | None = None
        """The number of the line that it began at, None while nothing is dragged."""
        self._drag_to = drag_to
        self._y = 0
        self._timer: Timer | None = None

    def begin(self, anchor: int) -> None:
        """The button went down on a line."""
        self.end()
        self.anchor = anchor

    def move(self, y: int, height: int, set_interval: Callable[[float, Callable[[], None]], Timer]) -> None:
        """The pointer is at a row now.

        Args:
            y: the row; beyond an edge it is negative, or the height or more.
            height: rows on screen.
            set_interval: starts a timer, for a pointer that rests beyond an edge.
        """
        self._y = y
        self._again()
        if not 0 <= y < height and self._timer is None:
            self._timer = set_interval(_SCROLL_EVERY, self._again)
        elif 0 <= y < height:
            self._stop()

    def end(self) -> None:
        """The button is up."""
        self.anchor = None
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _again(self) -> None:
        if self.anchor is not None:
            self._drag_to(self.anchor, self._y)
