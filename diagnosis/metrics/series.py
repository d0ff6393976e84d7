"""A value over a job's steps, in bounded memory: every point up to a number, then buckets of equally many."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

MOST_BUCKETS = 2_000
"""So many points are kept exactly. Beyond that two neighbours become a bucket, then four, and so on."""
_COLUMNS = ("steps", "times", "lows", "highs", "lasts", "sums", "counts", "gaps")


class Bucket(NamedTuple):
    """One point, or what is kept of several neighbours.

    Attributes:
        step: the last one's step.
        time: when the last one was found (seconds since the epoch); nan where that is not known.
        low: the least finite value; nan if there is none, as the next three.
        high: the greatest.
        last: the latest.
        mean: the mean.
        count: how many finite values.
        gaps: how many values that are nan or infinite.
    """

    step: float
    time: float
    low: float
    high: float
    last: float
    mean: float
    count: int
    gaps: int


@dataclass
class Columns:
    """The buckets of a series, a column for each attribute; `sums` stands for the mean."""

    steps: array[float]
    times: array[float]
    lows: array[float]
    highs: array[float]
    lasts: array[float]
    sums: array[float]
    counts: array[float]
    gaps: array[float]


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
        self.columns = Columns(*(array("d") for _ in _COLUMNS))
        self._filled = 0

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self.columns.steps)

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
        finite = math.isfinite(value)
        if finite:
            self.best_low, self.best_high = min(self.best_low, value), max(self.best_high, value)
        else:
            self.gaps += 1
        columns = self.columns
        if self._filled == 0 or self._filled >= self.width:
            if len(self) >= MOST_BUCKETS:
                self._halve()
            self._begin(step, value, time, finite)
            return
        self._filled += 1
        columns.steps[-1], columns.times[-1] = step, time
        if not finite:
            columns.gaps[-1] += 1
        elif columns.counts[-1]:
            columns.lows[-1] = min(columns.lows[-1], value)
            columns.highs[-1] = max(columns.highs[-1], value)
            columns.lasts[-1] = value
            columns.sums[-1] += value
            columns.counts[-1] += 1
        else:
            columns.lows[-1] = columns.highs[-1] = columns.lasts[-1] = columns.sums[-1] = value
            columns.counts[-1] = 1

    def buckets(self) -> Iterable[Bucket]:
        """Yield the points or buckets, in the order in which they were added."""
        columns = self.columns
        for row in zip(*(list(getattr(columns, name)) for name in _COLUMNS), strict=True):
            step, time, low, high, last, total, count, gaps = row
            yield Bucket(step, time, low, high, last, total / count if count else math.nan, int(count), int(gaps))

    def means(self) -> list[float]:
        """Return the mean of each bucket; nan where it has no finite value."""
        columns = self.columns
        return [total / count if count else math.nan for total, count in zip(columns.sums, columns.counts, strict=True)]

    def copy(self) -> Series:
        """Return a copy, which another thread may read while this one grows."""
        other = Series(self.name, self.origin)
        other.__dict__.update({**self.__dict__, "columns": Columns(*(getattr(self.columns, n)[:] for n in _COLUMNS))})
        return other

    def _begin(self, step: float, value: float, time: float, finite: bool) -> None:
        kept = value if finite else math.nan
        row = (step, time, kept, kept, kept, value if finite else 0.0, float(finite), float(not finite))
        for name, cell in zip(_COLUMNS, row, strict=True):
            getattr(self.columns, name).append(cell)
        self._filled = 1

    def _halve(self) -> None:
        """Make a bucket of each two."""
        old = self.columns
        new = Columns(*(array("d") for _ in _COLUMNS))
        for first in range(0, len(old.steps), 2):
            second = min(first + 1, len(old.steps) - 1)
            pair = (first, second) if second > first else (first,)
            full = [index for index in pair if old.counts[index]]
            new.steps.append(old.steps[second])
            new.times.append(old.times[second])
            new.lows.append(min((old.lows[index] for index in full), default=math.nan))
            new.highs.append(max((old.highs[index] for index in full), default=math.nan))
            new.lasts.append(old.lasts[full[-1]] if full else math.nan)
            new.sums.append(sum(old.sums[index] for index in pair))
            new.counts.append(sum(old.counts[index] for index in pair))
            new.gaps.append(sum(old.gaps[index] for index in pair))
        self.columns = new
        self.width *= 2

    # To disk and back

    def to_plain(self) -> dict[str, object]:
        """Return all of it as plain data, the columns as bytes of doubles in this machine's order."""
        plain: dict[str, object] = {name: getattr(self.columns, name).tobytes() for name in _COLUMNS}
        for name in ("name", "origin", "points", "gaps", "printed", "last", "best_low", "best_high", "width"):
            plain[f"_{name}"] = getattr(self, name)
        plain["filled"] = self._filled
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, object]) -> Series:
        """Make a series of `to_plain`.

        Raises:
            ValueError: it is not that.
        """
        series = cls("")
        try:
            for name in ("name", "origin", "points", "gaps", "printed", "last", "best_low", "best_high", "width"):
                value = plain[f"_{name}"]
                if type(value) is not type(getattr(series, name)):
                    raise ValueError(f"{name} is {value!r:.40}")
                setattr(series, name, value)
            for name in _COLUMNS:
                getattr(series.columns, name).frombytes(plain[name])
            series._filled = int(plain["filled"])  # type: ignore[call-overload]
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"it is no series: {error}") from error
        if len({len(getattr(series.columns, name)) for name in _COLUMNS}) != 1 or len(series) > MOST_BUCKETS:
            raise ValueError("its columns differ in length")
        return series


def smoothed(values: Iterable[float], weight: float) -> list[float]:
    """Return the exponential moving average of values as TensorBoard draws it: without the bias of its start.

    Args:
        values: nan and infinite ones are passed by, and are nan in the result.
        weight: how much of the average before is kept, from 0 to less than 1.
    """
    result: list[float] = []
    last, factor = 0.0, 1.0
    for value in values:
        if not math.isfinite(value):
            result.append(math.nan)
            continue
        last = last * weight + (1 - weight) * value
        factor *= weight
        result.append(last / (1 - factor))
    return result
