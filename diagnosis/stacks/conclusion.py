"""Conclude from a snapshot which rank blocks a job, claiming no more than was seen.

The flight recorder comes before the stacks, since it shows which collective a rank has not reached; the rank's stack
then shows what it does instead. When ranks have ended, the one that ended first, or whose error is not a lost
connection, is the suspect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...logs.pattern.error_kinds import Role
from ...logs.pattern.error_reader import ReadError
from ..recorder.findings import Finding, find
from . import text
from .groups import RankActivity, RankGroup, group_ranks, outliers, rank_states
from .pace import compare, is_held_up, longest_pause, waits_longer
from .snapshot import Pace, ReplicaReply, StackSnapshot

# Shorter waits are no finding: ranks are read one after the other, and a running job waits all the time.
_MIN_WAIT_S = 1.0
# Ranks in these states block the others however short the wait.
_CERTAIN = (RankActivity.EXITED, RankActivity.STOPPED)


@dataclass(frozen=True)
class Conclusion:
    """The conclusion from a snapshot.

    Attributes:
        sentence: the conclusion.
        blocking: the ranks that block the others, or that ended the job; empty if unknown, and while the others wait
            no longer than usual.
        pace: whether the job hangs or moves, according to two snapshots.
        details: other findings, a sentence each, the most important first.
        finding: the finding of the flight recorder, if any.
        groups: the ranks by what they do.
        pace_sentence: the comparison of two snapshots in a sentence; empty if there is only one snapshot.
    """

    sentence: str
    blocking: tuple[int, ...]
    pace: Pace
    details: tuple[str, ...]
    finding: Finding | None
    groups: tuple[RankGroup, ...]
    pace_sentence: str


def conclude(
    snapshot: StackSnapshot, earlier: StackSnapshot | None = None, errors: Mapping[int, ReadError] | None = None
) -> Conclusion:
    """Conclude from a snapshot what the job waits for.

    Args:
        snapshot: the snapshot.
        earlier: a snapshot of the same job some seconds before; without one, `StackSnapshot.pace` counts.
        errors: the last error of each rank that has ended.
    """
    groups, errors = group_ranks(rank_states(snapshot)), errors or {}
    pace = compare(snapshot, earlier) if earlier is not None else snapshot.pace
    is_long = is_held_up(snapshot, earlier, pace)
    is_one_host = len({stack.host for stack in snapshot.ranks.values()}) <= 1
    found = find(snapshot.dumps, snapshot.world_size, is_one_host)
    settled = [each for each in found if _is_settled(each, snapshot, is_long)]
    finding = next(iter(settled), None)
    if finding and finding.kind == "straggler" and all(each.activity is RankActivity.WAITS for each in groups):
        finding = None  # a rank that was slow before is not the one they wait for now
    is_live = bool(snapshot.ranks)

    def describe(finding: Finding) -> str:
        return text.describe_finding(finding, is_live=is_live, is_one_host=is_one_host)

    if all(reply.has_ended for reply in snapshot.replies):
        sentence, blocking = _all_ended(snapshot, finding, errors, describe(finding) if finding else "")
    elif snapshot.exited:
        mismatch = describe(finding) if finding and finding.kind == "mismatch" else ""
        sentence, blocking = _some_ended(snapshot, groups, errors, mismatch)
    elif not is_live and finding and finding.kind != "unseen":
        sentence, blocking = describe(finding), finding.blocking
    elif not is_live:
        sentence, blocking = text.no_stacks(snapshot), ()
    elif finding and finding.kind not in ("unseen", "sources"):
        named = [(group, tuple(rank for rank in group.ranks if rank in finding.blocking)) for group in groups]
        shown = [replace(group, ranks=ranks) for group, ranks in named if ranks and finding.kind in ("missing", "p2p")]
        sentence, blocking = text.join(describe(finding), *map(text.describe_position, shown)), finding.blocking
    else:
        certain = tuple(rank for group in groups if group.activity in _CERTAIN for rank in group.ranks)
        blocking = outliers(groups) if is_long else certain
        sentence = text.describe_stacks(groups, describe(finding) if finding and not outliers(groups) else "")
    if is_live and pace == "moves" and (finding is None or finding.kind == "straggler"):
        sentence, blocking = text.join(text.MOVES, sentence), ()
    elif is_live and pace == "waits" and not blocking:
        sentence = text.join(text.no_progress(snapshot, earlier, longest_pause(snapshot)), sentence)
    starting = {rank for group in groups if group.activity is RankActivity.STARTING for rank in group.ranks}
    blocking = tuple(rank for rank in blocking if rank not in starting)
    details = [
        *text.describe_children(snapshot, blocking),
        *text.describe_age(finding, _wait_of(finding, snapshot)),
        *(describe(each) for each in settled if each is not finding),
        *text.describe_missing_recorders(snapshot),
    ]
    pace_sentence = text.describe_pace(pace, waits_longer(snapshot))
    return Conclusion(sentence, blocking, pace, tuple(details), finding, tuple(groups), pace_sentence)


def _wait_of(finding: Finding | None, snapshot: StackSnapshot) -> float | None:
    """Return the seconds that the ranks of a finding have waited, by the clock of their machine; None if unknown."""
    if finding is None or not finding.since_ns:
        return None
    at = max((snapshot.recorded_at.get(rank, 0.0) for rank in finding.waiting), default=0.0)
    return at - finding.since_ns / 1e9 if at else None


def _is_settled(finding: Finding, snapshot: StackSnapshot, is_long: bool) -> bool:
    """Return whether a wait is long enough to report. A mismatch never ends; other waits may be usual."""
    if finding.kind == "straggler" or not finding.since_ns or not snapshot.ranks:
        return True
    if finding.kind in ("missing", "stuck", "unseen", "sources") and not is_long:
        return False
    waited = _wait_of(finding, snapshot)
    return waited is None or waited >= _MIN_WAIT_S


def _some_ended(
    snapshot: StackSnapshot, groups: list[RankGroup], errors: Mapping[int, ReadError], mismatch: str
) -> tuple[str, tuple[int, ...]]:
    """Conclude for a job of which some ranks have ended: the first one to fail blocks the others."""
    ends = snapshot.ends
    has_failed = any(reply.signal or reply.exit_code for reply in ends.values())
    running = [group for group in groups if group.activity is not RankActivity.EXITED]
    # At the normal end of a job, the last ranks do not wait for those that have ended.
    waits = any(group.activity in (RankActivity.WAITS, RankActivity.ASYNC) for group in running)
    first = tuple(sorted(_first_to_end(ends, errors) if has_failed else ())) or tuple(sorted(snapshot.exited))
    later = tuple(sorted(snapshot.exited.keys() - set(first)))
    sentence = text.join(
        text.describe_exit(first, ends, later),
        text.describe_groups(running, is_rest=True) if running else "",
        mismatch if running else "",
    )
    return sentence, first if has_failed or waits else ()


def _all_ended(
    snapshot: StackSnapshot, finding: Finding | None, errors: Mapping[int, ReadError], described: str
) -> tuple[str, tuple[int, ...]]:
    """Conclude for a job that has ended: from the recorders of its failure, or from its ranks' ends and errors."""
    ends = snapshot.ends
    own = {rank: error.text for rank, error in errors.items() if not error.kind.is_consequence}
    if finding and finding.blocking and finding.kind in ("mismatch", "missing", "crossed", "p2p"):
        return text.with_error(described, next((own[k] for k in finding.blocking if k in own), "")), finding.blocking
    # Without a lost connection, nothing shows that the ranks depend on each other.
    lost = [rank for rank in ends if rank in errors and errors[rank].kind.role is Role.LOST_PEER]
    first = tuple(sorted(_first_to_end(ends, errors) if lost else ()))
    if not first or len(first) * 2 > len(ends) > 1:
        return text.describe_unexplained_end(ends, lost), ()
    later = [rank for rank in lost if rank not in first]
    return text.describe_first_end(first, ends[first[0]], own.get(first[0], ""), later), first


def _first_to_end(ends: Mapping[int, ReplicaReply], errors: Mapping[int, ReadError]) -> set[int]:
    """Return the ranks without a consequence as error, if others have one; or else the first rank that ended."""
    others = {rank for rank in ends if rank in errors and errors[rank].kind.is_consequence}
    if others and (suspects := ends.keys() - others):
        return suspects
    times = {rank: reply.ended_at for rank, reply in ends.items() if reply.ended_at}
    return {min(times, key=lambda rank: times[rank])} if len(times) == len(ends) > 1 else set()
