"""When the steps of a job came: its pauses, its rate, and how long a step will take."""

from __future__ import annotations

import itertools
import math
from collections import deque
from statistics import median

# Changes that the time of a step is taken from.
_KEPT_TIMES = 32
# The rate is that of the last seconds.
_RATE_WINDOW_S = 300.0
# The last changes that are kept.
_MOST_MOMENTS = 400
# A pause of this many times the usual one is long, such as that of an evaluation; the first steps warm up.
_LONG_TIMES, _WARM_UP_STEPS = 4.0, 2


class Moments:
    """When the step changed: the last times and steps."""

    def __init__(self) -> None:
        self._moments: deque[tuple[float, float]] = deque(maxlen=_MOST_MOMENTS)
        self._step_times: deque[float] = deque(maxlen=_KEPT_TIMES)
        # Of the whole run: the steps that were made, and what long pauses took beyond the usual time.
        self._steps = 0.0
        self._long_pauses, self._long_seconds = 0, 0.0

    def add(self, time: float, step: float) -> None:
        """Note that the step changed; several steps at one time are one change."""
        if not self._moments:
            self._moments.append((time, step))
            return
        last, before = self._moments[-1]
        made = step - before if step > before else 1.0
        self._steps += made
        if time <= last:
            self._moments[-1] = (last, step)
            return
        seconds, usual = time - last, self._usual()
        if usual is not None and seconds > _LONG_TIMES * usual * made:
            self._long_pauses += 1
            self._long_seconds += seconds - usual * made
        if step > before:
            self._step_times.append(seconds / made)
        self._moments.append((time, step))

    def _usual(self) -> float | None:
        """Return the usual seconds a step; None while too few are known."""
        return median(self._step_times) if len(self._step_times) > _WARM_UP_STEPS else None

    def step_seconds(self) -> float | None:
        """Return the seconds that a step will take: the usual ones, and its share of the long pauses so far."""
        usual = self._usual()
        if usual is None:
            return None
        share = self._long_seconds / max(1.0, self._steps)
        # What happened once may never happen again.
        return usual + (share if self._long_pauses > 1 else share / 2)

    def clear(self) -> None:
        """Forget all but the long pauses, since the step went back."""
        last = self.last
        self._moments.clear()
        self._step_times.clear()
        if last is not None:
            self._moments.append((last, math.nan))

    @property
    def last(self) -> float | None:
        """When the step changed last; None if it never did."""
        return self._moments[-1][0] if self._moments else None

    @property
    def last_step(self) -> float | None:
        """The step after the last change; None if it never changed."""
        return self._moments[-1][1] if self._moments else None

    def pauses(self) -> list[float]:
        """Return the seconds between changes, the first ones first."""
        return [after[0] - before[0] for before, after in itertools.pairwise(self._moments)]

    def step_times(self) -> list[float]:
        """Return the seconds a step of the last changes, the first ones first."""
        return list(self._step_times)

    def rate(self) -> float | None:
        """Return steps a second over the last `_RATE_WINDOW_S`."""
        known = [(time, step) for time, step in self._moments if not math.isnan(step)]
        if len(known) < 3:
            return None
        end, end_step = known[-1]
        began, first = next(moment for moment in known if end - moment[0] <= _RATE_WINDOW_S)
        return (end_step - first) / (end - began) if end_step > first and end > began else None
