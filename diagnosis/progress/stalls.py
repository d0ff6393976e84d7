"""Whether a job still advances, and whether its loss is well: evidence or silence.

A pause is long where it is longer than 30 s, than ten times the usual pause and than one and a half times the longest
so far: in trials this raised no alarm in healthy runs but for the first long evaluation or checkpoint, and these say
what they are in a line, which excuses the pause.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from ...base.durations import duration
from ..metrics.series import Series
from .prefilter import compile_needles

SHORTEST_PAUSE_S = 30.0
"""No pause that is shorter is long, whatever is usual (s)."""
_MEDIANS, _LAST_PAUSES = 10.0, 50
_LONGEST, _REMEMBERED_PAUSES = 1.5, 200
_FEWEST_PAUSES = 5
# The first steps compile and warm up.
_WARM_UP_PAUSES = 2
# A pause with an excuse may be so many times as long, and at least so long (s).
_EXCUSED_TIMES, _EXCUSED_S = 3.0, 600.0
# A process that uses less of one core than this does nothing.
_IDLE_CORES = 0.05
# Ranks that spin in a collective use whole cores, to within this part of one; so may a single process that works.
_WHOLE_CORES, _FEWEST_SPINNING = 0.1, 1.5
_BUSY_CORES = 0.5
# Output that is buffered comes in blocks of this size (bytes), and is missed after so long (s).
_BUFFER = 4096
_BUFFERED_AFTER_S = 60.0
_MADS, _SPIKE_POINTS, _FEWEST_SPIKE_POINTS = 8.0, 100, 20
_LOSS = re.compile(r"(?i)(?:^|[_/ ])(?:nll_?|lm |ce ?)?loss$")
_NAN_COUNTER = "number of nan iterations"
EXCUSES = compile_needles(
    text=rb"(?i)evaluat|validat|checkpoint|saving|compil|autotun|download|warm[ -]?up|inferen|predict|generat|upload"
    rb"|(?:^|[^a-z])(?:test(?:s|ing)?|eval|sampl(?:e|es|ing)|writ(?:e|es|ing)|dump(?:s|ing)?|sync(?:s|ing|hroniz\w*)?)"
    rb"(?:[^a-z]|$)"
)
"""Words of lines that say why no step comes."""


class Kind(Enum):
    """What is the matter."""

    QUIET = "quiet"
    STALLED = "stalled"
    BUFFERED = "buffered"
    NAN = "nan"
    SPIKE = "spike"
    SLOW = "slow"


@dataclass(frozen=True)
class Observation:
    """Something that should be known of a running job.

    Attributes:
        kind: what it is.
        sentence: the same as a sentence, with its evidence.
        since: since when (seconds since the epoch); nan where that is not known.
        seconds: how long the job has paused; nan for the others.
        replica: which replica it is about, such as ``trainer/0``; empty where it is about the job.
    """

    kind: Kind
    sentence: str
    since: float = math.nan
    seconds: float = math.nan
    replica: str = ""


def pause_limit(pauses: Sequence[float]) -> float | None:
    """Return after how many seconds without a step a pause is long; None while too few steps are known.

    Args:
        pauses: the seconds between steps, the first ones first.
    """
    counted = list(pauses)[_WARM_UP_PAUSES:][-_REMEMBERED_PAUSES:]
    if len(counted) < _FEWEST_PAUSES:
        return None
    return max(SHORTEST_PAUSE_S, _MEDIANS * median(counted[-_LAST_PAUSES:]), _LONGEST * max(counted))


def find_pause(
    pauses: Sequence[float],
    moved_at: float | None,
    printed_at: float | None,
    now: float,
    *,
    is_excused: bool = False,
    cores: Collection[float] = (),
) -> Observation | None:
    """Tell whether no step has come for long.

    Args:
        pauses: the seconds between steps, the first ones first.
        moved_at: when the last step came (seconds since the epoch).
        printed_at: when any replica last printed anything.
        now: the time.
        is_excused: a line since the last step says that the job evaluates, saves or compiles.
        cores: how many processor cores each replica uses; empty where that is not known.

    Returns:
        a quiet note, or that the job is stalled: nothing else moves either.
    """
    limit = pause_limit(pauses)
    if limit is None or moved_at is None:
        return None
    is_idle = bool(cores) and all(share < _IDLE_CORES for share in cores)
    spins = sum(cores) > _FEWEST_SPINNING and all(
        round(share) and abs(share - round(share)) < _WHOLE_CORES for share in cores
    )
    works = bool(cores) and not is_idle and not spins
    if is_excused:
        limit = max(limit * _EXCUSED_TIMES, _EXCUSED_S)
    passed = now - moved_at
    if passed <= limit:
        return None
    usual = median(list(pauses)[-_LAST_PAUSES:])
    text = f"no step for {_pause(passed)}, usually {_pause(usual)}"
    is_silent = printed_at is None or now - printed_at >= max(SHORTEST_PAUSE_S, limit / 2)
    # Work that prints nothing, such as an evaluation, is a stall only when no excuse would hold either.
    is_working = works and passed <= max(limit * _EXCUSED_TIMES, _EXCUSED_S)
    if (not is_silent and not is_idle) or is_working:
        return Observation(Kind.QUIET, text, moved_at, passed)
    evidence = ["no replica prints anything"] if is_silent else []
    evidence += ["none uses its CPU"] if is_idle else []
    evidence += ["all use their CPU alike"] if spins else []
    return Observation(Kind.STALLED, f"{text}; {' and '.join(evidence)}", moved_at, passed)


def find_buffered_output(size: int, printed_at: float, now: float, cores: Collection[float]) -> Observation | None:
    """Tell whether a job works while its output is held back in a buffer.

    Args:
        size: the bytes that it has printed.
        printed_at: when it last printed, or started (seconds since the epoch).
        now: the time.
        cores: how many processor cores each replica uses.
    """
    works = bool(cores) and max(cores) >= _BUSY_CORES
    if not works or now - printed_at < _BUFFERED_AFTER_S or size % _BUFFER:
        return None
    passed = _pause(now - printed_at)
    sentence = f"nothing was printed for {passed}, but it uses its CPU: is PYTHONUNBUFFERED=1 set?"
    return Observation(Kind.BUFFERED, sentence, printed_at)


def check_loss(series: Mapping[str, Series]) -> list[Observation]:
    """Tell what is wrong with losses: not a number, or far above the last ones."""
    found = []
    counter = series.get(_NAN_COUNTER)
    if counter is not None and counter.last > 0:
        found.append(Observation(Kind.NAN, f"{_NAN_COUNTER}: {counter.printed}"))
    for name, metric in series.items():
        if not _LOSS.search(name):
            continue
        if not math.isfinite(metric.last):
            found.append(Observation(Kind.NAN, f"{name} is {metric.printed}, {_times(metric.gaps)}"))
            continue
        limit = _spike_limit(metric.means()[-_SPIKE_POINTS - 1 : -1]) if metric.width == 1 else None
        if limit is not None and metric.last > limit:
            sentence = f"{name} jumped to {metric.printed}, far above the last {_SPIKE_POINTS}"
            found.append(Observation(Kind.SPIKE, sentence))
    return found


def _spike_limit(values: Sequence[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    if len(known) < _FEWEST_SPIKE_POINTS:
        return None
    middle = median(known)
    spread = median(abs(value - middle) for value in known)
    return middle + _MADS * spread if spread > 0 else None


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _pause(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else duration(seconds)
