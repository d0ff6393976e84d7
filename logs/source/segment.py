"""A run of whole lines in one file: what readers give, and what the index keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..text.shown import Look

# A segment's lines all start within its first BLOCK bytes: what has to be read to find one of them.
BLOCK = 262_144


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
