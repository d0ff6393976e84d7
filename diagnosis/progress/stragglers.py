"""Whether a replica is slower than the others of its role: by the times that it prints, or by its steps; or silence.

Ranks of synchronous training make their steps together, whoever holds them up: there only a time that each rank prints
of its own work, such as that of loading data, tells which is slow. Replicas that do not wait for each other differ in
their steps. Times vary, so a replica is named only where nearly all of its last times are above the median elsewhere.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import median

from .stalls import Kind, Observation, pause_limit

KEPT_TIMES = 32
"""So many last times are compared, and no fewer."""
_SLOW = 1.5
# The part of a replica's times that is above the usual one elsewhere; by chance half of them are.
_NEARLY_ALL = 7 / 8
# A time is looked at where what it takes too long is so much of a step.
_PART_OF_STEP = 0.1
# The work that a rank does alone: backward passes and steps of the optimizer wait for the other ranks.
_OWN_TIME = re.compile(
    r"(?i)(?:.*/)?(?:(?:train|avg|mean|last|local)[_ ])?"
    r"(?:(?:(?:step|iter(?:ation)?|batch|data|(?:data[_ ]?)?load(?:er|ing)?|forward|fwd)"
    r"[_ -](?:time|timing|duration|secs?)|data|time)(?: in s|[_ ]\(?m?s\)?)?"
    r"|elapsed time per iteration \(ms\))"
)


@dataclass(frozen=True, eq=False)
class Pace:
    """How fast one replica, or one rank in its log, works.

    Attributes:
        label: what it is called, such as ``trainer/0`` or ``trainer/0 rank 3``.
        replica: whose log it is in.
        step: the step that it is at.
        moved_at: when that came (seconds since the epoch).
        pauses: the seconds between its steps, the first ones first.
        step_time: the usual seconds a step; nan where that is not known.
        step_times: the last seconds a step, each over as much time as those of the others, by the times of its lines.
        own_times: the last values of the times that it prints, by name.
    """

    label: str
    replica: str
    step: float
    moved_at: float
    pauses: Sequence[float]
    step_time: float
    step_times: Sequence[float]
    own_times: Mapping[str, Sequence[float]]


@lru_cache(maxsize=1024)
def is_own_time(name: str) -> bool:
    """Whether a value is how long the work of one rank takes."""
    return _OWN_TIME.fullmatch(name) is not None


def find_slow_replica(paces: Sequence[Pace], now: float) -> Observation | None:
    """Tell which replica is slow, with its times and those of the others of its role; None without evidence.

    Args:
        paces: of all replicas, or ranks in their logs.
        now: the time (seconds since the epoch). Replicas that make no steps any more are not compared.
    """
    groups: defaultdict[tuple[str, bool], list[Pace]] = defaultdict(list)
    for pace in paces:
        groups[pace.replica.rpartition("/")[0], pace.label == pace.replica].append(pace)
    for group in map(partial(_moving, now=now), groups.values()):
        names = dict.fromkeys(name for pace in group for name in pace.own_times)
        # A time of a part of the work says more than that of the step.
        for name in sorted(names, key=lambda name: "data" not in name.lower()):
            found = _slowest({pace: pace.own_times[name] for pace in _with(group, name)})
            if found is not None and _matters(*found, group, in_ms="ms" in name[-4:]):
                pace, own, usual = found
                words = f"its {name} is {own:.3g}, elsewhere {usual:.3g}"
                return _observation(pace, own / usual, words)
        found = _slowest({pace: pace.step_times for pace in group if len(pace.step_times) >= KEPT_TIMES})
        if found is not None:
            pace, own, usual = found
            scale, unit = (1.0, "s") if own >= 1 else (1000.0, "ms")
            words = f"a step takes {own * scale:.3g} {unit}, elsewhere {usual * scale:.3g} {unit}"
            step = median(other.step for other in group if other is not pace)
            behind = f"; it is at step {pace.step:,.0f}, the others at {step:,.0f}" if pace.step < step else ""
            return _observation(pace, own / usual, words + behind)
    return None


def _moving(group: Sequence[Pace], now: float) -> list[Pace]:
    """Return who still makes steps; the limit of the others holds for who was looked at too seldom to have its own."""
    limits = {pace: pause_limit(pace.pauses) for pace in group}
    shortest = min((limit for limit in limits.values() if limit is not None), default=-math.inf)
    return [pace for pace, limit in limits.items() if now - pace.moved_at <= (shortest if limit is None else limit)]


def _with(group: Sequence[Pace], name: str) -> Iterator[Pace]:
    return (pace for pace in group if len(pace.own_times.get(name, ())) >= KEPT_TIMES)


def _slowest(times: Mapping[Pace, Sequence[float]]) -> tuple[Pace, float, float] | None:
    """Return who is slow, its usual time and that of the others; None where nobody is."""
    if len(times) < 2:
        return None
    usual = {pace: median(values) for pace, values in times.items()}
    slowest = max(usual, key=lambda pace: usual[pace])
    elsewhere = [value for pace, values in times.items() if pace is not slowest for value in values]
    middle = median(elsewhere)
    above = sum(value > middle for value in times[slowest])
    if middle <= 0 or usual[slowest] < _SLOW * middle or above < _NEARLY_ALL * len(times[slowest]):
        return None
    return slowest, usual[slowest], middle


def _matters(pace: Pace, own: float, usual: float, group: Sequence[Pace], *, in_ms: bool) -> bool:
    """Whether what a part of the work takes too long is much of a step: its own, else that of the others."""
    known = [other.step_time for other in group if not math.isnan(other.step_time)]
    step_time = pace.step_time if not math.isnan(pace.step_time) else median(known or [math.inf])
    return (own - usual) / (1000 if in_ms else 1) >= _PART_OF_STEP * step_time


def _observation(pace: Pace, times: float, words: str) -> Observation:
    return Observation(Kind.SLOW, f"slow {times:.1f}x: {pace.label}, {words}", replica=pace.replica)
