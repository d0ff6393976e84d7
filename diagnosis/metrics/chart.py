"""Series as rows of text: a canvas of braille, two by four dots a cell, or of ASCII.

Rows are lists of spans, each with a role instead of a colour: a screen or a shell gives these its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from .scale import Scale, fit_scale, x_axis, x_label
from .series import Series, Smoothing, bounded

_ROUNDING = 1e-9
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_LABEL_WIDTH = 5
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# A logarithmic axis suits positive values whose largest is more than this many times the least.
_LOG_FROM = 100.0


class Role(Enum):
    """What a span of a chart is."""

    BLANK = "blank"
    AXIS = "axis"
    RAW = "raw"
    SMOOTH = "smooth"
    GAP = "gap"
    CURVE = "curve"


class Span(NamedTuple):
    """Cells of one role.

    Attributes:
        text: the cells.
        role: what they are.
        curve: the number of the curve, where several are drawn.
    """

    text: str
    role: Role
    curve: int = 0


@dataclass(frozen=True)
class Options:
    """How a chart is drawn.

    Attributes:
        smoothing: how much the curves are smoothed; raw values are drawn behind a smoothed one.
        log: a logarithmic axis.
        by_time: the time since the first point instead of the step.
        ascii: without braille and box-drawing signs.
        window: the part of the x axis that is drawn; all of it if None.
        cursor: the position of a cursor on the x axis; None for none.
    """

    smoothing: Smoothing = Smoothing.LIGHT
    log: bool = False
    by_time: bool = False
    ascii: bool = False
    window: tuple[float, float] | None = None
    cursor: float | None = None


@dataclass
class _Column:
    """The buckets in one column of dots."""

    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    count: int = 0
    gaps: float = 0.0

    @property
    def smooth(self) -> float:
        return self.total / self.count


@dataclass(slots=True)
class _Cell:
    role: Role = Role.BLANK
    curve: int = 0
    dots: int = 0
    text: str = ""


class _Canvas:
    """The cells of a plot; what is drawn later replaces what is in a cell."""

    def __init__(self, width: int, height: int, scale: Scale, options: Options) -> None:
        self.width, self.height = width, height
        self.scale, self.options = scale, options
        self.rows = [[_Cell() for _ in range(width)] for _ in range(height)]

    def row_of(self, value: float) -> int:
        """Return the row of dots of a value, from the top."""
        # The offset keeps a constant value between two rows in one of them.
        return round((1.0 - self.scale.place(value)) * (self.height * 4 - 1) + 1e-6)

    def run(self, column: int, first: int, last: int, role: Role, curve: int = 0) -> None:
        """Draw dots of a column from one row of dots to another."""
        for row in range(min(first, last), max(first, last) + 1):
            cell = self.rows[row // 4][column // 2]
            if cell.role is not role or cell.curve != curve:
                cell.role, cell.curve, cell.dots = role, curve, 0
            cell.dots |= _DOTS[row % 4][column % 2]

    def write(self, row: int, column: int, text: str, role: Role, curve: int = 0, *, over: bool = True) -> None:
        """Write text from a cell on, over what is there or on blank cells only."""
        for at, char in enumerate(text, column):
            if 0 <= at < self.width and (over or self.rows[row][at].role is Role.BLANK):
                self.rows[row][at] = _Cell(role, curve, 0, char)

    def draw_ranges(self, columns: Sequence[_Column], role: Role) -> None:
        """Draw the range of the values in each column."""
        for at, column in enumerate(columns):
            if column.count:
                self.run(at, self.row_of(column.high), self.row_of(column.low), role)

    def draw_line(self, columns: Sequence[_Column], curve: int, role: Role) -> None:
        """Draw the smoothed values, each joined with the one before; nan and infinite values break the line."""
        before: tuple[int, int] | None = None
        for at, column in enumerate(columns):
            if column.gaps:
                before = None
            if not column.count:
                continue
            row = self.row_of(column.smooth)
            start, height = before or (at - 1, row)
            last = height
            for step in range(start + 1, at + 1):
                end = round(height + (row - height) * (step - start) / (at - start))
                self.run(step, last + (end > last) - (end < last), end, role, curve)
                last = end
            before = None if column.gaps else (at, row)

    def draw_letters(self, columns: Sequence[_Column], curve: int) -> None:
        """Write a curve's letter twice on its line and at its end."""
        known = [at for at, column in enumerate(columns) if column.count]
        last = len(known) - 1
        # Lines that run together have their letters side by side.
        aside = 6 * curve
        for place in {last // 3 + aside, last * 2 // 3 + aside, last}:
            if 0 <= place <= last:
                column = columns[known[place]]
                row = self.row_of(column.smooth)
                self.write(row // 4, known[place] // 2, _letter(curve), Role.CURVE, curve)

    def draw_gaps(self, columns: Sequence[_Column], gaps: int) -> None:
        """Mark nan and infinite values in the lowest row, with their number."""
        marked = sorted({at // 2 for at, column in enumerate(columns) if column.gaps})
        if not marked:
            return
        for cell in marked:
            self.write(-1, cell, "x" if self.options.ascii else "━", Role.GAP)
        text = f" NaN, {gaps:,} point{'' if gaps == 1 else 's'}"
        start = marked[-1] + 1 if marked[-1] + 1 + len(text) <= self.width else marked[0] - len(text) - 1
        if start >= 0:
            self.write(-1, start, text, Role.GAP)

    def draw_cursor(self, cursor: float, part: float) -> None:
        """Draw the cursor on blank cells, with its position in the first row."""
        column = round(part * (self.width - 1))
        for row in range(self.height):
            self.write(row, column, ":" if self.options.ascii else "┊", Role.AXIS, over=False)
        label = x_label(cursor, self.options.by_time)
        text = f" at {label}" if self.options.by_time else f" at step {label}"
        start = column + 1 if column + 1 + len(text) <= self.width else column - len(text)
        self.write(0, start, text, Role.AXIS, over=False)

    def spans(self, row: int) -> list[Span]:
        runs = groupby(self.rows[row], key=lambda cell: (cell.role, cell.curve))
        return [Span("".join(map(self._char, cells)), role, curve) for (role, curve), cells in runs]

    def _char(self, cell: _Cell) -> str:
        if cell.text or not cell.dots:
            return cell.text or " "
        if not self.options.ascii:
            return chr(_BRAILLE + cell.dots)
        return _letter(cell.curve) if cell.role is Role.CURVE else "." if cell.role is Role.RAW else "*"


def _letter(curve: int) -> str:
    return LETTERS[curve % len(LETTERS)]


def wants_log(series: Series) -> bool:
    """Return whether a logarithmic axis suits a series: all positive, and over more than two decades."""
    return series.best_low > 0 and series.best_high / series.best_low > _LOG_FROM


def draw_chart(
    series: Sequence[Series],
    width: int,
    height: int,
    options: Options | None = None,
    letters: Sequence[int] | None = None,
) -> list[list[Span]]:
    """Draw one series with its raw values behind the smoothed ones, or several with letters and without raw values.

    Args:
        series: of several, the last one is on top.
        width: cells of the whole chart.
        height: rows of the whole chart, with the x axis.
        options: how to draw it.
        letters: the number of each series' letter; in their order if None.

    Returns:
        the rows, each of which has ``width`` cells.
    """
    options = options or Options()
    rows = max(1, height - 1)
    low, high = map(bounded, options.window or x_limits(series, options))
    is_single = len(series) == 1
    is_smoothed = is_single and options.smoothing.of(series[0]) is not Smoothing.NONE
    label_width = _LABEL_WIDTH
    while True:
        columns = max(1, width - label_width - 1)
        binned = [_binned(metric, low, high, 2 * columns, options) for metric in series]
        filled = [column for curve in binned for column in curve if column.count]
        raw = [value for column in filled for value in (column.low, column.high)] if is_single else []
        smooth = [column.smooth for column in filled] if is_smoothed or not is_single else []
        scale = fit_scale(raw, smooth, rows, log=options.log)
        needed = max(map(len, scale.labels.values()))
        if needed <= label_width:
            break
        label_width = needed
    canvas = _Canvas(columns, rows, scale, options)
    if is_single:
        canvas.draw_ranges(binned[0], Role.RAW if is_smoothed else Role.SMOOTH)
        canvas.draw_line(binned[0], 0, Role.SMOOTH)
    else:
        curves = list(zip(binned, letters or range(len(binned)), strict=True))
        for curve in curves:
            canvas.draw_line(*curve, Role.CURVE)
        for curve in curves:
            canvas.draw_letters(*curve)
    if options.cursor is not None and low <= options.cursor <= high:
        canvas.draw_cursor(options.cursor, (options.cursor - low) / (high - low or 1.0))
    if is_single:
        canvas.draw_gaps(binned[0], series[0].gaps)
    line, tick, corner, rule = "|++-" if options.ascii else "│┤└─"
    drawn = []
    for row in range(rows):
        label = scale.labels.get(row, "")
        drawn.append([Span(f"{label:>{label_width}}{tick if label else line}", Role.AXIS), *canvas.spans(row)])
    axis = x_axis(low, high, canvas.width, is_time=options.by_time, corner=corner, rule=rule)
    return [*drawn, [Span(" " * label_width + axis, Role.AXIS)]]


def x_limits(series: Sequence[Series], options: Options) -> tuple[float, float]:
    """Return the least and the greatest x of series: steps, or seconds since the first point."""
    xs = [x for metric in series for x in x_values(metric, options) if math.isfinite(x)]
    return (min(xs), max(xs)) if xs else (0.0, 1.0)


def x_values(series: Series, options: Options) -> Sequence[float]:
    """Return the x of each bucket: its step, or the seconds since the first one."""
    if not options.by_time:
        return series.steps()
    times = series.times()
    start = next((time for time in times if math.isfinite(time)), math.nan)
    return [bounded(time - start) for time in times]


def _binned(series: Series, low: float, high: float, count: int, options: Options) -> list[_Column]:
    """Return the points in a part of the x axis by columns of dots."""
    columns = [_Column() for _ in range(count)]
    extent = (high - low) or 1.0
    _, _, lows, highs, *_, missing = series.columns()
    smoothed = series.smoothed(options.smoothing)
    for x, least, most, smooth, gaps in zip(x_values(series, options), lows, highs, smoothed, missing, strict=True):
        if not low <= x <= high:
            continue
        column = columns[int((x - low) / extent * (count - 1) + 0.5)]
        column.gaps += gaps
        if smooth == smooth:
            # Faster than min and max, for each of thousands of points.
            if least < column.low:
                column.low = least
            if most > column.high:
                column.high = most
            column.total += smooth
            column.count += 1
    return columns


def sparkline(series: Series, width: int) -> str:
    """Return a series in one row of `▁` to `▇`, from its least to its greatest mean; empty without a finite value."""
    values = series.means_of_parts(width)
    if not values:
        return ""
    low, high = min(values), max(values)
    # A smaller range, relative to the values, is rounding noise and is drawn flat.
    if high - low <= _ROUNDING * max(abs(low), abs(high)):
        return "▄" * len(values)
    return "".join("▁▂▃▄▅▆▇"[int((value - low) / (high - low) * 6.999)] for value in values)
