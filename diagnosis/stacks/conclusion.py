"""What a take means: which rank holds up the job, in a sentence that claims no more than was seen.

The flight recorder goes before the stacks, since it tells which collective a rank has not reached; the stack of that
rank then tells what it does instead. Of a job that is over, the rank that ended first or that has another error than a
lost connection is the suspect: torchrun's own root cause is whichever end it saw first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..recorder.verdict import Verdict, find_verdicts, name_ranks, without_dump
from .frames import main_frames, own_frame
from .groups import Group, Standing, describe_groups, group_ranks, says_nothing
from .take import Pace, Take

# A wait that has just begun is none: ranks are read one after the other, and a job that runs waits all the time.
_LEAST_WAIT_S = 1.0
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
        culprits: the ranks that hold up the others, or that ended it; empty where that cannot be told.
        pace: whether the job hangs or moves, where two takes tell.
        details: what else is worth knowing, a sentence each, the most telling first.
        verdict: what the flight recorder tells, if anything.
        groups: the ranks by where they stand.
    """

    sentence: str
    culprits: tuple[int, ...]
    pace: Pace
    details: tuple[str, ...]
    verdict: Verdict | None
    groups: tuple[Group, ...]


def conclude(take: Take, earlier: Take | None = None, errors: Mapping[int, str] | None = None) -> Conclusion:
    """Conclude from a take what the job waits for.

    Args:
        take: the take.
        earlier: one of the same job some seconds before; without one, what was found then counts.
        errors: of ranks that are over the end of what they wrote to stderr.
    """
    groups = group_ranks(take.states)
    pace = compare(take, earlier) if earlier is not None else take.pace
    is_one_host = len({stack.host for stack in take.ranks.values()}) <= 1
    verdicts = find_verdicts(take.dumps, take.world_size, is_one_host)
    verdict = next((found for found in verdicts if found.kind != "agree" and _is_settled(found, take)), None)
    if verdict is not None and verdict.kind == "straggler" and _all_wait(groups):
        # A rank that was slow before is not what they wait for now.
        verdicts, verdict = [verdict], None
    details = [
        found.sentence
        for found in verdicts
        if found is not verdict and found.kind != "agree" and _is_settled(found, take)
    ]
    if without := without_dump(take.dumps, take.world_size) if take.dumps else ():
        details.append(f"no flight recorder of {name_ranks(without)}")
    if all(reply.has_ended for reply in take.replies):
        sentence, culprits = _ended(take, verdict, errors or {})
    elif take.exited:
        sentence, culprits = _partly_ended(take, groups, verdict)
    elif not take.ranks:
        sentence, culprits = _not_read(take, verdict)
    elif verdict is not None and verdict.kind != "unseen":
        sentence, culprits = _by_recorder(groups, verdict), verdict.culprits
    else:
        sentence, culprits = _by_stacks(groups, verdict), _outliers(groups)
    if pace == "moves" and (verdict is None or verdict.kind == "straggler"):
        sentence = f"it moves, it does not hang; {sentence}"
    details = [*_children(take, culprits), *_waiting_for(verdict, take), *details]
    return Conclusion(sentence, culprits, pace, tuple(details), verdict, tuple(groups))


def compare(take: Take, earlier: Take) -> Pace:
    """Tell whether a job moved between two takes; nothing where that cannot be told."""
    before, now = _progress(earlier), _progress(take)
    common = before.keys() & now.keys()
    if common:
        return "moves" if any(before[rank] != now[rank] for rank in common) else "hangs"
    ranks = take.ranks.keys() & earlier.ranks.keys()
    stood = [(main_frames(earlier.ranks[rank].threads), main_frames(take.ranks[rank].threads)) for rank in ranks]
    if not stood or not all(before and after for before, after in stood):
        return ""
    return "hangs" if all(before == after for before, after in stood) else "moves"


def _progress(take: Take) -> dict[int, frozenset[tuple[str, int]]]:
    """Return the last number of each group, by rank."""
    progress = {}
    for rank, dump in take.dumps.items():
        last: dict[str, int] = {}
        for call in dump.collectives:
            last[call.group] = max(last.get(call.group, 0), 2 * call.seq + call.is_done)
        progress[rank] = frozenset(last.items())
    return progress


def _is_settled(verdict: Verdict, take: Take) -> bool:
    """Tell whether a wait has lasted long enough to be one."""
    if verdict.kind in ("straggler", "agree") or not verdict.since_ns or not take.ranks:
        return True
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
    waits = "waits" if len(verdict.waiting) == 1 else "wait"
    age = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return [f"{name_ranks(verdict.waiting)} {waits} since {age}"]


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
    others = [group for group in known if group.standing not in (Standing.WAITS, Standing.ASYNC)]
    if waiting and others:
        return tuple(sorted(rank for group in others for rank in group.ranks))
    if len(waiting) == 2 and len(known) == 2 and len(waiting[0].ranks) < len(waiting[1].ranks):
        return waiting[0].ranks
    return ()


def _partly_ended(take: Take, groups: list[Group], verdict: Verdict | None) -> tuple[str, tuple[int, ...]]:
    culprits = tuple(sorted(take.exited))
    ends = {rank: reply.end_words if reply else "" for rank, reply in take.exited.items()}
    words = ", ".join(dict.fromkeys(filter(None, ends.values())))
    sentence = f"{name_ranks(culprits)} {Standing.EXITED.words(len(culprits))}{f' ({words})' if words else ''}"
    rest = [group for group in groups if group.standing is not Standing.EXITED]
    waits = f"; {verdict.sentence}" if verdict is not None and verdict.kind == "mismatch" else ""
    told = describe_groups(rest).replace("all ", "the other ", 1) if rest else ""
    return f"{sentence}; {told}{waits}" if rest else sentence, culprits


def _not_read(take: Take, verdict: Verdict | None) -> tuple[str, tuple[int, ...]]:
    """Conclude for a running job of which no rank was found, such as one without Python."""
    if verdict is not None and verdict.kind != "unseen":
        return verdict.sentence, verdict.culprits
    reasons = ", ".join(dict.fromkeys(reply.error for reply in take.replies if reply.error))
    return f"no stacks of this running job: {reasons or 'no Python process was found'}", ()


def _ended(take: Take, verdict: Verdict | None, errors: Mapping[int, str]) -> tuple[str, tuple[int, ...]]:
    """Conclude for a job that is over: what the recorders of its failure tell, who ended first, and who says more."""
    ends = {rank: reply for rank, reply in take.exited.items() if reply is not None}
    own = {rank: line for rank in ends if (line := own_error(errors.get(rank, "")))}
    lost = {rank for rank in ends if rank not in own and _LOST.search(errors.get(rank, ""))}
    if verdict is not None and verdict.kind in ("mismatch", "missing", "crossed", "p2p") and verdict.culprits:
        told = next((own[rank] for rank in verdict.culprits if rank in own), "")
        return f"{verdict.sentence}{f'; it says: {told}' if told else ''}", verdict.culprits
    # Without a rank that lost its connection nothing says that they had to do with each other.
    suspects = {rank for rank in ends if rank not in lost} if lost else set()
    times = {rank: reply.ended_at for rank, reply in ends.items() if reply.ended_at}
    if lost and not suspects and len(times) == len(ends) > 1:
        suspects = {min(times, key=lambda rank: times[rank] or 0.0)}
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
