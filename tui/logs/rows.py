"""Draws one log line as the rows of a screen: time, replica, bar, text."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rich import get_console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ...logs.lines.merge import LogLine
from ...logs.pattern.error_kinds import known_kinds
from ...logs.text.cells import char_width
from ...logs.text.sanitize import plain, sanitize
from ..ui.glyphs import Glyphs
from ..ui.palette import Palette
from .style import sgr_style

TimeMode = Literal["off", "clock", "milliseconds", "relative"]
TIME_MODES: tuple[TimeMode, ...] = ("off", "clock", "milliseconds", "relative")
_TIME_WIDTH = {"off": 0, "clock": 9, "milliseconds": 13, "relative": 11}

# Matches that are lit up in one line; a line of 64 kB may have as many as it has letters.
_MOST_MARKS = 1000


@dataclass(frozen=True)
class RowLayout:
    """What all rows of a view have in common.

    Attributes:
        width: the view's width, in cells.
        wrap: long lines go on in further rows; else they are cut.
        times: which time stands before each line.
        start: when the log started (seconds since the epoch), for relative times.
        numbers: the number shown for each of the log's replicas.
        number_width: cells of that number; 0 shows none.
        offset: cells of the text that are scrolled out at the left.
    """

    width: int
    wrap: bool = False
    times: TimeMode = "off"
    start: float | None = None
    numbers: tuple[int, ...] = (0,)
    number_width: int = 0
    offset: int = 0

    @property
    def gutter(self) -> int:
        """Cells before the text."""
        return 1 + _TIME_WIDTH[self.times] + self.number_width + 2

    @property
    def text_width(self) -> int:
        """Cells for the text of a row."""
        return max(1, self.width - self.gutter)


@dataclass(frozen=True)
class Marks:
    """What is lit up in the lines.

    Attributes:
        spans: returns where in a line's shown text: starts and ends, in order.
        current: the number of the line that the search stopped at, if any.
    """

    spans: Callable[[LogLine], list[tuple[int, int]]]
    current: int | None = None


class RowMaker:
    """Draws lines in one layout and one theme.

    Args:
        layout: widths and toggles.
        colors: the theme's palette.
        glyphs: the glyphs.
        base: the view's own style, with its background.
        marks: what to light up, None for nothing.
    """

    def __init__(
        self, layout: RowLayout, colors: Palette, glyphs: Glyphs, base: Style, marks: Marks | None = None
    ) -> None:
        self.layout = layout
        self._marks = marks
        self._match = Style.parse(colors.match_row)
        self._current_match = Style.parse(colors.accent_fill)
        self._signs = glyphs
        self._colors = colors
        self._log = base + Style.parse(colors.log)
        self._notable = base + Style.parse(colors.text)
        self._error_row = Style.parse(colors.error_row)
        self._faint = base + Style.parse(colors.faint)
        self._level = {
            "warning": Style.parse(colors.pending) + Style(bold=True),
            "error": Style.parse(colors.failed),
            "exception": Style.parse(colors.failed),
        }
        self._replicas = [base + Style.parse(colors.replica(number)) for number in layout.numbers]
        self.blank = Strip([Segment(" " * layout.width, base)], layout.width)

    def rows(self, line: LogLine) -> list[Strip]:
        """Return the rows of a line: one, or as many as it takes if lines wrap."""
        safe = sanitize(line.data, omitted=line.omitted)
        level = known_kinds().level_of(safe.text)
        base = self._faint if line.stream == "n" else self._notable if level else self._log
        over = self._error_row if level is not None and level.level == "error" else Style.null()
        text = Text(safe.text)
        text.stylize(base)
        for start, end, sgr in safe.spans:
            text.stylize(sgr_style(sgr, self._colors), start, end)
        if level is not None:
            text.stylize(self._level[level.level], level.start, level.end)
        if self._marks is not None:
            style = self._current_match if line.number == self._marks.current else self._match
            for start, end in self._marks.spans(line)[:_MOST_MARKS]:
                text.stylize(style, start, end)
        width = self.layout.text_width
        if self.layout.wrap:
            parts = [[*part.render(get_console())] for part in text.divide(_row_starts(safe.text, width))]
        else:
            parts = [self._cropped(text, width)]
        return [
            self._row([*self._gutter(line, first=number == 0), *part], base, over) for number, part in enumerate(parts)
        ]

    def message(self, sentence: str) -> Strip:
        """Return a row with a sentence in place of lines."""
        return self._row([Segment(f" {plain(sentence)}", self._faint)], self._log, Style.null())

    def _gutter(self, line: LogLine, *, first: bool) -> list[Segment]:
        layout = self.layout
        segments = [Segment(" ", self._log)]
        if layout.times != "off":
            shown = time_text(line.time, layout.times, layout.start) if first else ""
            segments.append(Segment(shown.ljust(_TIME_WIDTH[layout.times]), self._faint))
        own = 0 <= line.replica < len(self._replicas)
        style = self._replicas[line.replica] if own else self._faint
        if layout.number_width:
            shown = str(layout.numbers[line.replica]) if first and own else ""
            segments.append(Segment(shown.rjust(layout.number_width), style))
        bar = self._signs.bar_err if line.stream == "e" else self._signs.bar_out
        return [*segments, Segment(bar, style), Segment(" ", self._log)]

    def _cropped(self, text: Text, width: int) -> list[Segment]:
        """Cut one row out of the text; where it goes on at the right, a glyph says so."""
        offset, strip = self.layout.offset, Strip(text.render(get_console()))
        cut = strip.cell_length > offset + width
        cropped = strip.crop(offset, offset + width - cut)
        return [*cropped, Segment(self._signs.cut, self._faint)] if cut else [*cropped]

    def _row(self, segments: list[Segment], fill: Style, over: Style) -> Strip:
        width = self.layout.width
        strip = Strip(Segment.apply_style(segments, post_style=over)).extend_cell_length(width, fill + over)
        return strip.simplify().adjust_cell_length(width)


@lru_cache(maxsize=1024)
def _second_text(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def clock_text(at: float, *, milliseconds: bool = False) -> str:
    """Return the local time of day of ``at`` (seconds since the epoch)."""
    second, thousandths = divmod(round(at * 1000), 1000) if milliseconds else (int(at), 0)
    return _second_text(second) + (f".{thousandths:03d}" if milliseconds else "")


def time_text(at: float | None, times: TimeMode, start: float | None = None) -> str:
    """Return a line's time, all of a mode equally wide; empty where it is not known.

    Args:
        at: when the line came (seconds since the epoch).
        times: which time is wanted.
        start: when the log started, for relative times.
    """
    if at is None or times == "off":
        return ""
    if times != "relative":
        return clock_text(at, milliseconds=times == "milliseconds")
    return relative_text(at - start) if start is not None else ""


def relative_text(seconds: float) -> str:
    """Return a time after the start, such as ``  +1:02:03`` or ``+41d 02:03``: 10 cells."""
    glyph = "-" if seconds < 0 else "+"
    minutes, second = divmod(int(abs(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    if hours < 100:
        return f"{glyph}{hours}:{minute:02d}:{second:02d}".rjust(10)
    days, hour = divmod(hours, 24)
    return f"{glyph}{days}d {hour:02d}{f':{minute:02d}' if days < 100 else 'h'}".rjust(10)


def _row_starts(text: str, width: int) -> list[int]:
    """Return where the second and each further row of ``text`` starts; no wide character is parted."""
    if text.isascii():
        return [*range(width, len(text), width)]
    starts: list[int] = []
    used = 0
    for position, char in enumerate(text):
        cells = char_width(char)
        if used + cells > width and used:
            starts.append(position)
            used = 0
        used += cells
    return starts
