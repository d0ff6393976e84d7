"""Find the ranks that block the others, from the flight recorders of all ranks.

Collectives of a group are matched by their sequence number, as PyTorch's analyser does
(``torch/distributed/flight_recorder/components/utils.py``). Nothing is concluded about a rank without a dump.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Literal, NamedTuple

from .dump import Collective, Dump

Kind = Literal["mismatch", "missing", "crossed", "p2p", "sources", "stuck", "unseen", "straggler"]
"""What was found:

mismatch: ranks called different collectives, types or sizes.
missing: ranks have not reached a collective in which others wait.
crossed: ranks wait for each other in different groups.
p2p: a send without its receive, or a receive without its send.
sources: all ranks are in a collective with a root, and it does not complete.
stuck: all ranks are in a collective, and it does not complete.
unseen: ranks wait in a collective; the recorders of other ranks are unknown.
straggler: a rank is last again and again.
"""

DEFAULT_GROUP = "default_pg"
# Collectives whose inputs have the same number of elements and the same type on all ranks.
_UNIFORM = re.compile(
    r"all_?reduce|broadcast|reduce|_?all_?gather(_base|_into_tensor)?|_?reduce_scatter(_base|_tensor)?"
)
# Collectives with one source or destination rank, which recorders do not record.
_ROOTED = re.compile(r"broadcast\w*|reduce|gather|scatter")
_P2P = re.compile(r"(?P<what>send|recv) (?P<own>\d+)(?:->|<-)(?P<other>\d+)")
# A straggler is last in this share of the collectives, waits less than this share of the others' wait, and costs the
# others at least this share of the time and this many seconds.
_MIN_ROUNDS, _MIN_SHARE_LAST, _MAX_SHARE_WAITED, _MIN_SHARE_OF_TIME, _MIN_WAIT_S = 20, 0.4, 0.25, 0.1, 1.0
# Rounds to skip: the first collectives wait for ranks that start up.
_WARM_UP = 6


@dataclass(frozen=True)
class RankPosition:
    """The position of some ranks in the job's collectives.

    Attributes:
        ranks: the ranks, in order.
        collective: the first one that they have not completed, or else their last one; None without a dump.
        since_ns: the earliest call of it, in nanoseconds since the epoch; 0 if unknown.
        is_blocking: whether the finding names them.
    """

    ranks: tuple[int, ...]
    collective: Collective | None
    since_ns: int = 0
    is_blocking: bool = False


class Lateness(NamedTuple):
    """How late a straggler is.

    Attributes:
        last: the collectives in which it came last.
        rounds: all collectives.
        others_s: the wait of the others in seconds, their median.
        own_s: its own wait.
        span_s: the time of all collectives.
    """

    last: int
    rounds: int
    others_s: float
    own_s: float
    span_s: float


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        blocking: the ranks that block the others; empty if the dumps do not tell.
        waiting: the ranks that wait.
        collective: the collective in which they wait.
        since_ns: the start of the wait, in nanoseconds since the epoch; 0 if unknown.
        positions: of a mismatch, the ranks by what they called, the usual call last; of crossed groups, the ranks of
            each group; of one missing rank, its last collective.
        others: of ``unseen``, the ranks without a dump; of ``stuck`` and ``sources``, the ranks that completed it.
        lateness: of a straggler.
    """

    kind: Kind
    blocking: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    collective: Collective | None = None
    since_ns: int = 0
    positions: tuple[RankPosition, ...] = ()
    others: tuple[int, ...] = ()
    lateness: Lateness | None = None


@dataclass(frozen=True)
class _ProcessGroup:
    """The collectives of one process group, by rank and number."""

    name: str
    description: str
    members: frozenset[int]
    has_members: bool
    calls: dict[int, dict[int, Collective]]

    def last(self, rank: int) -> int:
        return max(self.calls[rank], default=0)

    def waiting(self, rank: int) -> Collective | None:
        """Return the first collective that a rank has not completed."""
        return next((call for _, call in sorted(self.calls[rank].items()) if not call.is_done), None)


class _Wait(NamedTuple):
    """A collective in which ranks of a group wait.

    Attributes:
        group: the group.
        calls: the calls of the ranks that wait, by rank.
        missing: the ranks that have not reached it.
    """

    group: _ProcessGroup
    calls: dict[int, Collective]
    missing: set[int]


