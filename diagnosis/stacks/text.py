"""The sentences about snapshots, made from data only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...base.durations import duration
from ..frames import child_frame, user_frame
from ..ranks import name_ranks
from ..recorder.dump import Collective
from ..recorder.findings import DEFAULT_GROUP, Finding, RankPosition
from .groups import STORE_KEY, RankActivity, RankGroup
from .snapshot import Pace, ProcessStack, ReplicaReply, StackSnapshot

MOVES = "the job is making progress"
_ACTIVITIES = {
    RankActivity.EXITED: "has exited",
    RankActivity.STOPPED: "is stopped by a signal",
    RankActivity.HELD: "is held by the kernel",
    RankActivity.LOADS: "is in the data loader",
    RankActivity.SAVES: "saves a checkpoint",
    RankActivity.COMPILES: "compiles",
    RankActivity.ELSEWHERE: "is at",
    RankActivity.STARTING: "is starting",
    RankActivity.ENDING: "is ending",
    RankActivity.UNREAD: "was not read",
    RankActivity.ASYNC: "waits for the device",
    RankActivity.WAITS: "waits for others",
}
_PLURALS = {"has": "have", "is": "are", "was": "were"}
_MAX_NAMED, _MAX_GROUPS, _MAX_CHILDREN, _MAX_SHAPES = 3, 4, 4, 4
_BROKEN_LINK = "a slow or broken link, or a kernel that hangs"


def join(*clauses: str) -> str:
    """Join clauses to a sentence."""
    return "; ".join(clause for clause in clauses if clause)


# ---- Flight recorders


def describe_finding(found: Finding, *, is_live: bool = False, is_one_host: bool = True) -> str:
    """Describe a finding of the flight recorders.

    Args:
        found: the finding.
        is_live: whether the job runs, so that a missing rank may still come.
        is_one_host: whether all ranks run on one host.
    """
    call = found.collective
    assert call is not None
    if found.kind == "mismatch":
        return _describe_mismatch(found, call)
    at, group = _at(call), _group_name(call)
    target = f"{call.op} #{call.seq}{group}"
    blocking, waits, others = name_ranks(found.blocking), _does(found.waiting, "waits"), name_ranks(found.others)
    if found.kind == "missing":
        reached = f"{_verb(found.blocking, 'has')} not reached" if is_live else "never reached"
        last = "".join(f"its last was {_call(position)}" for position in found.positions)
        return join(f"{blocking} {reached} {target}, where {waits}{at}", last)
    if found.kind == "crossed":
        parts = " and ".join(f"{_does(each.ranks, 'waits')} in {_call(each)}" for each in found.positions)
        if len(found.positions) == 1:
            return f"{parts}; no other rank of that group is in it"
        return f"{parts}; each waits for a rank that waits in the other group: they use the groups in different orders"
    if found.kind == "p2p":
        verbs = ("receive from", "sent") if call.op.startswith("recv") else ("send to", "received")
        return f"{waits} to {verbs[0]} {blocking}{at}, which has not {verbs[1]}"
    if found.kind == "unseen":
        return f"{waits} in {target}{at}; the recorder of {others} was not read"
    if late := found.lateness:
        return (
            f"{blocking} came last in {late.last} of {late.rounds} collectives{group}: the others waited "
            f"{late.others_s:.1f} s of {late.span_s:.1f} s for it, it waited {late.own_s:.1f} s"
        )
    reason = _BROKEN_LINK
    if found.kind == "sources":
        end = "source" if call.op.startswith(("broadcast", "scatter")) else "destination"
        reason = f"a mismatch: the ranks name different {end}s{'' if is_one_host else f', or {reason}'}"
    done = f"; {_does(found.others, 'has')}" if found.others else ""
    return (
        f"all ranks{group} reached {call.op} #{call.seq}{at}, "
        f"but {_does(found.waiting, 'has')} not completed it{done}: {reason}"
    )


def _describe_mismatch(found: Finding, call: Collective) -> str:
    calls = [(position, each) for position in found.positions if (each := position.collective)]
    is_plain = len({each.op for _, each in calls}) == len(found.positions)
    *odd, usual = (each.op if is_plain else f"{each.op} of {describe_inputs(each)}" for _, each in calls)
    called = " and ".join(
        f"{name_ranks(position.ranks)} called {op}" for (position, _), op in zip(calls, odd, strict=False)
    )
    whom = "the others" if found.blocking else name_ranks(found.waiting)
    return f"at #{call.seq}{_group_name(call)} {called} while {whom} called {usual}{_at(calls[0][1])}"


def describe_inputs(call: Collective) -> str:
    """Return the shapes and types of a call's inputs: ``4x1024, 8 Float``."""
    shapes = ", ".join("x".join(map(str, shape)) or "1" for shape in call.sizes[:_MAX_SHAPES]) or "nothing"
    return f"{shapes} {'/'.join(dict.fromkeys(call.dtypes))}".strip()


def describe_state(position: RankPosition) -> str:
    """Return the state of the collective in which ranks are."""
    call = position.collective
    if call is None:
        return "no flight recorder"
    return "done, idle" if call.is_done else f"{call.state or 'called'}, waiting"


