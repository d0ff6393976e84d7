"""A row of figures as a small picture, or in words where there is ASCII alone."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], most: float, width: int) -> str:
    """Return the last values as bars.

    Args:
        values: the figures, the latest last.
        most: what a full bar stands for.
        width: cells; fewer values leave the left empty.
    """
    shown = values[-width:] if width > 0 else []
    most = max(most, *shown, 1e-9) if shown else 1.0
    bars = (_BARS[min(len(_BARS) - 1, int(max(0.0, value) / most * len(_BARS)))] for value in shown)
    return "".join(bars).rjust(width)


def spark_words(values: Sequence[float]) -> str:
    """Return the least, the mean and the largest value."""
    if not values:
        return ""
    return f"min {figure(min(values))}  avg {figure(sum(values) / len(values))}  max {figure(max(values))}"


def figure(value: float) -> str:
    """Return a figure with one decimal below ten, else with none."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"
