"""Which rank holds up the others, by what the flight recorders of all ranks hold.

Collectives of a group are matched by their number, as torch's own analyser does it
(``torch/distributed/flight_recorder/components/utils.py``). A verdict claims no more than the dumps
carry: of a rank without a dump nothing is said but that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Literal

from .dump import Call, Collective, Dump

Kind = Literal["mismatch", "missing", "crossed", "p2p", "sources", "stuck", "unseen", "straggler", "agree"]

DEFAULT_GROUP = "default_pg"
# Collectives whose inputs have the same number of elements and one type on all ranks.
_ALIKE = re.compile(r"all_?reduce|broadcast|reduce|_?all_?gather(_base|_into_tensor)?|_?reduce_scatter(_base|_tensor)?")
# Collectives with one source or destination rank, which flight recorders do not record.
_ROOTED = re.compile(r"broadcast\w*|reduce|gather|scatter")
_P2P = re.compile(r"(?P<what>send|recv) (?P<own>\d+)(?:->|<-)(?P<other>\d+)")
_NOT_USER = ("/site-packages/", "/dist-packages/", "/torch/", "/lib/python")
_MOST_NAMED = 8
# A straggler waits for nobody, and comes last in the first collective of each step: by chance in the others.
_FEWEST, _SHARE_LAST, _SHARE_WAITED, _SHARE_OF_TIME, _LEAST_WAIT_S = 20, 0.4, 0.25, 0.1, 1.0


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Args:
        kind: what kind of finding it is.
        culprits: the ranks that hold up the others; empty where the dumps do not tell.
        sentence: the finding in words.
        waiting: the ranks that wait.
        collective: where they wait.
        since_ns: since when, in nanoseconds since the epoch; 0 if not known.
    """

    kind: Kind
    culprits: tuple[int, ...]
    sentence: str
    waiting: tuple[int, ...] = ()
    collective: Collective | None = None
    since_ns: int = 0


@dataclass(frozen=True)
class Standing:
    """Where some ranks stood, by their recorders.

    Args:
        ranks: the ranks.
        collective: the first that they are not through with, else their last; None where they have no dump.
        state: what became of it, in words.
        since_ns: since when, in nanoseconds since the epoch; 0 if not known.
        is_culprit: whether the verdict names them.
    """

    ranks: tuple[int, ...]
    collective: Collective | None
    state: str
    since_ns: int = 0
    is_culprit: bool = False


@dataclass(frozen=True)
class _Group:
    """The collectives of one process group, by rank and number."""

    name: str
    description: str
    members: frozenset[int]
    is_known: bool
    calls: dict[int, dict[int, Collective]]

    @property
    def title(self) -> str:
        return "" if self.description == DEFAULT_GROUP else f" of group {self.name}"

    def last(self, rank: int) -> int:
        return max(self.calls[rank], default=0)

    def waiting(self, rank: int) -> Collective | None:
        """Return the first collective that a rank is not through with."""
        return next((call for _, call in sorted(self.calls.get(rank, {}).items()) if not call.is_done), None)


def find_verdicts(dumps: Mapping[int, Dump], world_size: int = 0, is_one_host: bool = True) -> list[Verdict]:
    """Return the verdicts of the dumps, the likeliest cause first; none without dumps.

    Args:
        dumps: the dump of each rank.
        world_size: how many ranks the job has; that of the dumps if 0.
        is_one_host: whether all clocks are one, so that times of ranks can be compared.
    """
    if not dumps:
        return []
    groups = _groups(dumps, world_size)
    found = [verdict for group in groups for verdict in _mismatches(group)]
    if not found:
        found = _held_up(groups, is_one_host)
    found += _unpaired(dumps, groups)
    if not found and is_one_host:
        found = [verdict for group in groups for verdict in _straggler(group)]
    if not found:
        longest = max(groups, key=lambda group: sum(map(len, group.calls.values())), default=None)
        if longest is not None and longest.calls:
            last = max(longest.last(rank) for rank in longest.calls)
            found = [Verdict("agree", (), f"all {len(longest.calls)} ranks agree up to collective #{last}")]
    return found