def describe_age(found: Finding | None, seconds: float | None) -> Iterator[str]:
    """Yield how long the ranks of a finding have waited, if that is known."""
    if found is not None and seconds is not None and seconds >= 0:
        yield f"{_does(found.waiting, 'has')} waited for {duration(seconds)}"


def describe_missing_recorders(snapshot: StackSnapshot) -> Iterator[str]:
    """Yield the ranks without a flight recorder, if others have one."""
    missing = [rank for rank in range(snapshot.world_size) if rank not in snapshot.dumps]
    if snapshot.dumps and missing:
        yield f"no flight recorder of {name_ranks(missing)}"


def _call(position: RankPosition) -> str:
    call = position.collective
    return f"{call.op} #{call.seq}{_group_name(call)}{_at(call)}" if call else ""


def _group_name(call: Collective) -> str:
    return "" if call.description == DEFAULT_GROUP else f" of group {call.group}"


def _at(call: Collective) -> str:
    frame = user_frame(call.frames)
    return f" ({frame.location} in {frame.function})" if frame else ""


# ---- Stacks


def describe_groups(groups: Sequence[RankGroup], *, is_rest: bool = False) -> str:
    """Describe which ranks wait and which do not.

    Args:
        groups: the groups, sorted as by `group_ranks`.
        is_rest: whether other ranks have exited.
    """
    if not groups:
        return "no rank was found"
    waiting = [group for group in groups if group.activity is RankActivity.WAITS]
    others = [group for group in groups if group.activity not in (RankActivity.WAITS, RankActivity.UNREAD)]
    shown = [*reversed(waiting), *others] or list(groups)
    if len(shown) > 1:
        sentence = join(*(_describe_some(group) for group in shown[:_MAX_GROUPS]))
    else:
        sentence = _describe_all(shown[0], is_rest)
    if all(group.activity is RankActivity.ASYNC for group in shown):
        sentence += ": stacks cannot tell which rank is late, the flight recorder can"
    return sentence


def describe_stacks(groups: Sequence[RankGroup], finding: str) -> str:
    """Describe the groups after a finding of the flight recorders."""
    waits = len(groups) == 1 and groups[0].activity is RankActivity.WAITS
    hint = ": the stacks do not show which rank is late" if waits and not finding else ""
    return join(finding, describe_groups(groups) + hint)


def describe_activity(group: RankGroup) -> str:
    """Return what ranks do, without their line: ``waits for a subprocess``."""
    return _verb(group.ranks, group.wait or _ACTIVITIES[group.activity])


def describe_group(group: RankGroup) -> str:
    """Return what ranks do and where: ``waits in backward, train.py:18``."""
    does = describe_activity(group)
    waits = group.activity is RankActivity.WAITS
    if waits and group.function:
        does = _verb(group.ranks, f"waits {'for' if group.function == STORE_KEY else 'in'} {group.function}")
    does += f" ({group.kernel})" if group.kernel else ""
    if group.frame is None:
        return does
    separator = " " if group.activity is RankActivity.ELSEWHERE and group.wait is None else ", "
    return f"{does}{separator}{group.frame.location}{'' if waits else f' in {group.frame.function}'}"


def describe_position(group: RankGroup) -> str:
    """Describe a group by itself; return an empty text if its ranks were not read."""
    return "" if group.activity is RankActivity.UNREAD else _describe_some(group)


def _describe_some(group: RankGroup) -> str:
    count = len(group.ranks)
    return f"{name_ranks(group.ranks) if count <= _MAX_NAMED else f'{count} ranks'} {describe_group(group)}"


def _describe_all(group: RankGroup, is_rest: bool) -> str:
    count = len(group.ranks)
    if count == 1 or group.activity is RankActivity.UNREAD:
        return _describe_some(group)
    who = f"the other {count}" if is_rest else "both" if count == 2 else f"all {count}"
    return f"{who} ranks {describe_group(group)}"


def describe_children(snapshot: StackSnapshot, ranks: Sequence[int]) -> list[str]:
    """Describe the children of ranks that run the user's code or that the kernel holds."""
    found = []
    for stack in snapshot.processes:
        if stack.is_main or stack.rank not in ranks:
            continue
        name, frame = f"rank {stack.rank}'s {stack.name} ({stack.pid})", child_frame(stack.threads)
        if stack.state == "D":
            found.append(f"{name} is held by the kernel: {stack.waits_for}")
        elif frame is not None:
            found.append(f"{name} is in {frame.function}, {frame.location}")
    return found[:_MAX_CHILDREN]


def describe_reading(snapshot: StackSnapshot) -> str:
    """Return how many ranks were read in which ways: ``worker server, 4 of 4 ranks``."""
    counts = snapshot.ways
    ways = ", ".join(f"{way} {count}" if len(counts) > 1 else way for way, count in counts.items())
    size = snapshot.world_size
    return f"{ways or 'nothing read'}, {sum(counts.values())} of {size} rank{'' if size == 1 else 's'}"


