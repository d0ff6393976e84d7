"""Series as rows of text: a canvas of braille, two by four dots a cell, or of ASCII.

Rows are lists of spans, each with a role instead of a colour: a screen or a shell gives these its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from .scale import Scale, fit_scale, x_axis, x_label
from .series import Series, bounded, smoothed

_ROUNDING = 1e-9
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_LABEL_WIDTH, _WIDE_LABEL = 5, 7
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# A logarithmic axis suits values that are positive and differ by so much.
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
        curve: of which curve, where several are drawn.
    """

    text: str
    role: Role
    curve: int = 0


@dataclass(frozen=True)
class Options:
    """How a chart is drawn.

    Attributes:
        smoothing: the weight of TensorBoard's smoothing, from 0 to less than 1; 0 draws the raw values alone.
        log: a logarithmic axis.
        by_time: the time since the first point instead of the step.
        ascii: without braille and box-drawing signs.
        window: the part of the x axis that is drawn; all of it if None.
        cursor: where on the x axis a cursor stands; None for none.
    """

    smoothing: float = 0.91
    log: bool = False
    by_time: bool = False
    ascii: bool = False
    window: tuple[float, float] | None = None
    cursor: float | None = None


@dataclass
class _Curve:
    """A series in columns of dots.

    Attributes:
        lows: the least raw value of each column; nan where there is none.
        highs: the greatest.
        smooth: the mean of the smoothed values.
        gaps: how many values that are nan or infinite.
    """

    lows: list[float]
    highs: list[float]
    smooth: list[float]
    gaps: list[float]


