"""A value over a job's steps, in bounded memory: every point up to a number, then buckets of equally many."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MOST_BUCKETS = 2_000
"""So many points are kept exactly. Beyond that two neighbours become a bucket, then four, and so on."""
LARGEST = 1e300
"""Larger steps and values are drawn as this: sums and differences of the largest floats are infinite."""
_KEPT = ("name", "origin", "points", "gaps", "printed", "last", "best_low", "best_high", "width", "_filled")


class Bucket(NamedTuple):
    """One point, or what is kept of several neighbours.

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


class Series:
    """The points of one metric.

    Args:
        name: its name, as it is shown.
        origin: where it comes from, such as ``log of trainer/0`` or the path of a file.
    """

    def __init__(self, name: str, origin: str = "") -> None:
        self.name = name
        self.origin = origin
        self.points = 0
        """How many points were added."""
        self.gaps = 0
        """How many of them were nan or infinite."""
        self.printed = ""
        """The latest value as it was printed, to its last digit."""
        self.last = math.nan
        """The latest value; may be nan or infinite."""
        self.best_low, self.best_high = math.inf, -math.inf
        """The least and the greatest finite value."""
        self.width = 1
        """How many points a bucket has; 1 while every point is kept."""
        self._cells = array("d")
        self._filled = 1

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._cells) // _WIDTH

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
        cells = self._cells
        if self._filled >= self.width:
            if len(cells) >= MOST_BUCKETS * _WIDTH:
                self._halve()
                cells = self._cells
            self._filled = 1
            if finite:
                cells.extend((step, time, value, value, value, bounded(value), 1.0, 0.0))
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
        cells[_SUM] += bounded(value)
        cells[_COUNT] += 1.0

    def buckets(self) -> Iterator[Bucket]:
        """Yield the points or buckets, in the order in which they were added."""
        return map(Bucket._make, zip(*self.columns(), strict=True))

    def columns(self) -> list[list[float]]:
        """Return the attributes of `Bucket`, each of all buckets; far cheaper than the buckets themselves."""
        cells = self._cells.tolist()
        return [cells[place::_WIDTH] for place in range(_WIDTH)]

    def steps(self) -> array[float]:
        """Return the step of each bucket."""
        return self._cells[::_WIDTH]

    def times(self) -> array[float]:
        """Return the time of each bucket (seconds since the epoch)."""
        return self._cells[1::_WIDTH]

    def means(self) -> list[float]:
        """Return the mean of each bucket; nan where it has no finite value."""
        sums, counts = self._cells[_WIDTH + _SUM :: _WIDTH], self._cells[_WIDTH + _COUNT :: _WIDTH]
        return [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]

    def copy(self) -> Series:
        """Return a copy, which another thread may read while this one grows."""
        other = Series(self.name, self.origin)
        other.__dict__.update(self.__dict__)
        other._cells = self._cells[:]
        return other

    def _halve(self) -> None:
        """Make a bucket of each two."""
        new = array("d")
        pairs = list(self.buckets())
        for first, second in zip(pairs[::2], pairs[1::2], strict=True):
            full = [bucket for bucket in (first, second) if bucket.count]
            low = min((bucket.low for bucket in full), default=math.nan)
            high = max((bucket.high for bucket in full), default=math.nan)
            last = full[-1].last if full else second.last
            counts = (first.sum + second.sum, first.count + second.count, first.gaps + second.gaps)
            new.extend((second.step, second.time, low, high, last, *counts))
        self._cells = new
        self.width *= 2

    # To disk and back

    def to_plain(self) -> dict[str, Any]:
        """Return all of it as plain data, the buckets as bytes of doubles in this machine's order."""
        return {"cells": self._cells.tobytes(), **{name: getattr(self, name) for name in _KEPT}}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Series:
        """Make a series of what `to_plain` returned.

        Raises:
            ValueError: it is not that.
        """
        series = cls("")
        try:
            for name in _KEPT:
                value = plain[name]
                if type(value) is not type(getattr(series, name)):
                    raise ValueError(f"{name} is {value!r:.40}")
                setattr(series, name, value)
            series._cells.frombytes(plain["cells"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is not a series: {error}") from error
        if len(series._cells) % _WIDTH or len(series) > MOST_BUCKETS or series.width < 1:
            raise ValueError("its buckets are not whole")
        return series


def bounded(value: float) -> float:
    """Return the number between -`LARGEST` and `LARGEST` that is nearest to a value; nan stays nan."""
    return max(min(value, LARGEST), -LARGEST)


def smoothed(values: Iterable[float], weight: float) -> list[float]:
    """Return the exponential moving average of values as TensorBoard draws it: without the bias of its start.

    Args:
        values: nan and infinite ones are passed by, and are nan in the result.
        weight: how much of the average before is kept, from 0 to less than 1.
    """
    result: list[float] = []
    last, factor = 0.0, 1.0
    for value in values:
        if value - value != 0.0:
            result.append(math.nan)
            continue
        last = last * weight + (1 - weight) * value
        factor *= weight
        result.append(last / (1 - factor))
    return result