def find(dumps: Mapping[int, Dump], world_size: int = 0, is_one_host: bool = True) -> list[Finding]:
    """Return the findings in the dumps of all ranks, the likeliest cause first.

    Args:
        dumps: the dump of each rank.
        world_size: the number of ranks; 0 for that of the dumps.
        is_one_host: whether all ranks share a clock, so that their times are comparable.
    """
    groups = _process_groups(dumps, world_size)
    found = [finding for group in groups for finding in _mismatches(group)] or _blocked(groups)
    found += _unpaired(dumps, groups)
    if not found and is_one_host:
        found = [finding for group in groups for finding in _stragglers(group)]
    return found


def rank_positions(dumps: Mapping[int, Dump], finding: Finding, world_size: int = 0) -> list[RankPosition]:
    """Return the positions of all ranks: those that the finding names first, then the largest groups.

    Args:
        dumps: the dump of each rank.
        finding: a finding in them.
        world_size: the number of ranks; 0 for that of the dumps.
    """
    alike: dict[tuple[object, ...], dict[int, Collective]] = {}
    group = finding.collective.group if finding.collective else ""
    for rank, dump in dumps.items():
        if dump.collectives:
            pending = [call for call in dump.collectives if not call.is_done]
            call = [*(call for call in pending if call.group == group), *pending, dump.collectives[-1]][0]
            key = rank in finding.blocking, call.is_done, call.group, call.seq, _signature(call), call.state
            alike.setdefault(key, {})[rank] = call
    found = [_position(calls, bool(key[0])) for key, calls in alike.items()]
    found.sort(key=lambda position: (not position.is_blocking, -len(position.ranks), position.ranks))
    known = {rank for position in found for rank in position.ranks}
    unknown = tuple(rank for rank in range(world_size) if rank not in known)
    return [*found, RankPosition(unknown, None)] if unknown else found


def _position(calls: Mapping[int, Collective], is_blocking: bool = False) -> RankPosition:
    since_ns = min(call.created_ns for call in calls.values())
    return RankPosition(tuple(sorted(calls)), calls[min(calls)], since_ns, is_blocking)


def _process_groups(dumps: Mapping[int, Dump], world_size: int) -> list[_ProcessGroup]:
    calls: dict[tuple[str, str], dict[int, dict[int, Collective]]] = {}
    for rank, dump in dumps.items():
        for call in dump.collectives:
            if not call.is_p2p:
                calls.setdefault((call.group, call.description), {}).setdefault(rank, {})[call.seq] = call
    recorded = {name: members for dump in dumps.values() for name, members in dump.members.items()}
    groups = []
    for (name, description), by_rank in calls.items():
        members = recorded.get(name)
        if description == DEFAULT_GROUP:
            members = members or frozenset(range(world_size)) or frozenset(dumps)
        for rank in (members or frozenset()) & dumps.keys():
            by_rank.setdefault(rank, {})
        groups.append(_ProcessGroup(name, description, members or frozenset(by_rank), members is not None, by_rank))
    return groups


def _signature(call: Collective) -> tuple[object, ...]:
    if _UNIFORM.fullmatch(call.op):
        return call.op, sum(map(prod, call.sizes)), call.dtypes
    return (call.op,)


def _mismatches(group: _ProcessGroup) -> Iterable[Finding]:
    """Yield the first collective in which ranks made different calls."""
    # The first number that all ring buffers still hold.
    first = max((min(calls) for calls in group.calls.values() if calls), default=0)
    for seq in range(first, max(map(group.last, group.calls), default=-1) + 1):
        here = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        ranks: dict[tuple[object, ...], dict[int, Collective]] = {}
        for rank, call in here.items():
            ranks.setdefault(_signature(call), {})[rank] = call
        # A collective that all ranks completed was no mismatch.
        if len(ranks) < 2 or all(call.is_done for call in here.values()):
            continue
        usual, second, *_ = sorted(ranks.values(), key=len, reverse=True)
        odd = {rank: call for rank, call in here.items() if rank not in usual}
        blocking = tuple(sorted(odd)) if len(usual) > len(second) else ()
        positions = [_position(calls, bool(blocking)) for calls in ranks.values() if calls is not usual]
        others = _position(usual)
        positions.append(others)
        yield Finding("mismatch", blocking, others.ranks, others.collective, _position(here).since_ns, tuple(positions))
        return