@dataclass
class _Canvas:
    """Dots of several layers; in a cell the later layer wins, and dots below it are left out."""

    width: int
    height: int
    layers: list[list[int]] = field(default_factory=list)

    def add_layer(self) -> None:
        """Draw above all from now on."""
        self.layers.append([0] * (self.width * self.height))

    def run(self, column: int, first: int, last: int) -> None:
        """Draw dots of a column from one row of dots to another, counted from the top."""
        layer, cell_column, bit = self.layers[-1], column // 2, column % 2
        for row in range(min(first, last), max(first, last) + 1):
            layer[row // 4 * self.width + cell_column] |= _DOTS[row % 4][bit]

    def row(self, number: int) -> list[tuple[int, int]]:
        """Return the dots of each cell of a row, and their layer; -1 where there are none."""
        start = number * self.width
        cells = [(0, -1)] * self.width
        for layer, dots in enumerate(self.layers):
            for column, bits in enumerate(dots[start : start + self.width]):
                if bits:
                    cells[column] = (bits, layer)
        return cells


def wants_log(series: Series) -> bool:
    """Whether a logarithmic axis suits a series: all positive, and over more than two decades."""
    return series.best_low > 0 and series.best_high / series.best_low > _LOG_FROM


def draw_chart(
    series: Sequence[Series],
    width: int,
    height: int,
    options: Options | None = None,
    letters: Sequence[int] | None = None,
) -> list[list[Span]]:
    """Draw series: one with its raw values behind the smoothed ones, several by their smoothed values and letters.

    Args:
        series: what is drawn; of several the last one is on top.
        width: cells of all of it.
        height: rows of all of it, the axis below among them.
        options: how.
        letters: which letter each of several series has, from 0; in their order if None.

    Returns:
        the rows, each of which has ``width`` cells.
    """
    options = options or Options()
    rows = max(1, height - 1)
    low, high = map(bounded, options.window or x_limits(series, options))
    letters = range(len(series)) if letters is None else letters
    wide = _LABEL_WIDTH
    for _ in range(2):
        columns = 2 * max(1, width - wide - 1)
        curves = [_bin(metric, low, high, columns, options) for metric in series]
        scale = _scale(curves, rows, options, is_single=len(series) == 1)
        longest = max((len(text) for text in scale.labels.values()), default=0)
        if longest <= wide:
            break
        wide = max(_WIDE_LABEL, longest)
    canvas = _Canvas(max(1, width - wide - 1), rows)
    _draw(canvas, curves, scale, options, is_single=len(series) == 1)
    signs = ("|", "+", "+", "-") if options.ascii else ("│", "┤", "└", "─")
    places = _letter_places(canvas, letters) if len(series) > 1 else {}
    found = [_row(canvas, number, scale, wide, signs, options, letters, places) for number in range(rows)]
    if options.cursor is not None and low <= options.cursor <= high:
        _draw_cursor(found, options, (options.cursor - low) / (high - low or 1.0), canvas.width)
    if len(series) == 1 and (notes := _gap_row(curves[0], canvas, series[0].gaps, options.ascii)):
        found[-1] = [*found[-1][:1], *_overlay(found[-1][1:], notes)]
    axis = x_axis(low, high, canvas.width, is_time=options.by_time, corner=signs[2], rule=signs[3])
    return [*found, [Span(" " * wide + axis, Role.AXIS)]]


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


def _bin(series: Series, low: float, high: float, columns: int, options: Options) -> _Curve:
    """Put a series into columns of dots; smoothing is figured on all of it before."""
    curve = _Curve([math.nan] * columns, [math.nan] * columns, [math.nan] * columns, [0.0] * columns)
    sums, counts = [0.0] * columns, [0] * columns
    extent = (high - low) or 1.0
    lows, highs = curve.lows, curve.highs
    # A bucket of many points is as much of the average as they are.
    smooth = smoothed(series.means(), options.smoothing**series.width if options.smoothing else 0.0)
    _, _, low_values, high_values, _, _, value_counts, gap_counts = series.columns()
    rows = zip(x_values(series, options), low_values, high_values, smooth, value_counts, gap_counts, strict=True)
    for x, low_value, high_value, value, points, gaps in rows:
        if not low <= x <= high:
            continue
        column = int((x - low) / extent * (columns - 1) + 0.5)
        if gaps:
            curve.gaps[column] += gaps
        if not points:
            continue
        # Comparisons with nan are false.
        if not lows[column] <= low_value:
            lows[column] = low_value
        if not highs[column] >= high_value:
            highs[column] = high_value
        sums[column] += value
        counts[column] += 1
    curve.smooth = [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]
    return curve


def _scale(curves: Sequence[_Curve], rows: int, options: Options, *, is_single: bool) -> Scale:
    drawn = curves if options.smoothing or not is_single else []
    smooth = [value for curve in drawn for value in curve.smooth if value == value]
    raw = [value for curve in curves for value in (*curve.lows, *curve.highs) if value == value] if is_single else []
    return fit_scale(raw, smooth, rows, log=options.log)


def _draw(canvas: _Canvas, curves: Sequence[_Curve], scale: Scale, options: Options, *, is_single: bool) -> None:
    dots = canvas.height * 4

    def row_of(value: float) -> int:
        return round((1.0 - scale.place(value)) * (dots - 1))

    for curve in curves:
        if is_single:
            canvas.add_layer()
            for column, (low, high) in enumerate(zip(curve.lows, curve.highs, strict=True)):
                if low == low:
                    canvas.run(column, row_of(high), row_of(low))
        if options.smoothing or not is_single:
            canvas.add_layer()
            _draw_line(canvas, curve, row_of)
        else:
            _draw_line(canvas, curve, row_of)


def _draw_line(canvas: _Canvas, curve: _Curve, row_of: Callable[[float], int]) -> None:
    """Draw the smoothed values, each joined with the one before; values that are nan or infinite break the line."""
    before, before_column, is_broken = -1, -1, True
    for column, value in enumerate(curve.smooth):
        if curve.gaps[column]:
            is_broken = True
        if value != value:
            continue
        row = row_of(value)
        if is_broken:
            canvas.run(column, row, row)
        else:
            distance = column - before_column
            for step in range(1, distance + 1):
                start = before + (row - before) * (step - 1) / distance
                end = before + (row - before) * step / distance
                first, last = round(start), round(end)
                canvas.run(before_column + step, first + (last > first) - (last < first) if step < 2 else first, last)
        before, before_column, is_broken = row, column, curve.gaps[column] > 0


def _row(
    canvas: _Canvas,
    number: int,
    scale: Scale,
    wide: int,
    signs: tuple[str, str, str, str],
    options: Options,
    letters: Sequence[int],
    places: dict[tuple[int, int], int],
) -> list[Span]:
    label = scale.labels.get(number)
    spans = [Span(f"{label or '':>{wide}}{signs[0] if label is None else signs[1]}", Role.AXIS)]
    cells = canvas.row(number)
    is_overlay = len(letters) > 1
    for (row, column), layer in places.items():
        if row == number:
            cells[column] = (0, layer)
    for layer, run in groupby(enumerate(cells), key=lambda cell: cell[1][1]):
        columns = list(run)
        if layer < 0:
            spans.append(Span(" " * len(columns), Role.BLANK))
        elif is_overlay:
            letter = LETTERS[letters[layer] % len(LETTERS)]
            signs_of_run = (letter if options.ascii or not cell[0] else chr(_BRAILLE + cell[0]) for _, cell in columns)
            spans.append(Span("".join(signs_of_run), Role.CURVE, letters[layer]))
        else:
            role = Role.SMOOTH if layer == 1 or not options.smoothing else Role.RAW
            sign = "*" if role is Role.SMOOTH else "."
            text = sign * len(columns) if options.ascii else "".join(chr(_BRAILLE + dots) for _, (dots, _) in columns)
            spans.append(Span(text, role))
    return spans


def _letter_places(canvas: _Canvas, letters: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where the letters of curves stand: the layer by row and column; each twice on its line and at its end."""
    places: dict[tuple[int, int], int] = {}
    for layer, dots in enumerate(canvas.layers):
        columns = [column for column in range(canvas.width) if any(dots[column :: canvas.width])]
        if not columns:
            continue
        # Lines that run together have their letters side by side.
        first, last, aside = columns[0], columns[-1], 3 * letters[layer]
        wanted = [first + (last - first) // 3 + aside, first + (last - first) * 2 // 3 + aside]
        for column in [*(at for at in wanted if at < last - 2), last]:
            rows = dots[column :: canvas.width]
            row = next((number for number, cell in enumerate(rows) if cell), None)
            if row is not None:
                places[row, column] = layer
    return places


def _draw_cursor(rows: list[list[Span]], options: Options, place: float, width: int) -> None:
    """Draw the cursor where nothing else is, with where it stands in the first row."""
    column = round(place * (width - 1))
    for number, row in enumerate(rows):
        cells = [Span(char, span.role, span.curve) for span in row[1:] for char in span.text]
        assert options.cursor is not None
        words = (
            f" at {'' if options.by_time else 'step '}{x_label(options.cursor, options.by_time)}" if number == 0 else ""
        )
        start = column + 1 if column + 1 + len(words) <= width else column - len(words)
        marks = {column: ":" if options.ascii else "┊", **{start + at: char for at, char in enumerate(words)}}
        for at, char in marks.items():
            if 0 <= at < len(cells) and cells[at].role is Role.BLANK:
                cells[at] = Span(char, Role.AXIS)
        rows[number] = [row[0], *_merged(cells)]


def _gap_row(curve: _Curve, canvas: _Canvas, gaps: int, is_ascii: bool) -> list[Span]:
    """Return the marks of values that are nan or infinite, over the lowest row; none where there are none."""
    marked = [any(curve.gaps[2 * cell : 2 * cell + 2]) for cell in range(canvas.width)]
    if not any(marked):
        return []
    sign = "x" if is_ascii else "━"
    cells = [sign if mark else "" for mark in marked]
    words = f" NaN, {gaps:,} point{'' if gaps == 1 else 's'}"
    last = max(number for number, mark in enumerate(marked) if mark)
    first = marked.index(True)
    start = last + 1 if last + 1 + len(words) <= canvas.width else first - len(words) - 1
    if start >= 0:
        cells[start : start + len(words)] = words
    return [Span(cell, Role.GAP) for cell in cells]


def _overlay(spans: Sequence[Span], marks: Sequence[Span]) -> list[Span]:
    """Put marks over spans, cell by cell."""
    cells = [Span(char, span.role, span.curve) for span in spans for char in span.text]
    return _merged([mark if mark.text else cell for cell, mark in zip(cells, marks, strict=True)])


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1][1:] == span[1:]:
            merged[-1] = merged[-1]._replace(text=merged[-1].text + span.text)
        else:
            merged.append(span)
    return merged


def sparkline(series: Series, width: int) -> str:
    """Return a series in one row of `▁` to `▇`, from its least to its greatest mean; nothing where it has no value."""
    means = [value for value in series.means() if value == value]
    if not means:
        return ""
    width = min(width, len(means))
    parts = [means[number * len(means) // width : (number + 1) * len(means) // width] for number in range(width)]
    values = [sum(part) / len(part) for part in parts]
    low, high = min(values), max(values)
    # A smaller range, relative to the values, is rounding noise and is drawn flat.
    if high - low <= _ROUNDING * max(abs(low), abs(high)):
        return "▄" * width
    return "".join("▁▂▃▄▅▆▇"[int((value - low) / (high - low) * 6.999)] for value in values)
