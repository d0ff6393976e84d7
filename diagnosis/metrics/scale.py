"""The axes of a chart: limits, round figures, and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...base.durations import duration
from .series import bounded

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_SUFFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
# From so many rows on there are up to seven labels, else up to four.
_TALL, _LABELS_TALL, _LABELS = 11, 7, 4
# Smooth values may make the axis so much longer.
_WIDER = 3.0
# Values nearer to 0 are drawn as 0: fractions of them have no exact floats.
_LEAST = 1e-200
# Labels from here on are written with an exponent.
_EXPONENT_FROM = 1e15


@dataclass(frozen=True)
class Scale:
    """The vertical axis.

    Attributes:
        low: the value at the bottom, or its logarithm where `log`.
        high: the value at the top, or its logarithm.
        log: it is logarithmic.
        labels: text by row, from the top.
    """

    low: float
    high: float
    log: bool
    labels: dict[int, str]

    def place(self, value: float) -> float:
        """Return where a value is: 0 at the bottom, 1 at the top; beyond them at the edge."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        value = bounded(value)
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def fit_scale(raw: Sequence[float], smooth: Sequence[float], rows: int, *, log: bool) -> Scale:
    """Fit an axis: from the 1st to the 99th percentile of the raw values with the smooth ones, rounded outward.

    One spike does not squeeze the curve: smooth values that it drew far beyond are left out too.

    Args:
        raw: finite values.
        smooth: finite values; those of several curves where there are no raw ones.
        rows: how many rows the chart has.
        log: make it logarithmic, where there are positive values.
    """
    raw, smooth = _drawable(raw), _drawable(smooth)
    if log and (positive := [value for value in (*raw, *smooth) if value > 0]):
        return _log_scale(positive, rows)
    usual = _between_percentiles(sorted(raw or smooth)) or [0.0]
    low, high = usual[0], usual[-1]
    widest = (high - low) * _WIDER
    if smooth and (not raw or max(high, *smooth) - min(low, *smooth) <= widest):
        low, high = min(low, *smooth), max(high, *smooth)
    if high - low <= abs(high) * 1e-9:
        margin = abs(high) * 0.1 or 1.0
        low, high = low - margin, high + margin
    start, step, labels = _round_limits(low, high, rows)
    end = start + step * (labels - 1)
    texts = {
        round((labels - 1 - number) * (rows - 1) / (labels - 1)): format_label(start + number * step, step)
        for number in range(labels)
    }
    return Scale(start, end, False, texts)


def _drawable(values: Sequence[float]) -> list[float]:
    return [bounded(value) if abs(value) >= _LEAST else 0.0 for value in values]


def _round_limits(low: float, high: float, rows: int) -> tuple[float, float, int]:
    """Return where an axis with round labels begins, how far apart these are, and how many there are."""
    most = _LABELS_TALL if rows >= _TALL else min(_LABELS, max(2, (rows + 1) // 2))
    step, start, labels = (high - low) / most, low, most + 1
    while labels > most:
        step = _round_up(step * 1.01)
        start = math.floor(low / step + 1e-9) * step
        labels = math.ceil((high - start) / step - 1e-6) + 1
    return start, step, labels


def _between_percentiles(ordered: Sequence[float]) -> Sequence[float]:
    cut = len(ordered) // 100
    return ordered[cut : len(ordered) - cut] if cut else ordered


def _log_scale(positive: Sequence[float], rows: int) -> Scale:
    least, most = min(positive), max(positive)
    if least * (1 + 1e-9) < most < least * 10:
        # Labels at decades alone would squeeze the curve into a part of the chart.
        start, step, labels = _round_limits(least, most, rows)
        values = [start + number * step for number in range(labels)]
        bottom, top = math.log10(start if start > 0 else least), math.log10(values[-1])
        texts = {
            round((top - math.log10(value)) * (rows - 1) / (top - bottom)): format_label(value, step)
            for value in values
            if value > 0
        }
        return Scale(bottom, top, True, texts)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    high = max(high, low + 1)
    every = max(1, math.ceil((high - low) / (_LABELS_TALL if rows >= _TALL else _LABELS - 1)))
    texts = {
        round((high - decade) * (rows - 1) / (high - low)): format_label(10.0**decade, 10.0**decade)
        for decade in range(low, high + 1, every)
    }
    return Scale(low, high, True, texts)


def _round_up(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in _ROUND if factor * power >= step * (1 - 1e-9))


def format_label(value: float, step: float) -> str:
    """Return a value as a label beside others that are ``step`` apart: `2.20`, `500k`, `1.5e-05`."""
    if abs(value) < step * 1e-6:
        return "0"
    if abs(value) < 1e-3 and abs(step) < 1e-3:
        return f"{value:.1e}"
    if abs(value) >= _EXPONENT_FROM:
        return f"{value:.2e}"
    if abs(value) >= 10_000:
        for size, suffix in _SUFFIXES:
            if abs(value) >= size:
                decimals = max(0, -math.floor(math.log10(step) - math.log10(size) + 1e-9)) if step else 0
                return f"{value / size:.{min(decimals, 3)}f}{suffix}"
    decimals = min(5, max(0, -math.floor(math.log10(step) + 1e-9))) if step < 1 else 0
    if step < 10 and abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    return f"{value:.{min(decimals, 4)}f}"


def x_axis(low: float, high: float, width: int, *, is_time: bool, corner: str, rule: str) -> str:
    """Return the last row of a chart: labels on a rule, the first at its left end, the last at its right end.

    Args:
        low: the step, or the seconds, at the left.
        high: those at the right.
        width: cells of the plot, the corner not counted.
        is_time: the axis has seconds.
        corner: the sign before it.
        rule: the sign that it is drawn with.
    """
    low, high = bounded(low), bounded(high)
    first, last = x_label(low, is_time), x_label(high, is_time)
    cells = [rule] * width
    if len(first) + len(last) + 3 > width:
        cells[: len(last)] = last[:width]
        return corner + "".join(cells[:width])
    taken = _write(cells, 0, first)
    end = width - len(last)
    if high - low > _LEAST:
        step = _round_up((high - low) / max(1, width // 20))
        start = math.ceil(low / step)
        # Counted, since a small step added to a large value may give that value again.
        for number in range(math.floor(high / step) - start + 1):
            value = (start + number) * step
            text = x_label(value, is_time)
            at = round((value - low) / (high - low) * (width - 1)) - len(text) // 2
            if at > taken + 1 and at + len(text) < end - 2:
                taken = _write(cells, at, text)
    _write(cells, end, last)
    return corner + "".join(cells)


def _write(cells: list[str], at: int, text: str) -> int:
    """Write a label with a blank on its free sides; return the cell after it."""
    padded = f"{' ' if at else ''}{text}{' ' if at + len(text) < len(cells) else ''}"
    start = at - 1 if at else at
    cells[start : start + len(padded)] = padded
    return start + len(padded)


def x_label(value: float, is_time: bool) -> str:
    """Return a step, or seconds, as they stand on the x axis."""
    if is_time:
        return duration(value)
    if not abs(value) < _EXPONENT_FROM:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2f}"