def rank_standings(dumps: Mapping[int, Dump], verdict: Verdict, world_size: int = 0) -> list[Standing]:
    """Return where all ranks stood, those that the verdict names first, then the largest groups.

    Args:
        dumps: the dump of each rank.
        verdict: what was found in them.
        world_size: how many ranks the job has; that of the dumps if 0.
    """
    alike: dict[tuple[object, ...], list[tuple[int, Collective]]] = {}
    group = verdict.collective.group if verdict.collective else ""
    for rank, dump in dumps.items():
        if dump.collectives:
            pending = [call for call in dump.collectives if not call.is_done]
            waits = next((call for call in pending if call.group == group), next(iter(pending), None))
            call = waits or dump.collectives[-1]
            key = rank in verdict.culprits, waits is None, call.group, call.seq, _signature(call), call.state
            alike.setdefault(key, []).append((rank, call))
    found = []
    for (is_culprit, is_done, *_), members in alike.items():
        call = members[0][1]
        state = "done, began nothing since" if is_done else f"{call.state or 'called'}, waits"
        since = min(call.created_ns for _, call in members)
        found.append(Standing(tuple(sorted(rank for rank, _ in members)), call, state, since, bool(is_culprit)))
    found.sort(key=lambda standing: (not standing.is_culprit, -len(standing.ranks), standing.ranks))
    told = {rank for standing in found for rank in standing.ranks}
    silent = tuple(rank for rank in range(world_size) if rank not in told)
    return [*found, Standing(silent, None, "no flight recorder", 0, False)] if silent else found


def without_dump(dumps: Mapping[int, Dump], world_size: int) -> tuple[int, ...]:
    """Return the ranks of which there is no dump."""
    return tuple(rank for rank in range(world_size) if rank not in dumps)


def name_ranks(ranks: Iterable[int]) -> str:
    """Name ranks, those that follow one another as a range: ``rank 3``, ``ranks 0-6, 8-15``."""
    numbers = list_ranks(ranks)
    return ("rank " if numbers.isdigit() else "ranks ") + numbers


def list_ranks(ranks: Iterable[int]) -> str:
    """List ranks, those that follow one another as a range: ``3``, ``0-6, 8-15``."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more


def user_call(collective: Collective) -> Call | None:
    """Return the innermost line of the user's own that a collective was called from."""
    return next((call for call in collective.calls if not any(part in call.file for part in _NOT_USER)), None)


def _place(collective: Collective) -> str:
    call = user_call(collective)
    return f" ({call.file.rpartition('/')[2]}:{call.line} in {call.function})" if call else ""


def _groups(dumps: Mapping[int, Dump], world_size: int) -> list[_Group]:
    calls: dict[tuple[str, str], dict[int, dict[int, Collective]]] = {}
    for rank, dump in dumps.items():
        for call in dump.collectives:
            if not call.is_p2p:
                calls.setdefault((call.group, call.description), {}).setdefault(rank, {})[call.seq] = call
    told = {name: members for dump in dumps.values() for name, members in dump.members.items()}
    groups = []
    for (name, description), by_rank in calls.items():
        members = told.get(name)
        if description == DEFAULT_GROUP:
            members = members or frozenset(range(world_size)) or frozenset(dumps)
        for rank in (members or frozenset()) & dumps.keys():
            by_rank.setdefault(rank, {})
        groups.append(_Group(name, description, members or frozenset(by_rank), members is not None, by_rank))
    return groups


def _first_number(group: _Group) -> int:
    """Return the number from which on all rings still hold the calls."""
    return max((min(calls) for calls in group.calls.values() if calls), default=0)


def _signature(call: Collective) -> tuple[object, ...]:
    if _ALIKE.fullmatch(call.op):
        return call.op, sum(map(prod, call.sizes)), call.dtypes
    return (call.op,)