def _blocked(groups: list[_ProcessGroup]) -> list[Finding]:
    """Find the missing ranks where others wait; a rank that itself waits in another group blocks nobody."""
    stuck: list[_Wait] = []
    for group in groups:
        waits = {rank: call for rank in group.calls if (call := group.waiting(rank)) is not None}
        if waits:
            seq = min(call.seq for call in waits.values())
            here = {rank: call for rank, call in waits.items() if call.seq == seq}
            stuck.append(_Wait(group, here, {rank for rank in group.calls if group.last(rank) < seq}))
    waiting = {rank for wait in stuck for rank in wait.calls}
    found, chained = [], []
    for wait in stuck:
        if wait.missing - waiting:
            found.append(_missing(wait, wait.missing - waiting))
        elif wait.missing or not wait.group.has_members:
            chained.append(wait)
        else:
            found.append(_not_completed(wait))
    if chained and not any(finding.kind == "missing" for finding in found):
        found.insert(0, _crossed(chained))
    return sorted(found, key=lambda finding: (finding.kind in ("sources", "stuck", "unseen"), -len(finding.waiting)))


def _missing(wait: _Wait, missing: set[int]) -> Finding:
    blocking, waits = tuple(sorted(missing)), _position(wait.calls)
    calls = wait.group.calls[blocking[0]]
    last = (RankPosition(blocking, calls[max(calls)]),) if len(blocking) == 1 and calls else ()
    return Finding("missing", blocking, waits.ranks, waits.collective, waits.since_ns, last)


def _not_completed(wait: _Wait) -> Finding:
    waits, group = _position(wait.calls), wait.group
    unseen = group.members - group.calls.keys()
    is_rooted = _ROOTED.fullmatch(wait.calls[min(wait.calls)].op)
    kind: Kind = "unseen" if unseen else "sources" if is_rooted else "stuck"
    others = tuple(sorted(unseen or group.calls.keys() - wait.calls.keys()))
    return Finding(kind, (), waits.ranks, waits.collective, waits.since_ns, others=others)


def _crossed(chained: list[_Wait]) -> Finding:
    """Return the finding for ranks that wait for each other in different groups."""
    # Ranks in the default group wait for the crossed ones, unless all groups are within it.
    inner = [wait for wait in chained if wait.group.description != DEFAULT_GROUP] or chained
    ranks = tuple(sorted({rank for wait in inner for rank in wait.calls}))
    positions = tuple(_position(wait.calls) for wait in inner)
    since_ns = min(position.since_ns for position in positions)
    return Finding("crossed", ranks, ranks, positions[0].collective, since_ns, positions)


def _unpaired(dumps: Mapping[int, Dump], groups: list[_ProcessGroup]) -> list[Finding]:
    """Find sends and receives without their other side. gloo does not record them."""
    members = {group.name: sorted(group.members) for group in groups}
    seen: dict[tuple[str, str, int, int], list[Collective]] = {}
    for rank, dump in dumps.items():
        for call in dump.collectives:
            if call.is_p2p and (found := _P2P.search(call.op)):
                ranks = members.get(call.group, [])
                other = int(found["other"])
                other = ranks[other] if other < len(ranks) else other
                seen.setdefault((call.group, found["what"], rank, other), []).append(call)
    findings = []
    for (group, what, rank, other), calls in seen.items():
        pending = [call for call in calls if not call.is_done]
        answers = seen.get((group, "recv" if what == "send" else "send", other, rank), [])
        if pending and other in dumps and len(answers) < len(calls):
            findings.append(Finding("p2p", (other,), (rank,), pending[0], pending[0].created_ns))
    return findings


def _stragglers(group: _ProcessGroup) -> Iterable[Finding]:
    """Yield the rank that the others wait for again and again: it waits least itself."""
    if len(group.calls) < 2 or frozenset(group.calls) != group.members:
        return
    common = set.intersection(*(set(calls) for calls in group.calls.values()))
    rounds = [{rank: calls[seq].created_ns for rank, calls in group.calls.items()} for seq in sorted(common)]
    rounds = rounds[_WARM_UP:]
    if len(rounds) < _MIN_ROUNDS or not all(all(times.values()) for times in rounds):
        return
    last = Counter(max(times, key=lambda rank: times[rank]) for times in rounds)
    waited = {rank: sum(max(times.values()) - times[rank] for times in rounds) / 1e9 for rank in group.calls}
    slow = min(waited, key=lambda rank: waited[rank])
    others = tuple(sorted(group.calls.keys() - {slow}))
    wait = median(waited[rank] for rank in others)
    span = (max(rounds[-1].values()) - min(rounds[0].values())) / 1e9
    if (
        last[slow] >= _MIN_SHARE_LAST * len(rounds)
        and waited[slow] <= _MAX_SHARE_WAITED * wait
        and wait >= max(_MIN_WAIT_S, _MIN_SHARE_OF_TIME * span)
    ):
        call = group.calls[slow][max(common)]
        yield Finding(
            "straggler", (slow,), others, call, lateness=Lateness(last[slow], len(rounds), wait, waited[slow], span)
        )
