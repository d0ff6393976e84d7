"""The last gate before the terminal: no control character of any text passes it."""

from __future__ import annotations

import re

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

# C0, DEL, C1, and what turns the direction of text. All are without width, so that lines keep theirs.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class ControlFilter(LineFilter):
    """Drops control characters from what is drawn.

    Text that is not ours is made safe where it enters a screen, by `backends.logs.sanitize`; this catches what a
    widget draws by itself, such as the text of an input field, and what was forgotten.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without control characters."""
        del background
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [
            segment if segment.text.isprintable() else Segment(_CONTROL.sub("", segment.text), segment.style)
            for segment in segments
        ]
