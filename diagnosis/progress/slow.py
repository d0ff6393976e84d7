"""Finds a replica that is slower than the others of its role, by the times that each prints of its own work.

Ranks of synchronous training make their steps together, whichever holds them up: only a time of a rank's own work, such
as that of loading data, shows which is slow. Times vary, so a replica is reported only if nearly all of its last times
are above the median of the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from .stalls import Kind, Observation, pause_limit
from .tracker import KEPT_TIMES, RankLog

_SLOW = 1.5
# The part of a slow replica's times that is above the median of the others; by chance half of them are.
_NEARLY_ALL = 7 / 8
# The excess counts if it is this part of a step.
_PART_OF_STEP = 0.1


def find_slow_replica(ranks: Sequence[RankLog], now: float) -> Observation | None:
    """Find a slow replica; None without evidence.

    Args:
        ranks: all replicas, and the ranks in their logs.
        now: the time (seconds since the epoch). Replicas that have stopped making steps are not compared.
    """
    limits = (limit for rank in ranks if (limit := pause_limit(rank.moments.pauses())) is not None)
    oldest = now - max(limits, default=0)
    groups: defaultdict[tuple[str, str], list[RankLog]] = defaultdict(list)
    for rank in ranks:
        for name, metric in rank.store.metrics.items():
            if len(metric.times) == KEPT_TIMES and rank.moments.last is not None and rank.moments.last >= oldest:
                # Ranks are compared with ranks, and replicas of a role with each other.
                role = rank.replica.rpartition("/")[0]
                groups[f"{role} {rank.label == rank.replica}", name].append(rank)
    # A time of a part of the work says more than that of the step.
    for (_, name), group in sorted(groups.items(), key=lambda item: "data" not in item[0][1].lower()):
        times = {rank.label: rank.store.metrics[name].times for rank in group}
        slow = max(group, key=lambda rank: median(times[rank.label]))
        others = [value for rank in group if rank is not slow for value in times[rank.label]]
        if not others:
            continue
        own, middle = median(times[slow.label]), median(others)
        above = sum(value > middle for value in times[slow.label])
        if middle <= 0 or own < _SLOW * middle or above < _NEARLY_ALL * KEPT_TIMES:
            continue
        step = next((median(steps) for rank in (slow, *group) if (steps := rank.moments.step_times())), math.inf)
        if (own - middle) / (1000 if "ms" in name[-4:] else 1) >= _PART_OF_STEP * step:
            sentence = f"slow {own / middle:.1f}x: {slow.label}, its {name} is {own:.3g}, elsewhere {middle:.3g}"
            return Observation(Kind.SLOW, sentence, replica=slow.replica)
    return None
