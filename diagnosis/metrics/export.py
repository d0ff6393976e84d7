"""Series as CSV, and which way a metric is better."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from .series import Series

_COLUMNS = ("metric", "step", "time", "value", "low", "high", "points")
_LOWER = re.compile(r"(?i)loss|error|ppl|perplex|rmse|mae\b|objective")
_HIGHER = re.compile(r"(?i)acc|auc|\bf1|reward|rew_mean|score|bleu|rouge|map\b|mmlu|tok/s|tps|mfu")


def write_csv(file: TextIO, series: Iterable[Series], jobs: Sequence[str] | None = None) -> None:
    """Write a row for each point, or for each bucket of points where there are many.

    Args:
        file: where to.
        series: what is written; `value` is the last of a bucket, `time` is in seconds since the epoch.
        jobs: the job of each series, for a first column; none if None.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS if jobs is None else ("job", *_COLUMNS))
    for number, metric in enumerate(series):
        before = () if jobs is None else (jobs[number],)
        for bucket in metric.buckets():
            time = "" if math.isnan(bucket.time) else f"{bucket.time:.3f}"
            points = int(bucket.count + bucket.gaps)
            writer.writerow(
                (*before, metric.name, f"{bucket.step:.15g}", time, bucket.last, bucket.low, bucket.high, points)
            )


def best_value(series: Series) -> float | None:
    """Return the best value of a metric: the least of a loss, the greatest of an accuracy; None of others."""
    if not series.points or not math.isfinite(series.best_low):
        return None
    if _LOWER.search(series.name):
        return series.best_low
    return series.best_high if _HIGHER.search(series.name) else None


def rank(series: Series) -> float:
    """Return the key that sorts jobs by a metric: the best first, jobs without a value last."""
    best = best_value(series)
    if best is None:
        return math.inf
    return best if best == series.best_low and _LOWER.search(series.name) else -best
