"""Figures beside their budgets."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def judged(figure: float, budget: float, unit: str, *, at_least: bool = False, digits: int = 0) -> str:
    """Return a figure with its budget, and by how much it is not met.

    Args:
        figure: what was measured.
        budget: what it may be at most.
        unit: of both.
        at_least: the budget is what it must be at least.
        digits: after the point.
    """
    text = f"{figure:,.{digits}f}{unit} (budget {'>=' if at_least else '<='} {budget:,.{digits}f}{unit})"
    met = figure >= budget if at_least else figure <= budget
    if met:
        return text
    times = budget / figure if at_least else figure / budget if budget else 0.0
    return f"{text}, NOT MET" + (f" by {times:.2f}x" if times else "")


def percentile(figures: Sequence[float], part: float) -> float:
    """Return what so large a part of the figures do not pass, 0.5 for the median."""
    if part == 0.5:
        return statistics.median(figures)
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
