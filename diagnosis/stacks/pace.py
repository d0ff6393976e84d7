"""Tell from two snapshots whether a job hangs, waits or moves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ..frames import Thread, main_frames
from ..progress.stalls import SHORTEST_PAUSE_S, pause_limit
from .groups import RankActivity, group_ranks, rank_states
from .snapshot import Pace, StackSnapshot

# Activities that may be a computation. Ranks that wait for a device use the CPU, too.
_MAY_COMPUTE = (
    RankActivity.LOADS, RankActivity.SAVES, RankActivity.COMPILES, RankActivity.ELSEWHERE, RankActivity.STARTING,
)  # fmt: skip
# A rank that uses fewer cores than this between two snapshots is idle.
_MIN_CORES, _TICKS_PER_S = 0.2, 100


def compare(snapshot: StackSnapshot, earlier: StackSnapshot) -> Pace:
    """Compare two snapshots of a job; return an empty text if they are not comparable.

    A job hangs if no collective ended, all stacks are equal, the wait is longer than its usual pauses, and no rank
    computes: a long call of a library and an endless loop look the same.
    """
    before, now = _last_collectives(earlier), _last_collectives(snapshot)
    common = before.keys() & now.keys()
    if any(before[rank] != now[rank] for rank in common):
        return "moves"
    if not common:
        frames = [
            (main_frames(earlier.ranks[rank].threads), main_frames(snapshot.ranks[rank].threads))
            for rank in snapshot.ranks.keys() & earlier.ranks.keys()
        ]
        if not frames or not all(first and second for first, second in frames):
            return ""
        if any(first != second for first, second in frames):
            return "moves"
    is_equal = _threads(snapshot) == _threads(earlier)
    return "hangs" if is_equal and waits_longer(snapshot) and not _computes(snapshot, earlier) else "waits"


def is_held_up(snapshot: StackSnapshot, earlier: StackSnapshot | None, pace: Pace) -> bool:
    """Return whether the ranks wait longer than usual.

    While the usual pauses are unknown, equal stacks and an idle CPU count as a long wait.
    """
    if not snapshot.ranks or pace in ("hangs", "moves"):
        return pace != "moves"
    if (is_longer := waits_longer(snapshot)) is not None:
        return is_longer
    waited = wait_seconds(snapshot)
    if earlier is None or (waited is not None and waited <= SHORTEST_PAUSE_S):
        return False
    is_idle = max(_cores(snapshot, earlier).values(), default=0.0) < _MIN_CORES
    return is_idle and _threads(snapshot) == _threads(earlier)


def waits_longer(snapshot: StackSnapshot) -> bool | None:
    """Return whether the wait is longer than the usual pauses; None if either is unknown."""
    waited = wait_seconds(snapshot)
    limits = [pause_limit(pauses) for pauses in (snapshot.pauses, _pauses(snapshot))]
    limit = max((limit for limit in limits if limit is not None), default=None)
    return None if waited is None or limit is None else waited > limit


def wait_seconds(snapshot: StackSnapshot) -> float | None:
    """Return the seconds since the last logged step or the start of the last collective; None if both are unknown."""
    ages = [] if snapshot.moved_at is None else [snapshot.at - snapshot.moved_at]
    for rank, dump in snapshot.dumps.items():
        began = max((call.created_ns for call in dump.collectives), default=0) / 1e9
        if began and (at := snapshot.recorded_at.get(rank)):
            ages.append(at - began)
    return max(0.0, min(ages)) if ages else None


def longest_pause(snapshot: StackSnapshot) -> float:
    """Return the longest of the latest pauses between steps or else between collectives, in seconds; 0 if unknown."""
    return max((snapshot.pauses or _pauses(snapshot))[-50:], default=0.0)


def _pauses(snapshot: StackSnapshot) -> Sequence[float]:
    """Return the seconds between the starts of collectives on the rank that recorded the most."""
    calls = max((dump.collectives for dump in snapshot.dumps.values()), key=len, default=())
    times = sorted(call.created_ns / 1e9 for call in calls if call.created_ns)
    return [after - before for before, after in itertools.pairwise(times)]


def _computes(snapshot: StackSnapshot, earlier: StackSnapshot) -> bool:
    cores = _cores(snapshot, earlier)
    busy = [group for group in group_ranks(rank_states(snapshot)) if group.activity in _MAY_COMPUTE]
    return any(cores.get(rank, 0.0) >= _MIN_CORES for group in busy for rank in group.ranks)


def _cores(snapshot: StackSnapshot, earlier: StackSnapshot) -> Mapping[int, float]:
    """Return the cores that each rank and its children used between two snapshots."""
    before = {(stack.host, stack.pid): stack.cpu for stack in earlier.processes}
    seconds = max(0.1, snapshot.at - earlier.at)
    used: dict[int, float] = {}
    for stack in snapshot.processes:
        ticks = stack.cpu - before.get((stack.host, stack.pid), 0)
        used[stack.rank] = used.get(stack.rank, 0.0) + ticks / _TICKS_PER_S / seconds
    return used


def _threads(snapshot: StackSnapshot) -> dict[tuple[str, int], tuple[str, frozenset[Thread]]]:
    """Return the threads of every process, and its state if that is a stop."""
    return {
        (stack.host, stack.pid): (stack.state if stack.state in "TtD" else "", frozenset(stack.threads))
        for stack in snapshot.processes
    }


def _last_collectives(snapshot: StackSnapshot) -> dict[int, dict[str, int]]:
    """Return the progress of each rank in each process group: its last collective, and whether that is done."""
    progress: dict[int, dict[str, int]] = {}
    for rank, dump in snapshot.dumps.items():
        last = progress.setdefault(rank, {})
        for call in dump.collectives:
            last[call.group] = max(last.get(call.group, 0), 2 * call.seq + call.is_done)
    return progress
