"""Draws one log line as the rows of a screen: time, replica, bar, text."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ...logs.lines.merge import LogLine
from ...logs.pattern.error_kinds import known_kinds
from ...logs.text.cells import char_width
from ...logs.text.line_kinds import LevelWord
from ...logs.text.sanitize import SafeLine, plain, sanitize
from ..ui.glyphs import Glyphs
from ..ui.palette import Palette
from .style import SgrStyles

TimeMode = Literal["off", "clock", "milliseconds", "relative"]
TIME_MODES: tuple[TimeMode, ...] = ("off", "clock", "milliseconds", "relative")
_TIME_WIDTH = {"off": 0, "clock": 9, "milliseconds": 13, "relative": 11}

# Matches that are lit up in one line; a line of 64 kB may have as many as it has letters.
_MOST_MARKS = 1000

_Run = tuple[str, Style]


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
        self._sgr = SgrStyles(colors)
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
        text_style = self._faint if line.stream == "n" else self._notable if level else self._log
        over = self._error_row if level is not None and level.level == "error" else None
        runs = self._marked(self._runs(safe, level, text_style), line)
        width = self.layout.text_width
        if self.layout.wrap:
            parts = _slices(runs, _wrapped(safe.text, width))
        else:
            parts = [self._cropped(runs, safe.text, width)]
        return [
            self._row([*self._gutter(line, first=number == 0), *part], text_style, over)
            for number, part in enumerate(parts)
        ]

    def message(self, sentence: str) -> Strip:
        """Return a row with a sentence in place of lines."""
        return self._row([(f" {plain(sentence)}", self._faint)], self._log, None)

    def _gutter(self, line: LogLine, *, first: bool) -> list[_Run]:
        layout = self.layout
        runs: list[_Run] = [(" ", self._log)]
        if layout.times != "off":
            shown = time_text(line.time, layout.times, layout.start) if first else ""
            runs.append((shown.ljust(_TIME_WIDTH[layout.times]), self._faint))
        own = 0 <= line.replica < len(self._replicas)
        style = self._replicas[line.replica] if own else self._faint
        if layout.number_width:
            shown = str(layout.numbers[line.replica]) if first and own else ""
            runs.append((shown.rjust(layout.number_width), style))
        runs.append((self._signs.bar_err if line.stream == "e" else self._signs.bar_out, style))
        runs.append((" ", self._log))
        return runs

    def _runs(self, safe: SafeLine, level: LevelWord | None, base: Style) -> list[_Run]:
        """Part the text by style."""
        runs: list[_Run] = []
        position = 0
        for start, end, sgr in safe.spans:
            runs.append((safe.text[position:start], base))
            runs.append((safe.text[start:end], base + self._sgr.style(sgr)))
            position = end
        runs.append((safe.text[position:], base))
        if level is None:
            return runs
        style = self._level[level.level]
        word = [(text, run_style + style) for text, run_style in _slice(runs, level.start, level.end)]
        return [*_slice(runs, 0, level.start), *word, *_slice(runs, level.end, len(safe.text))]

    def _marked(self, runs: list[_Run], line: LogLine) -> list[_Run]:
        """Light up what is searched for; the line that the search stopped at more than the others."""
        if self._marks is None:
            return runs
        style = self._current_match if line.number == self._marks.current else self._match
        edges = [0]
        for start, end in self._marks.spans(line)[:_MOST_MARKS]:
            if start == edges[-1] and len(edges) > 1:
                edges[-1] = end
            else:
                edges += (start, end)
        edges.append(sum(len(text) for text, _ in runs))
        marked: list[_Run] = []
        for number, part in enumerate(_slices(runs, list(pairwise(edges)))):
            marked += [(text, run_style + style) for text, run_style in part] if number % 2 else part
        return marked

    def _cropped(self, runs: list[_Run], text: str, width: int) -> list[_Run]:
        """Cut one row out of the text; where it goes on at the right, a glyph says so."""
        offset = self.layout.offset
        length = cell_len(text)
        if offset == 0 and length <= width:
            return runs
        strip = Strip([Segment(part, style) for part, style in runs if part], length)
        cut = length > offset + width
        cropped = strip.crop(offset, offset + width - cut)
        parts = [(segment.text, segment.style or self._log) for segment in cropped]
        return [*parts, (self._signs.cut, self._faint)] if cut else parts

    def _row(self, runs: list[_Run], fill: Style, over: Style | None) -> Strip:
        width = self.layout.width
        used = sum(cell_len(text) for text, _ in runs)
        if used < width:
            runs = [*runs, (" " * (width - used), fill)]
        strip = Strip([Segment(text, style + over if over else style) for text, style in runs if text])
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


def _slice(runs: list[_Run], start: int, end: int) -> list[_Run]:
    """Return the runs of ``text[start:end]``."""
    return _slices(runs, [(start, end)])[0]


def _slices(runs: list[_Run], ranges: list[tuple[int, int]]) -> list[list[_Run]]:
    """Return the runs of each ``text[start:end]``; the ranges are in order and do not overlap.

    One pass: a line may have thousands of runs, and of ranges.
    """
    slices: list[list[_Run]] = []
    index = position = 0
    for start, end in ranges:
        found: list[_Run] = []
        while index < len(runs):
            text, style = runs[index]
            stop = position + len(text)
            low, high = max(start, position), min(end, stop)
            if low < high:
                found.append((text[low - position : high - position], style))
            if stop > end:
                break
            position = stop
            index += 1
        slices.append(found)
    return slices


def _wrapped(text: str, width: int) -> list[tuple[int, int]]:
    """Return where each row of ``text`` starts and ends; no wide character is parted."""
    if text.isascii():
        return [(start, start + width) for start in range(0, max(1, len(text)), width)]
    rows: list[tuple[int, int]] = []
    start = used = 0
    for position, char in enumerate(text):
        cells = char_width(char)
        if used + cells > width and position > start:
            rows.append((start, position))
            start, used = position, 0
        used += cells
    rows.append((start, len(text)))
    return rows
