"""One metric over a job's steps, in bounded memory, and its smoothing."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, chain, compress, pairwise
from operator import add, sub
from typing import NamedTuple

MOST_BUCKETS = 2_000
"""Points that are kept exactly. Beyond that, two neighbours become a bucket, then four, and so on."""
LARGEST = 1e300
"""Limit of drawn steps and values: sums and differences of the largest floats are infinite."""
SMOOTHED_FROM = 50
"""Fewest finite points that are smoothed."""


class Smoothing(Enum):
    """The standard deviation of the Gaussian that smooths a curve, as a share of the number of points."""

    NONE = 0.0
    LIGHT = 1 / 80
    STRONG = 1 / 20

    def of(self, series: Series) -> Smoothing:
        """Return the smoothing that a series gets: none if it has few points."""
        return self if series.points - series.gaps >= SMOOTHED_FROM else Smoothing.NONE

    @property
    def label(self) -> str:
        return f"{self.name.lower()} smoothing" if self is not Smoothing.NONE else ""


class Bucket(NamedTuple):
    """One point, or a summary of several neighbours.

    Attributes:
        step: the last one's step.
        time: when the last one was found (seconds since the epoch); nan where that is not known.
        low: the least finite value; nan if there is none.
        high: the greatest; nan if there is none.
        last: the latest finite value; the latest one, nan or infinite, if there is none.
        sum: of the finite values, bounded by `LARGEST`.
        count: how many finite values.
        gaps: how many values that are nan or infinite.
    """

    step: float
    time: float
    low: float
    high: float
    last: float
    sum: float
    count: float
    gaps: float


_WIDTH = len(Bucket._fields)
_TIME, _LOW, _HIGH, _LAST, _SUM, _COUNT, _GAPS = range(1 - _WIDTH, 0)


@dataclass(eq=False)
class Series:
    """The points of one metric.

    Attributes:
        name: its name, as it is shown.
        origin: where it comes from, such as ``log of trainer/0`` or the path of a file.
        points: the number of points that were added.
        gaps: how many of them were nan or infinite.
        printed: the latest value as it was printed, to its last digit.
        last: the latest value; may be nan or infinite.
        best_low: the least finite value.
        best_high: the greatest finite value.
        width: the points in a bucket; 1 while every point is kept.

    Raises:
        ValueError: cells are not those of whole buckets.
    """

    name: str
    origin: str = ""
    points: int = 0
    gaps: int = 0
    printed: str = ""
    last: float = math.nan
    best_low: float = math.inf
    best_high: float = -math.inf
    width: int = 1
    _filled: int = 1
    cells: array = field(default_factory=lambda: array("d"), repr=False)

    def __post_init__(self) -> None:
        if len(self.cells) % _WIDTH or len(self) > MOST_BUCKETS or self.width < 1:
            raise ValueError("its buckets are not whole")

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self.cells) // _WIDTH

    def add(self, step: float, value: float, time: float = math.nan, printed: str = "") -> None:
        """Add a point.

        Args:
            step: where it is; a second point at the same step is a point of its own.
            value: the value; may be nan or infinite.
            time: when it was found (seconds since the epoch).
            printed: the value as it was printed.
        """
        self.points += 1
        self.last = value
        self.printed = printed or f"{value:.6g}"
        finite = value - value == 0.0
        if not finite:
            self.gaps += 1
        elif value < self.best_low:
            self.best_low = value
            self.best_high = max(self.best_high, value)
        elif value > self.best_high:
            self.best_high = value
        if not -LARGEST <= step <= LARGEST:
            step = bounded(step)
        summed = value if -LARGEST <= value <= LARGEST else bounded(value)
        cells = self.cells
        if self._filled >= self.width:
            if len(cells) >= MOST_BUCKETS * _WIDTH:
                self._halve()
                cells = self.cells
            self._filled = 1
            if finite:
                cells.extend((step, time, value, value, value, summed, 1.0, 0.0))
            else:
                cells.extend((step, time, math.nan, math.nan, value, 0.0, 0.0, 1.0))
            return
        self._filled += 1
        cells[-_WIDTH], cells[_TIME] = step, time
        if not finite:
            cells[_GAPS] += 1.0
            return
        if not cells[_COUNT] or value < cells[_LOW]:
            cells[_LOW] = value
        if not cells[_COUNT] or value > cells[_HIGH]:
            cells[_HIGH] = value
        cells[_LAST] = value
        cells[_SUM] += summed
        cells[_COUNT] += 1.0

    def buckets(self) -> Iterator[Bucket]:
        """Yield the points or buckets, in the order in which they were added."""
        return map(Bucket._make, zip(*self.columns(), strict=True))

    def columns(self) -> list[list[float]]:
        """Return the attributes of `Bucket`, each of all buckets; far cheaper than the buckets themselves."""
        cells = self.cells.tolist()
        return [cells[place::_WIDTH] for place in range(_WIDTH)]

    def steps(self) -> array[float]:
        """Return the step of each bucket."""
        return self.cells[::_WIDTH]

    def times(self) -> array[float]:
        """Return the time of each bucket (seconds since the epoch)."""
        return self.cells[1::_WIDTH]

    def means(self) -> list[float]:
        """Return the mean of each bucket; nan where it has no finite value."""
        sums, counts = self.cells[_WIDTH + _SUM :: _WIDTH], self.cells[_WIDTH + _COUNT :: _WIDTH]
        return [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]

    def means_of_parts(self, count: int) -> list[float]:
        """Return the means of ``count`` equal parts; parts without a finite value are left out."""
        sums, counts = self.cells[_WIDTH + _SUM :: _WIDTH], self.cells[_WIDTH + _COUNT :: _WIDTH]
        parts = [slice(*bounds) for bounds in pairwise(len(self) * number // count for number in range(count + 1))]
        return [sum(sums[part]) / values for part in parts if (values := sum(counts[part]))]

    def smoothed(self, smoothing: Smoothing) -> list[float]:
        """Return the smoothed mean of each bucket; nan where it has no finite value."""
        return smoothed(self.means(), smoothing.of(self))

    def copy(self) -> Series:
        """Return a copy, which another thread may read while this one grows."""
        return replace(self, cells=self.cells[:])

    def _halve(self) -> None:
        """Make a bucket of each two."""
        steps, times, lows, highs, lasts, sums, counts, gaps = ((of[::2], of[1::2]) for of in self.columns())
        # A bucket without a finite value has nan as its least and greatest one.
        columns = (
            steps[1],
            times[1],
            [second if second < first or first != first else first for first, second in zip(*lows, strict=True)],
            [second if second > first or first != first else first for first, second in zip(*highs, strict=True)],
            [
                first if first_count and not second_count else second
                for first, second, first_count, second_count in zip(*lasts, *counts, strict=True)
            ],
            *(map(add, *pair) for pair in (sums, counts, gaps)),
        )
        self.cells = array("d", chain.from_iterable(zip(*columns, strict=True)))
        self.width *= 2


def bounded(value: float) -> float:
    """Return the number between -`LARGEST` and `LARGEST` that is nearest to a value; nan stays nan."""
    return max(min(value, LARGEST), -LARGEST)


def smoothed(values: Sequence[float], smoothing: Smoothing) -> list[float]:
    """Smooth values by a centred Gaussian, which does not lag.

    It is approximated by three moving averages. Beyond both ends the values are continued by straight lines.

    Args:
        values: nan and infinite ones are left out, and are nan in the result.
        smoothing: how much.
    """
    is_finite = [value - value == 0.0 for value in values]
    known = list(compress(values, is_finite))
    half = round(len(known) * smoothing.value)
    if half:
        # Running sums that hold a spike of 1e16 have no digits left for the values after it.
        limit = 1e9 * sorted(map(abs, known))[len(known) // 2] or math.inf
        if max(known) > limit or min(known) < -limit:
            known = [max(-limit, min(limit, value)) for value in known]
        known = [*_extrapolated(known[::-1], half)[::-1], *known, *_extrapolated(known, half)]
        width = 2 * half + 1
        for _ in range(3):
            sums = list(accumulate(known, initial=0.0))
            known = list(map(sub, sums[width:], sums))
        known = [total / width**3 for total in known]
    finite = iter(known)
    return [next(finite) if is_known else math.nan for is_known in is_finite]


def _extrapolated(values: Sequence[float], half: int) -> list[float]:
    """Return what follows values on the line through the means of their last two parts."""
    count = 2 * half
    before, last = sum(values[-2 * count : -count]) / count, sum(values[-count:]) / count
    slope = (last - before) / count
    return [last + slope * ((count - 1) / 2 + ahead) for ahead in range(1, 3 * half + 1)]
