"""When the steps of a job came: its pauses, its rate, and how long a step will take."""

from __future__ import annotations

import itertools
import math
from collections import deque
from statistics import median

# Changes that the time of a step is taken from.
_KEPT_TIMES = 32
# The rate is that of so many last seconds.
RATE_WINDOW_S = 300.0
# The steps of so many last moments are kept.
MOST_MOMENTS = 400
# A pause is long, such as that of an evaluation, from so many times the usual one on; the first steps warm up.
_LONG_TIMES, _WARM_UP_STEPS = 4.0, 2
# The usual seconds a step are found again after so many changes.
_USUAL_CHANGES = 8


class Moments:
    """When the step changed: a bounded list of times and steps.

    Args:
        most: so many last changes are kept.
    """

    def __init__(self, most: int = MOST_MOMENTS) -> None:
        self._moments: deque[tuple[float, float]] = deque(maxlen=most)
        self._changes = 0
        self._usual = math.nan
        # Of the whole run: the steps that were made, and what long pauses took beyond the usual time.
        self._steps = 0.0
        self._long_pauses, self._long_seconds = 0, 0.0

    def add(self, time: float, step: float) -> None:
        """Note that the step changed; several steps at one time are one change."""
        if self._moments and time <= self._moments[-1][0]:
            self._count_steps(step)
            self._moments[-1] = (self._moments[-1][0], step)
        else:
            if self._moments:
                self._note_pause(time - self._moments[-1][0], self._count_steps(step))
            self._moments.append((time, step))

    def _count_steps(self, step: float) -> float:
        """Count the steps since the last change; return how many, 1 after the step went back."""
        made = step - self._moments[-1][1]
        made = made if made > 0 else 1.0
        self._steps += made
        return made

    def _note_pause(self, seconds: float, made: float) -> None:
        self._changes += 1
        is_long = seconds > _LONG_TIMES * self._usual * made
        if is_long or self._changes % _USUAL_CHANGES == 0 or math.isnan(self._usual):
            times = self.step_times()
            self._usual = median(times) if len(times) > _WARM_UP_STEPS else math.nan
        if seconds > _LONG_TIMES * self._usual * made:
            self._long_pauses += 1
            self._long_seconds += seconds - self._usual * made

    def step_seconds(self) -> float | None:
        """Return the seconds that a step will take: the usual ones, and its share of the long pauses so far."""
        times = self.step_times()
        if len(times) <= _WARM_UP_STEPS:
            return None
        share = self._long_seconds / max(1.0, self._steps)
        # What happened once may never happen again.
        return median(times) + (share if self._long_pauses > 1 else share / 2)

    def clear(self) -> None:
        """Forget all but the long pauses, since the step went back."""
        times = [self.last] if self.last is not None else []
        self._moments.clear()
        self._moments.extend((time, math.nan) for time in times)

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
        times = [time for time, _ in self._moments]
        return [after - before for before, after in itertools.pairwise(times)]

    def step_times(self) -> list[float]:
        """Return the seconds a step of the last 32 changes, the first ones first."""
        last = list(self._moments)[-_KEPT_TIMES - 1 :]
        steps = ((after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(last))
        return [seconds / made for seconds, made in steps if made > 0]

    def rate(self) -> float | None:
        """Return steps a second over the last `RATE_WINDOW_S`."""
        known = [(time, step) for time, step in self._moments if not math.isnan(step)]
        if len(known) < 3:
            return None
        end_time, end_step = known[-1]
        for time, step in known:
            if end_time - time <= RATE_WINDOW_S and end_time > time and end_step > step:
                return (end_step - step) / (end_time - time)
        return None
