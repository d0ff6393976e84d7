"""Lines that are selected in a log, by their numbers: they stay what they are whatever comes or scrolls away."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