def _mismatches(group: _Group) -> Iterable[Verdict]:
    """Yield the first collective in which ranks called different things."""
    numbers = range(_first_number(group), max(map(group.last, group.calls), default=-1) + 1)
    for seq in numbers:
        here = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        kinds = Counter(map(_signature, here.values()))
        # What all ranks got through was no fault.
        if len(kinds) < 2 or all(call.is_done for call in here.values()):
            continue
        (usual, most), *others = kinds.most_common()
        odd = {rank: call for rank, call in here.items() if _signature(call) != usual}
        rest = [rank for rank in here if rank not in odd]
        first, reference = next(iter(odd.values())), here[rest[0]]
        what = _difference(first, reference)
        is_even = most == max(count for _, count in others)
        who, whom = name_ranks(odd), name_ranks(rest) if is_even or len(others) > 1 else "the others"
        yield Verdict(
            "mismatch",
            () if is_even else tuple(sorted(odd)),
            f"at #{seq}{group.title} {who} called {what[0]} while {whom} called {what[1]}{_place(first)}",
            tuple(sorted(rest)),
            reference,
            min(call.created_ns for call in here.values()),
        )
        return


def _difference(collective: Collective, other: Collective) -> tuple[str, str]:
    if collective.op != other.op:
        return collective.op, other.op
    texts = [f"{call.op} of {input_words(call)}" for call in (collective, other)]
    return texts[0], texts[1]


def input_words(call: Collective) -> str:
    """Return the shapes and types of a call's inputs: ``4x1024, 8 Float``."""
    shapes = ", ".join("x".join(map(str, shape)) or "1" for shape in call.sizes[:4]) or "nothing"
    return f"{shapes} {'/'.join(dict.fromkeys(call.dtypes))}".strip()


def _held_up(groups: list[_Group], is_one_host: bool) -> list[Verdict]:
    """Find who is missing where others wait; a rank that is missing because it waits in another group is no culprit."""
    stuck: list[tuple[_Group, int, dict[int, Collective], set[int]]] = []
    for group in groups:
        waits = {rank: call for rank in group.calls if (call := group.waiting(rank)) is not None}
        if not waits:
            continue
        seq = min(call.seq for call in waits.values())
        here = {rank: call for rank, call in waits.items() if call.seq == seq}
        stuck.append((group, seq, here, {rank for rank in group.calls if group.last(rank) < seq}))
    waiting = {rank for _, _, here, _ in stuck for rank in here}
    found, chained = [], []
    for group, seq, here, missing in stuck:
        culprits = missing - waiting
        if culprits:
            found.append(_missing(group, seq, here, culprits))
        elif missing or not group.is_known:
            chained.append((group, here))
        else:
            found.append(_all_there(group, seq, here, is_one_host))
    is_explained = any(verdict.kind == "missing" for verdict in found)
    if chained and not is_explained:
        found.insert(0, _crossed(chained))
    return sorted(found, key=lambda verdict: (verdict.kind in ("sources", "stuck", "unseen"), -len(verdict.waiting)))


def _missing(group: _Group, seq: int, here: Mapping[int, Collective], culprits: set[int]) -> Verdict:
    call = here[min(here)]
    target = f"{call.op} #{seq}{group.title}"
    wait = f"where {name_ranks(here)} {'waits' if len(here) == 1 else 'wait'}{_place(call)}"
    last = ""
    if len(culprits) == 1:
        calls = group.calls[min(culprits)]
        if calls:
            latest = calls[max(calls)]
            last = f"; its last was {latest.op} #{latest.seq}{_place(latest)}"
    sentence = f"{name_ranks(culprits)} never reached {target}, {wait}{last}"
    since = min(call.created_ns for call in here.values())
    return Verdict("missing", tuple(sorted(culprits)), sentence, tuple(sorted(here)), call, since)


def _all_there(group: _Group, seq: int, here: Mapping[int, Collective], is_one_host: bool) -> Verdict:
    call = here[min(here)]
    unseen = group.members - group.calls.keys()
    if unseen:
        waits = "waits" if len(here) == 1 else "wait"
        return Verdict(
            "unseen",
            (),
            f"{name_ranks(here)} {waits} in {call.op} #{seq}{group.title}{_place(call)}; "
            f"no recorder of {name_ranks(unseen)} could be read",
            tuple(sorted(here)),
            call,
            min(call.created_ns for call in here.values()),
        )
    through = [rank for rank in group.calls if rank not in here]
    rest = f", {name_ranks(through)} through it" if through else ""
    is_rooted = _ROOTED.fullmatch(call.op) is not None
    reason = "a slow or broken link, or a kernel that hangs"
    if is_rooted:
        end = "source" if call.op.startswith(("broadcast", "scatter")) else "destination"
        reason = f"a mismatch: ranks name different {end}s" + ("" if is_one_host else f", or {reason}")
    return Verdict(
        "sources" if is_rooted else "stuck",
        (),
        f"all ranks{group.title} reached {call.op} #{seq}{_place(call)}, and {name_ranks(here)} "
        f"{'is' if len(here) == 1 else 'are'} not through it{rest}: {reason}",
        tuple(sorted(here)),
        call,
        min(call.created_ns for call in here.values()),
    )


