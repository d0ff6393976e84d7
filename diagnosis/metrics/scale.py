"""The axes of a chart: limits, round figures, and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...base.durations import duration
from .series import bounded

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_SUFFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
# An axis of at least _TALL rows has up to _LABELS_TALL labels, a lower one up to _LABELS.
_TALL, _LABELS_TALL, _LABELS = 11, 7, 4
# The smoothed curve may stretch the y axis up to 3x.
_WIDER = 3.0
# Smaller values are drawn as 0: fractions of them have no exact floats.
_LEAST = 1e-200
# Larger labels are written with an exponent.
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
        """Return the height of a value: 0 at the bottom, 1 at the top; values beyond them are at the edge."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return min(1.0, max(0.0, (bounded(value) - self.low) / (self.high - self.low)))


def fit_scale(raw: Sequence[float], smooth: Sequence[float], rows: int, *, log: bool) -> Scale:
    """Fit an axis to the 1st to 99th percentile of the raw values and to the smoothed ones, rounded outward.

    One spike does not squeeze the curve: smoothed values that it drew far beyond are left out too.

    Args:
        raw: finite values.
        smooth: finite values; those of several curves where there are no raw ones.
        rows: the height of the chart.
        log: make it logarithmic, where there are positive values.
    """
    raw, smooth = _drawable(raw), _drawable(smooth)
    if log and (positive := [value for value in (*raw, *smooth) if value > 0]):
        return _log_scale(min(positive), max(positive), rows)
    usual = sorted(raw or smooth) or [0.0]
    cut = len(usual) // 100
    low, high = usual[cut], usual[-1 - cut]
    widest = (high - low) * _WIDER
    if smooth and (not raw or max(high, *smooth) - min(low, *smooth) <= widest):
        low, high = min(low, *smooth), max(high, *smooth)
    if high - low <= abs(high) * 1e-9:
        margin = abs(high) * 0.1 or 1.0
        low, high = low - margin, high + margin
    values, step = _round_values(low, high, rows)
    return _labelled(values, step, values[0], values[-1], rows, log=False)


def _drawable(values: Sequence[float]) -> list[float]:
    return [bounded(value) if abs(value) >= _LEAST else 0.0 for value in values]


def _round_values(low: float, high: float, rows: int) -> tuple[list[float], float]:
    """Return the round values of an axis that includes two values, and how far apart they are."""
    most = _LABELS_TALL if rows >= _TALL else min(_LABELS, max(2, (rows + 1) // 2))
    step, start, labels = (high - low) / most, low, most + 1
    while labels > most:
        step = _round_up(step * 1.01)
        start = math.floor(low / step + 1e-9) * step
        labels = math.ceil((high - start) / step - 1e-6) + 1
    return [start + number * step for number in range(labels)], step


def _log_scale(least: float, most: float, rows: int) -> Scale:
    if least * (1 + 1e-9) < most < least * 10:
        # Labels at decades alone would squeeze the curve into a part of the chart.
        values, step = _round_values(least, most, rows)
        bottom = math.log10(values[0] if values[0] > 0 else least)
        return _labelled([value for value in values if value > 0], step, bottom, math.log10(values[-1]), rows, log=True)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    high = max(high, low + 1)
    every = max(1, math.ceil((high - low) / (_LABELS_TALL if rows >= _TALL else _LABELS - 1)))
    return _labelled([10.0**decade for decade in range(low, high + 1, every)], 0.0, low, high, rows, log=True)


def _labelled(values: Sequence[float], step: float, low: float, high: float, rows: int, *, log: bool) -> Scale:
    labels = {}
    for value in values:
        at = math.log10(value) if log else value
        labels[round((high - at) / (high - low) * (rows - 1))] = format_label(value, step or value)
    return Scale(low, high, log, labels)


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
    size, suffix = next(row for row in _SUFFIXES if abs(value) >= row[0]) if abs(value) >= 10_000 else (1.0, "")
    most = 3 if suffix else 4
    parts = (abs(step) / size * 10**decimals for decimals in range(most))
    decimals = next((number for number, part in enumerate(parts) if abs(part - round(part)) <= 1e-6 * part), most)
    return f"{value / size:.{decimals}f}{suffix}"


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
    if len(first) + len(last) + 3 > width:
        return corner + last[:width] + rule * (width - len(last))
    line = first + " "
    end = width - len(last)
    if high - low > _LEAST:
        step = _round_up((high - low) / max(1, width // 20))
        start = math.ceil(low / step)
        # Counted, since a small step added to a large value may give that value again.
        for number in range(start, math.floor(high / step) + 1):
            text = x_label(number * step, is_time)
            at = round((number * step - low) / (high - low) * (width - 1)) - len(text) // 2
            if at > len(line) and at + len(text) < end - 2:
                line += rule * (at - 1 - len(line)) + f" {text} "
    return f"{corner}{line}{rule * (end - 1 - len(line))} {last}"


def x_label(value: float, is_time: bool) -> str:
    """Return a step, or seconds, as a label of the x axis."""
    if is_time:
        return duration(value)
    if not abs(value) < _EXPONENT_FROM:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2f}"
