"""A run of whole lines in one file: readers produce them, the index stores them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

# A segment's lines all start within its first BLOCK bytes: that many bytes are read to find one of them.
BLOCK = 262_144


class SegmentKey(NamedTuple):
    """A segment's position in the index: on which side of line 0, and its number from there."""

    newer: bool
    number: int


@dataclass
class LogSegment:
    """A run of whole lines in one file, of one stream, written at one time.

    Attributes:
        file: the number of the file in the merged log.
        start: the offset of the first byte.
        end: the offset after the last byte; it grows while the last line has no line feed.
        lines: how many lines it has; an unfinished last one counts.
        time: when it was written (seconds since the epoch), None if not known.
        stream: ``o`` stdout, ``e`` stderr, ``c`` both, ``n`` a notice of ours.
        order: the time by which it is merged.
        key: where it is in the index, None while it is in none.
    """

    file: int
    start: int
    end: int
    lines: int
    time: float | None
    stream: str
    order: float = -math.inf
    key: SegmentKey | None = None