def _crossed(chained: list[tuple[_Group, Mapping[int, Collective]]]) -> Verdict:
    """Tell of ranks that wait for each other in different groups."""
    # The default group has those who wait for the crossed ones, unless all are within it.
    inner = [entry for entry in chained if entry[0].description != DEFAULT_GROUP] or chained
    ranks = tuple(sorted({rank for _, here in inner for rank in here}))
    parts = [
        f"{name_ranks(here)} {'waits' if len(here) == 1 else 'wait'} in {call.op} #{call.seq} of group {group.name}"
        f"{_place(call)}"
        for group, here in inner
        for call in [here[min(here)]]
    ]
    call = inner[0][1][min(inner[0][1])]
    if len(inner) == 1:
        reason = "no other rank of that group is in it"
    else:
        reason = "each waits for a rank that waits in the other group: they use the groups in different orders"
    since = min(call.created_ns for _, here in inner for call in here.values())
    return Verdict("crossed", ranks, f"{' and '.join(parts)}; {reason}", ranks, call, since)


def _unpaired(dumps: Mapping[int, Dump], groups: list[_Group]) -> list[Verdict]:
    """Find sends and receives whose other side did not come. gloo records none."""
    members = {group.name: sorted(group.members) for group in groups}
    seen: dict[tuple[str, str, int, int], list[Collective]] = {}
    for rank, dump in dumps.items():
        for call in dump.collectives:
            if call.is_p2p and (found := _P2P.search(call.op)):
                ranks = members.get(call.group, [])
                other = int(found["other"])
                other = ranks[other] if other < len(ranks) else other
                seen.setdefault((call.group, found["what"], rank, other), []).append(call)
    verdicts = []
    for (group, what, rank, other), calls in seen.items():
        pending = [call for call in calls if not call.is_done]
        answers = seen.get((group, "recv" if what == "send" else "send", other, rank), [])
        if not pending or other not in dumps or len(answers) >= len(calls):
            continue
        verb = ("receives from", "sent it") if what == "recv" else ("sends to", "received it")
        sentence = f"rank {rank} {verb[0]} rank {other}{_place(pending[0])}, which has not {verb[1]}"
        verdicts.append(Verdict("p2p", (other,), sentence, (rank,), pending[0], pending[0].created_ns))
    return verdicts


def _straggler(group: _Group) -> Iterable[Verdict]:
    """Yield the rank that the others wait for again and again: it waits least itself."""
    if len(group.calls) < 2 or frozenset(group.calls) != group.members:
        return
    common = set.intersection(*(set(calls) for calls in group.calls.values()))
    # The first collectives wait for ranks that start up.
    rounds = [{rank: calls[seq].created_ns for rank, calls in group.calls.items()} for seq in sorted(common)][6:]
    if len(rounds) < _FEWEST or not all(all(times.values()) for times in rounds):
        return
    last = Counter(max(times, key=lambda rank: times[rank]) for times in rounds)
    waited = {rank: sum(max(times.values()) - times[rank] for times in rounds) / 1e9 for rank in group.calls}
    slow = min(waited, key=lambda rank: waited[rank])
    count = last[slow]
    others = median(seconds for rank, seconds in waited.items() if rank != slow)
    span = (max(rounds[-1].values()) - min(rounds[0].values())) / 1e9
    if count < _SHARE_LAST * len(rounds) or waited[slow] > _SHARE_WAITED * others:
        return
    if others < max(_LEAST_WAIT_S, _SHARE_OF_TIME * span):
        return
    sentence = (
        f"rank {slow} came last in {count} of {len(rounds)} collectives{group.title}: the others waited "
        f"{others:.1f} s of {span:.1f} s for it, it waited {waited[slow]:.1f} s"
    )
    yield Verdict("straggler", (slow,), sentence, tuple(sorted(set(group.calls) - {slow})))
