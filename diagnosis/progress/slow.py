"""Finds a replica that is slower than the others of its role, by the times that each prints of its own work.

Ranks of synchronous training make their steps together, whichever holds them up: only a time of a rank's own work, such
as that of loading data, shows which is slow. Times vary, so a replica is reported only if nearly all of its last times
are above the median of the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .moments import Moments
from .stalls import Kind, Observation, pause_limit

KEPT_TIMES = 32
"""The number of last times that are compared; fewer are not."""
_SLOW = 1.5
# The part of a slow replica's times that is above the median of the others; by chance half of them are.
_NEARLY_ALL = 7 / 8
# The excess counts if it is this part of a step.
_PART_OF_STEP = 0.1


class OwnTimes(NamedTuple):
    """The times that one replica, or one rank in its log, prints of its own work.

    Attributes:
        label: its name, such as ``trainer/0`` or ``trainer/0 rank 3``.
        replica: the replica whose log it is in.
        moments: when its steps came.
        times: the last values of each time, by name.
    """

    label: str
    replica: str
    moments: Moments
    times: Mapping[str, Sequence[float]]


def find_slow_replica(ranks: Sequence[OwnTimes], now: float) -> Observation | None:
    """Find a slow replica; None without evidence.

    Args:
        ranks: the times of all replicas, or of ranks in their logs.
        now: the time (seconds since the epoch). Replicas that have stopped making steps are not compared.
    """
    limits = (limit for rank in ranks if (limit := pause_limit(rank.moments.pauses())) is not None)
    oldest = now - max(limits, default=0)
    groups: defaultdict[tuple[str, str], list[OwnTimes]] = defaultdict(list)
    for rank in ranks:
        for name, times in rank.times.items():
            if len(times) >= KEPT_TIMES and rank.moments.last is not None and rank.moments.last >= oldest:
                # Ranks are compared with ranks, and replicas of a role with each other.
                role = rank.replica.rpartition("/")[0]
                groups[f"{role} {rank.label == rank.replica}", name].append(rank)
    # A time of a part of the work says more than that of the step.
    for (_, name), group in sorted(groups.items(), key=lambda item: "data" not in item[0][1].lower()):
        usual = {rank.label: median(rank.times[name]) for rank in group}
        slow = max(group, key=lambda rank: usual[rank.label])
        others = [value for rank in group if rank is not slow for value in rank.times[name]]
        if not others:
            continue
        own, middle = usual[slow.label], median(others)
        above = sum(value > middle for value in slow.times[name])
        if middle <= 0 or own < _SLOW * middle or above < _NEARLY_ALL * KEPT_TIMES:
            continue
        step = next((median(times) for rank in (slow, *group) if (times := rank.moments.step_times())), math.inf)
        if (own - middle) / (1000 if "ms" in name[-4:] else 1) >= _PART_OF_STEP * step:
            sentence = f"slow {own / middle:.1f}x: {slow.label}, its {name} is {own:.3g}, elsewhere {middle:.3g}"
            return Observation(Kind.SLOW, sentence, replica=slow.replica)
    return None