def describe_unread(snapshot: StackSnapshot) -> list[tuple[str, str]]:
    """Return what was not read, and why."""
    replies = [(f"{snapshot.role}/{reply.replica}", reply.error) for reply in snapshot.replies if reply.error]
    stacks = [
        (f"rank {stack.rank}" if stack.is_main else f"{stack.name} of rank {stack.rank}", _why_unread(stack))
        for stack in snapshot.processes
        if not stack.threads
    ]
    return [*replies, *stacks, *((f"flight recorder of rank {rank}", why) for rank, why in snapshot.faults.items())]


def _why_unread(stack: ProcessStack) -> str:
    if stack.state == "D":
        return f"the kernel holds it (D{f', {stack.waits_for}' if stack.waits_for else ''})"
    # The last way, py-spy, needs nothing from the job: its advice helps most.
    return "; ".join(f"{way}: {reason}" for way, reason in reversed(stack.tried)) or "it is not a Python process"


def no_stacks(snapshot: StackSnapshot) -> str:
    """Describe a running job without a readable rank, such as a job without Python."""
    reasons = ", ".join(dict.fromkeys(reply.error for reply in snapshot.replies if reply.error))
    return f"no stacks of this running job: {reasons or 'no Python process was found'}"


# ---- Two snapshots


def describe_pace(pace: Pace, is_longer: bool | None) -> str:
    """Describe the comparison of two snapshots.

    Args:
        pace: the comparison.
        is_longer: whether the wait is longer than usual; None if unknown.
    """
    if pace == "hangs":
        return "Two snapshots are equal, and the wait is longer than usual: the job hangs."
    if pace != "waits":
        return "Two snapshots differ: the job is making progress." if pace else ""
    if is_longer is None:
        return "Two snapshots show no progress; its usual pauses are not known yet."
    if is_longer:
        return "Two snapshots show no progress, for longer than usual; a rank may still be computing."
    return "Two snapshots show no progress, for no longer than usual."


def no_progress(snapshot: StackSnapshot, earlier: StackSnapshot | None, pause: float) -> str:
    """Return that a job made no progress, and its longest pause in seconds if that is not 0."""
    what = "collective ended" if snapshot.dumps else "stack changed"
    apart = f" within {snapshot.at - earlier.at:.0f} s" if earlier is not None else ""
    usual = f" (the longest pause was {duration(pause) if pause >= 10 else f'{pause:.1f} s'})" if pause else ""
    return f"no {what}{apart}{usual}"


# ---- Ranks that have ended


def describe_exit(first: tuple[int, ...], ends: Mapping[int, ReplicaReply], later: tuple[int, ...]) -> str:
    """Describe the ranks that exited first, and those after them."""
    how = ", ".join(dict.fromkeys(describe_end(ends[rank]) for rank in first if rank in ends))
    return join(
        f"{_does(first, 'has')} exited{f' ({how})' if how else ''}",
        f"{name_ranks(later)} ended after that" if later else "",
    )


def describe_first_end(first: tuple[int, ...], end: ReplicaReply, error: str, lost: Sequence[int]) -> str:
    """Describe the end of the job's first ranks.

    Args:
        first: the ranks that ended first.
        end: the end of the first of them.
        error: its error; empty if unknown.
        lost: the ranks that lost a connection.
    """
    sentence = f"{name_ranks(first)} ended first ({describe_end(end)}){f' with {error}' if error else ''}"
    return join(sentence, f"{name_ranks(lost)} then lost the connection to it" if lost and len(first) == 1 else "")


def describe_unexplained_end(ends: Mapping[int, ReplicaReply], lost: Sequence[int]) -> str:
    """Describe a job that has ended without evidence of the cause.

    Args:
        ends: how ranks ended.
        lost: the ranks that lost a connection.
    """
    ranks: dict[str, list[int]] = {}
    for rank in sorted(ends):
        ranks.setdefault(describe_end(ends[rank]), []).append(rank)
    how = [f"{name_ranks(each)} ({end})" for end, each in ranks.items()]
    more = [f"and {len(how) - _MAX_GROUPS} more"] if len(how) > _MAX_GROUPS else []
    if not how:
        return "the job has ended, so there are no stacks"
    why = f"{name_ranks(lost)} lost the connection to another rank; which rank failed first is unknown"
    return join(f"the job has ended: {', '.join(how[:_MAX_GROUPS] + more)}", why if lost else "")


def describe_end(end: ReplicaReply) -> str:
    """Return how a replica ended: ``exit 1``, ``SIGKILL``."""
    return end.signal or (f"exit {end.exit_code}" if end.exit_code is not None else "ended")


def with_error(sentence: str, error: str) -> str:
    """Add the error of the rank that a sentence names."""
    return join(sentence, f"its error: {error}" if error else "")


def _does(ranks: Sequence[int], phrase: str) -> str:
    """Return ranks with a verb phrase: ``rank 3 waits``."""
    return f"{name_ranks(ranks)} {_verb(ranks, phrase)}"


def _verb(ranks: Sequence[int], phrase: str) -> str:
    """Return a verb phrase in the singular or the plural."""
    verb, space, rest = phrase.partition(" ")
    return phrase if len(ranks) == 1 else f"{_PLURALS.get(verb) or verb.removesuffix('s')}{space}{rest}"
