"""What a take means: which rank holds up the job, in a sentence that claims no more than was seen.

The flight recorder goes before the stacks, since it tells which collective a rank has not reached; the stack of that
rank then tells what it does instead. Of a job that is over, the rank that ended first or that has another error than a
lost connection is the suspect: torchrun's own root cause is whichever end it saw first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...base.durations import duration
from ..progress.stalls import SHORTEST_PAUSE_S, pause_limit
from ..recorder.verdict import Verdict, find_verdicts, name_ranks, without_dump
from .frames import Thread, main_frames, own_frame
from .groups import Group, Standing, describe_groups, group_ranks, says_nothing
from .take import Pace, ReplicaReply, Take

# A wait that has just begun is none: ranks are read one after the other, and a job that runs waits all the time.
_LEAST_WAIT_S = 1.0
# A rank in one of these states holds up the others at once, however short the wait.
_CERTAIN = (Standing.EXITED, Standing.STOPPED)
# A rank that stands here may compute for as long as it uses the CPU. Ranks that wait for a device use it too.
_MAY_COMPUTE = (Standing.LOADS, Standing.SAVES, Standing.COMPILES, Standing.ELSEWHERE, Standing.STARTING)
# A rank that uses fewer cores than this between two snapshots is not working.
_WORKS_CORES, _TICKS_PER_S = 0.2, 100
_LOST = re.compile(
    r"Connection (?:closed|reset|refused)|Broken pipe|Socket closed|connection was (?:closed|reset)"
    r"|NCCL communicator was aborted|NCCL remote|remote process exited|SIGTERM|closing signal|Socket Timeout"
    r"|failed to (?:recv|send)",
    re.IGNORECASE,
)
# Of gloo and of NCCL's watchdog.
_TIMED_OUT = re.compile(r"Timed out waiting \d+ ?ms for |collective operation timeout", re.IGNORECASE)
_ERROR = re.compile(
    r"^(?:\S+: )?(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*|terminate called.*|Killed|.*what\(\): .*)"
)


@dataclass(frozen=True)
class Conclusion:
    """What was found out.

    Args:
        sentence: the finding.
        culprits: the ranks that hold up the others, or that ended the job; empty if unknown, and while the others wait
            no longer than usual.
        pace: whether the job hangs or moves, where two takes tell.
        details: what else is worth knowing, a sentence each, the most telling first.
        verdict: what the flight recorder tells, if anything.
        groups: the ranks by where they stand.
        pace_sentence: the comparison of two snapshots in a sentence; empty if there is only one snapshot.
    """

    sentence: str
    culprits: tuple[int, ...]
    pace: Pace
    details: tuple[str, ...]
    verdict: Verdict | None
    groups: tuple[Group, ...]
    pace_sentence: str


def conclude(take: Take, earlier: Take | None = None, errors: Mapping[int, str] | None = None) -> Conclusion:
    """Conclude from a take what the job waits for.

    Args:
        take: the take.
        earlier: one of the same job some seconds before; without one, what was found then counts.
        errors: of ranks that are over the end of what they wrote to stderr.
    """
    groups = group_ranks(take.states)
    pace = compare(take, earlier) if earlier is not None else take.pace
    is_held_up = _is_held_up(take, earlier, pace)
    is_one_host = len({stack.host for stack in take.ranks.values()}) <= 1
    verdicts = find_verdicts(take.dumps, take.world_size, is_one_host)
    settled = [found for found in verdicts if found.kind != "agree" and _is_settled(found, take, is_held_up)]
    verdict = next(iter(settled), None)
    if verdict is not None and verdict.kind == "straggler" and _all_wait(groups):
        # A rank that was slow before is not what they wait for now.
        settled, verdict = [verdict], None
    details = [found.sentence for found in settled if found is not verdict]
    if without := without_dump(take.dumps, take.world_size) if take.dumps else ():
        details.append(f"no flight recorder of {name_ranks(without)}")
    if all(reply.has_ended for reply in take.replies):
        sentence, culprits = _ended(take, verdict, errors or {})
    elif take.exited:
        sentence, culprits = _partly_ended(take, groups, verdict, errors or {})
    elif not take.ranks:
        sentence, culprits = _not_read(take, verdict)
    elif verdict is not None and verdict.kind not in ("unseen", "sources"):
        sentence, culprits = _by_recorder(groups, verdict), verdict.culprits
    else:
        certain = tuple(rank for group in groups if group.standing in _CERTAIN for rank in group.ranks)
        sentence, culprits = _by_stacks(groups, verdict), _outliers(groups) if is_held_up else certain
    if take.ranks and pace == "moves" and (verdict is None or verdict.kind == "straggler"):
        sentence, culprits = f"it moves, it does not hang; {sentence}", ()
    elif take.ranks and pace == "waits" and not culprits:
        usual = _longest_pause_text(take)
        sentence = f"{_seconds_apart(take, earlier)}{f' ({usual})' if usual else ''}; {sentence}"
    starting = {rank for group in groups if group.standing is Standing.STARTING for rank in group.ranks}
    culprits = tuple(rank for rank in culprits if rank not in starting)
    details = [*_children(take, culprits), *_waiting_for(verdict, take), *details]
    return Conclusion(sentence, culprits, pace, tuple(details), verdict, tuple(groups), _describe_pace(pace, take))


def _describe_pace(pace: Pace, take: Take) -> str:
    if pace == "hangs":
        return "Two snapshots are equal, and the wait is longer than usual: it hangs."
    if pace != "waits":
        return "Two snapshots differ: it moves." if pace else ""
    waited, limit = wait_seconds(take), usual_limit(take)
    if waited is None or limit is None:
        return "Two snapshots show no progress; how long its usual pauses are is not known yet."
    if waited <= limit:
        return "Two snapshots show no progress, for no longer than usual."
    return "Two snapshots show no progress, for longer than usual; a rank may still be computing."


def compare(take: Take, earlier: Take) -> Pace:
    """Compare two snapshots of a job; return an empty text if they are not comparable.

    A job hangs if no collective ended, all stacks are equal, the wait is longer than its usual pauses, and no rank
    computes: a long call of a library and an endless loop look the same.
    """
    before, now = _progress(earlier), _progress(take)
    common = before.keys() & now.keys()
    if any(before[rank] != now[rank] for rank in common):
        return "moves"
    ranks = take.ranks.keys() & earlier.ranks.keys()
    stood = [(main_frames(earlier.ranks[rank].threads), main_frames(take.ranks[rank].threads)) for rank in ranks]
    if not common:
        if not stood or not all(before and after for before, after in stood):
            return ""
        if any(before != after for before, after in stood):
            return "moves"
    waited, limit = wait_seconds(take), usual_limit(take)
    is_longer = waited is not None and limit is not None and waited > limit
    is_equal = _stacks(take) == _stacks(earlier)
    return "hangs" if is_longer and is_equal and not _computes(take, earlier) else "waits"


def _computes(take: Take, earlier: Take) -> bool:
    """Return whether a rank that does not wait used the CPU between two snapshots."""
    cores = _used_cores(take, earlier)
    ranks = [rank for group in group_ranks(take.states) if group.standing in _MAY_COMPUTE for rank in group.ranks]
    return any(cores.get(rank, 0.0) >= _WORKS_CORES for rank in ranks)


def _used_cores(take: Take, earlier: Take) -> dict[int, float]:
    """Return the cores that each rank used between two snapshots, its children included."""
    ticks = {(stack.host, stack.pid): stack.cpu for stack in earlier.processes}
    seconds = max(0.1, take.at - earlier.at)
    used: dict[int, float] = {}
    for stack in take.processes:
        before = ticks.get((stack.host, stack.pid), 0)
        used[stack.rank] = used.get(stack.rank, 0.0) + (stack.cpu - before) / _TICKS_PER_S / seconds
    return used


def wait_seconds(take: Take) -> float | None:
    """Return the seconds since the last step was printed or the last collective began; None if neither is known."""
    ages = [] if take.moved_at is None else [take.at - take.moved_at]
    for rank, dump in take.dumps.items():
        began = max((call.created_ns for call in dump.collectives), default=0) / 1e9
        if began and (at := take.recorded_at.get(rank)):
            ages.append(at - began)
    return max(0.0, min(ages)) if ages else None


def usual_limit(take: Take) -> float | None:
    """Return the longest usual pause between steps or collectives, in seconds; None if too few are known."""
    limits = [limit for pauses in (take.pauses, _gaps(take)) if (limit := pause_limit(pauses)) is not None]
    return max(limits, default=None)


def _gaps(take: Take) -> list[float]:
    """Return the seconds between the starts of collectives on the rank that recorded the most."""
    calls = max((dump.collectives for dump in take.dumps.values()), key=len, default=())
    times = sorted(call.created_ns / 1e9 for call in calls if call.created_ns)
    return [after - before for before, after in itertools.pairwise(times)]


def _longest_pause_text(take: Take) -> str:
    pauses = take.pauses or _gaps(take)
    longest = max(pauses[-50:], default=0.0)
    return f"the longest pause was {duration(longest) if longest >= 10 else f'{longest:.1f} s'}" if longest else ""


def _seconds_apart(take: Take, earlier: Take | None) -> str:
    what = "collective ended" if take.dumps else "stack changed"
    return f"no {what} within {take.at - earlier.at:.0f} s" if earlier is not None else f"no {what}"


def _stacks(take: Take) -> dict[tuple[str, int], tuple[str, frozenset[Thread]]]:
    """Return the state and all stacks of every process."""
    return {
        (stack.host, stack.pid): (stack.state if stack.state in "TtD" else "", frozenset(stack.threads))
        for stack in take.processes
    }


def _is_held_up(take: Take, earlier: Take | None, pace: Pace) -> bool:
    """Return whether the ranks wait longer than usual.

    While the usual pauses of the job are unknown, equal stacks and an idle CPU count as a long wait.
    """
    if not take.ranks or pace == "hangs":
        return True
    if pace == "moves":
        return False
    waited, limit = wait_seconds(take), usual_limit(take)
    if waited is not None and limit is not None:
        return waited > limit
    if earlier is None or (waited is not None and waited <= SHORTEST_PAUSE_S):
        return False
    most = max(_used_cores(take, earlier).values(), default=0.0)
    return most < _WORKS_CORES and _stacks(take) == _stacks(earlier)


def _progress(take: Take) -> dict[int, frozenset[tuple[str, int]]]:
    """Return the last number of each group, by rank."""
    progress = {}
    for rank, dump in take.dumps.items():
        last: dict[str, int] = {}
        for call in dump.collectives:
            last[call.group] = max(last.get(call.group, 0), 2 * call.seq + call.is_done)
        progress[rank] = frozenset(last.items())
    return progress


def _is_settled(verdict: Verdict, take: Take, is_held_up: bool) -> bool:
    """Return whether a wait is long enough to report. A mismatch never ends, other waits may be usual."""
    if verdict.kind in ("straggler", "agree") or not verdict.since_ns or not take.ranks:
        return True
    if verdict.kind in ("missing", "stuck", "unseen", "sources") and not is_held_up:
        return False
    at = max((take.recorded_at.get(rank, 0.0) for rank in verdict.waiting), default=0.0)
    return not at or at - verdict.since_ns / 1e9 >= _LEAST_WAIT_S


def _by_recorder(groups: list[Group], verdict: Verdict) -> str:
    reached = "has not reached" if len(verdict.culprits) == 1 else "have not reached"
    parts = [verdict.sentence.replace("never reached", reached)]
    for group in groups:
        ranks = tuple(rank for rank in group.ranks if rank in verdict.culprits)
        if ranks and group.standing is not Standing.UNREAD and verdict.kind in ("missing", "p2p"):
            parts.append(describe_groups([replace(group, ranks=ranks)]))
    return "; ".join(parts)


def _waiting_for(verdict: Verdict | None, take: Take) -> list[str]:
    """Say since when ranks wait, by the clock of their machine."""
    if verdict is None or not verdict.since_ns or not verdict.waiting:
        return []
    at = max((take.recorded_at.get(rank, 0.0) for rank in verdict.waiting), default=0.0)
    seconds = at - verdict.since_ns / 1e9
    if not at or seconds < 0:
        return []
    have = "has" if len(verdict.waiting) == 1 else "have"
    age = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return [f"{name_ranks(verdict.waiting)} {have} waited for {age}"]


def _by_stacks(groups: list[Group], verdict: Verdict | None) -> str:
    sentence = describe_groups(groups)
    if verdict is not None and not _outliers(groups):
        return f"{verdict.sentence}; {sentence}"
    if says_nothing(groups) and verdict is None and groups[0].standing is Standing.WAITS:
        sentence += ": the stacks name no rank"
    return sentence


def _all_wait(groups: list[Group]) -> bool:
    return all(group.standing is Standing.WAITS for group in groups)


def _outliers(groups: list[Group]) -> tuple[int, ...]:
    """Return the ranks that do not wait, where others do; of those that wait in different places the few."""
    known = [group for group in groups if group.standing is not Standing.UNREAD]
    waiting = [group for group in known if group.standing is Standing.WAITS]
    others = [group for group in known if group.standing not in (Standing.WAITS, Standing.ASYNC, Standing.STARTING)]
    if waiting and others:
        return tuple(sorted(rank for group in others for rank in group.ranks))
    if len(waiting) == 2 and len(known) == 2 and len(waiting[0].ranks) < len(waiting[1].ranks):
        return waiting[0].ranks
    return ()


def _partly_ended(
    take: Take, groups: list[Group], verdict: Verdict | None, errors: Mapping[int, str]
) -> tuple[str, tuple[int, ...]]:
    ends = {rank: reply for rank, reply in take.exited.items() if reply is not None}
    has_failed = any(reply.signal or reply.exit_code for reply in ends.values())
    rest = [group for group in groups if group.standing is not Standing.EXITED]
    # At the end of a job some ranks end before the others, which do not wait for them.
    is_end = not has_failed and not any(group.standing in (Standing.WAITS, Standing.ASYNC) for group in rest)
    # The end of one rank ends the next: the first is to blame.
    first = _first_to_end(ends, _lost_connection(ends, errors)) if has_failed else set()
    culprits = tuple(sorted(first or take.exited))
    parts = [_exited_words(culprits, ends)]
    if later := tuple(sorted(take.exited.keys() - set(culprits))):
        parts.append(f"{name_ranks(later)} ended after that")
    if rest:
        parts.append(describe_groups(rest).replace("all ", "the other ", 1))
        if verdict is not None and verdict.kind == "mismatch":
            parts.append(verdict.sentence)
    return "; ".join(parts), () if is_end else culprits


def _exited_words(ranks: tuple[int, ...], ends: Mapping[int, ReplicaReply]) -> str:
    words = ", ".join(dict.fromkeys(ends[rank].end_words for rank in ranks if rank in ends))
    return f"{name_ranks(ranks)} {Standing.EXITED.words(len(ranks))}{f' ({words})' if words else ''}"


def _lost_connection(ends: Mapping[int, ReplicaReply], errors: Mapping[int, str]) -> set[int]:
    """Return the ranks whose last error is that they lost the connection to another."""
    return {rank for rank in ends if not own_error(text := errors.get(rank, "")) and _LOST.search(text)}


def _first_to_end(ends: Mapping[int, ReplicaReply], lost: set[int]) -> set[int]:
    """Return the ranks that did not only lose a connection, else the one that ended first; empty if unknown."""
    if lost and (suspects := ends.keys() - lost):
        return suspects
    times = {rank: reply.ended_at for rank, reply in ends.items() if reply.ended_at}
    return {min(times, key=lambda rank: times[rank])} if len(times) == len(ends) > 1 else set()


def _not_read(take: Take, verdict: Verdict | None) -> tuple[str, tuple[int, ...]]:
    """Conclude for a running job without a readable rank, such as a job without Python."""
    if verdict is not None and verdict.kind != "unseen":
        return verdict.sentence, verdict.culprits
    reasons = ", ".join(dict.fromkeys(reply.error for reply in take.replies if reply.error))
    return f"no stacks of this running job: {reasons or 'no Python process was found'}", ()


def _ended(take: Take, verdict: Verdict | None, errors: Mapping[int, str]) -> tuple[str, tuple[int, ...]]:
    """Conclude for a job that is over: what the recorders of its failure tell, who ended first, and who says more."""
    ends = {rank: reply for rank, reply in take.exited.items() if reply is not None}
    own = {rank: line for rank in ends if (line := own_error(errors.get(rank, "")))}
    lost = _lost_connection(ends, errors)
    if verdict is not None and verdict.kind in ("mismatch", "missing", "crossed", "p2p") and verdict.culprits:
        told = next((own[rank] for rank in verdict.culprits if rank in own), "")
        return f"{verdict.sentence}{f'; it says: {told}' if told else ''}", verdict.culprits
    # Without a rank that lost its connection nothing says that they had to do with each other.
    suspects = _first_to_end(ends, lost) if lost else set()
    if not suspects or len(suspects) * 2 > len(ends) > 1:
        return _all_ended(ends), ()
    culprits = tuple(sorted(suspects))
    first = culprits[0]
    says = f", and says: {own[first]}" if first in own else ""
    others = f"; {name_ranks(lost)} then lost the connection to it" if lost and len(culprits) == 1 else ""
    return f"{name_ranks(culprits)} ended first ({ends[first].end_words}){says}{others}", culprits


def _all_ended(ends: Mapping[int, object]) -> str:
    return (
        "the job has ended, and no rank says anything about another"
        if ends
        else "the job has ended: there are no stacks"
    )


def is_lost(text: str) -> bool:
    """Tell whether a line says that a connection was lost, which is never the cause."""
    return _LOST.search(text) is not None


def is_timeout(text: str) -> bool:
    """Tell whether an error is that a collective took too long: who says so waited for another rank."""
    return _TIMED_OUT.search(text) is not None


def own_error(text: str) -> str:
    """Return the last line of an output that is an error of the rank's own; empty where it lost a connection only."""
    for line in reversed(text.splitlines()):
        line = line.strip()
        if _LOST.search(line):
            return ""
        if _ERROR.match(line):
            return line[:300]
    return ""


def _children(take: Take, culprits: tuple[int, ...]) -> list[str]:
    """Tell of the children of the culprits that do something of the user's, or that the kernel holds."""
    found = []
    for stack in take.processes:
        if stack.is_main or stack.rank not in culprits:
            continue
        frame = own_frame(stack.threads)
        if stack.state == "D":
            found.append(f"rank {stack.rank}'s {stack.name} ({stack.pid}) is held by the kernel: {stack.waits_for}")
        elif frame is not None:
            found.append(f"rank {stack.rank}'s {stack.name} ({stack.pid}) is in {frame.function}, {frame.place}")
    return found[:4]
