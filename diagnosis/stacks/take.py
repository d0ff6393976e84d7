"""Taking the stacks and flight recorders of all ranks of a job.

Each replica is asked by a program of ours that runs beside it, `probe.py`; what it prints is what a take is made of,
and what is kept of it.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from base64 import b64decode, b85encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...backends.abilities import KeepsLogFiles, RunsCommands
from ...backends.shared.parallel import parallel_map
from ...base.errors import TorchXTuiError, join_names
from ...base.files import is_folder
from ...base.validation import decode_json
from ...logs.text.sanitize import plain
from ...specs.errors import SchedulerError, UnknownAppException, UnknownRoleError
from ...specs.status import AppState, ReplicaStatus, is_terminal
from ..progress.reader import step_times
from ..recorder.dump import Dump, DumpError, parse_dump, rank_of_file, read_dump
from .frames import Thread, main_frames, parse_faulthandler, parse_pyspy
from .groups import RankState

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse

logger = logging.getLogger(__name__)

TIMEOUT_S, NATIVE_TIMEOUT_S = 30.0, 150.0
_AT_ONCE = 8
_FORMAT = 1
_MOST_LINES = 20_000
_PYTHONS = ("python3", "python")
# Of a recorder: torch keeps 2000 entries of some hundred bytes.
_MOST_DUMP_BYTES = 64 << 20
_MOST_RANKS = 1 << 17
_RUNS = (AppState.RUNNING,)

Pace = Literal["hangs", "waits", "moves", ""]
"""The comparison of two snapshots: a job ``waits`` if it made no progress for no longer than usual."""
_PACES: tuple[Pace, ...] = ("hangs", "waits", "moves")


@dataclass(frozen=True)
class ProcessStack:
    """One process of a rank: the rank itself, or a child of it such as a loader worker.

    Args:
        rank: the rank that it is or belongs to.
        replica: the number of its replica in the role.
        host: the machine, as it calls itself.
        pid: its number there.
        is_main: whether it is the rank itself.
        name: its name, as the kernel has it.
        state: the kernel's letter for its state.
        waits_for: the kernel's function that it waits in, where it tells.
        cpu: its CPU time, in ticks.
        way: how its stack was read; empty where it was not.
        tried: the ways that gave none before, and why.
        threads: its threads.
    """

    rank: int
    replica: int
    host: str
    pid: int
    is_main: bool
    name: str
    state: str
    waits_for: str
    cpu: int
    way: str
    tried: tuple[tuple[str, str], ...]
    threads: tuple[Thread, ...]


@dataclass(frozen=True)
class ReplicaReply:
    """What came of asking one replica.

    Args:
        replica: its number in the role.
        lines: the objects that the probe printed.
        error: why it could not be asked, or not to the end.
        has_ended: whether the replica is over.
        exit_code: what it exited with; None where that is not known.
        signal: the signal that killed it.
        ended_at: when it ended, in seconds since the epoch.
    """

    replica: int
    lines: tuple[dict[str, Any], ...] = ()
    error: str = ""
    has_ended: bool = False
    exit_code: int | None = None
    signal: str = ""
    ended_at: float | None = None

    @property
    def end_words(self) -> str:
        """Say how it ended: ``exit 1``, ``SIGKILL``."""
        return self.signal or (f"exit {self.exit_code}" if self.exit_code is not None else "ended")


@dataclass
class Take:
    """The stacks of all ranks of one role at one time.

    Args:
        handle: the job.
        role: the role.
        at: when it was begun, in seconds since the epoch.
        seconds: how long it took.
        replies: what came of each replica.
    """

    handle: str
    role: str
    at: float
    seconds: float
    replies: tuple[ReplicaReply, ...]
    other_roles: tuple[str, ...] = field(default=())
    recorded: dict[int, Dump] = field(default_factory=dict)
    """Dumps that were found as files of a job that is over."""
    pace: Pace = ""
    """Whether the job moved since a take some seconds before, which is not kept itself."""
    pauses: tuple[float, ...] = ()
    """The seconds between the last steps in the job's log, oldest first."""
    moved_at: float | None = None
    """Time of the last printed step, in seconds since the epoch; None if unknown."""

    @cached_property
    def processes(self) -> tuple[ProcessStack, ...]:
        """Every process that was found, by rank, the rank itself first."""
        found = [stack for reply in self.replies for stack in _stacks(reply)]
        unique = {(stack.host, stack.pid, stack.rank): stack for stack in reversed(found)}
        return tuple(sorted(unique.values(), key=lambda stack: (stack.rank, not stack.is_main, stack.pid)))

    @cached_property
    def ranks(self) -> dict[int, ProcessStack]:
        """The process of each rank that runs."""
        return {stack.rank: stack for stack in reversed(self.processes) if stack.is_main}

    @cached_property
    def world_size(self) -> int:
        """The world size that ranks report; without one, the ranks that were found or did not answer."""
        reported = [size for line in self._lines("process") if (size := _rank(line.get("world"))) is not None]
        sizes = reported or [reply.replica + 1 for reply in self.replies if reply.error]
        return max([*sizes, *(rank + 1 for rank in (*self.ranks, *self.recorded))], default=len(self.replies))

    @cached_property
    def states(self) -> dict[int, RankState]:
        """What is known of each rank: of those that run, and of those that are over."""
        states = {
            rank: RankState(stack.threads, stack.state, stack.waits_for, source=self._source_of(stack))
            for rank, stack in sorted(self.ranks.items())
        }
        for rank in self.exited:
            states[rank] = RankState(has_exited=True)
        return states

    @cached_property
    def exited(self) -> dict[int, ReplicaReply | None]:
        """The ranks that are over, with their replica's end where a replica is one rank."""
        found: dict[int, ReplicaReply | None] = {}
        is_one_each = len(self.replies) >= self.world_size
        for reply in self.replies:
            if reply.has_ended and is_one_each and reply.replica not in self.ranks:
                found[reply.replica] = reply
        # Where all could be looked at, a rank that is not there has ended, unless the job has just begun.
        if self.ranks and not any(reply.error for reply in self.replies):
            for rank in range(self.world_size):
                if rank not in self.ranks and rank not in found:
                    found[rank] = None
        return found

    @cached_property
    def dumps(self) -> dict[int, Dump]:
        """The flight recorder of each rank that has one that can be read."""
        return {**self.recorded, **self._received[0]}

    @cached_property
    def _received(self) -> tuple[dict[int, Dump], dict[int, str]]:
        """The flight recorders that came, and why those of other ranks that came cannot be read."""
        dumps: dict[int, Dump] = {}
        faults: dict[int, str] = {}
        for line in self._lines("recorder"):
            rank = _rank(line.get("rank"))
            # Without a way there is none to read, as in most jobs.
            if rank is None or not line.get("way"):
                continue
            try:
                dumps[rank] = parse_dump(_unpacked(line.get("data")))
            except DumpError as error:
                faults[rank] = plain(str(error))
        return dumps, faults

    @cached_property
    def sources(self) -> dict[str, dict[int, str]]:
        """Lines of the user's files around the frames, by path, as they are where the ranks run."""
        found: dict[str, dict[int, str]] = {}
        for line in self._lines("source"):
            lines = line.get("lines")
            if isinstance(lines, dict):
                texts = {int(n): str(text) for n, text in lines.items() if str(n).isdigit() and len(str(n)) < 9}
                found.setdefault(str(line.get("file")), {}).update(texts)
        return found

    def _source_of(self, stack: ProcessStack) -> str:
        """Return the line that the main thread stands in, where it was read."""
        frames = main_frames(stack.threads)
        return self.sources.get(frames[0].file, {}).get(frames[0].line, "") if frames else ""

    @cached_property
    def recorded_at(self) -> dict[int, float]:
        """When the recorder of each rank was read, by its own clock, in seconds since the epoch."""
        found = {}
        for line in self._lines("recorder"):
            rank, at = _rank(line.get("rank")), line.get("at")
            if rank is not None and isinstance(at, float):
                found[rank] = at
        return found

    @property
    def ways(self) -> dict[str, int]:
        """How many ranks were read in which way."""
        counted: dict[str, int] = {}
        for stack in self.ranks.values():
            if stack.threads:
                counted[stack.way] = counted.get(stack.way, 0) + 1
        return counted

    @property
    def how(self) -> str:
        """In which ways how many of the ranks were read: ``worker server, 4 of 4 ranks``."""
        ways = ", ".join(f"{way} {number}" if len(self.ways) > 1 else way for way, number in self.ways.items())
        read, size = sum(self.ways.values()), self.world_size
        return f"{ways or 'nothing read'}, {read} of {size} rank{'' if size == 1 else 's'}"

    @property
    def not_read(self) -> list[tuple[str, str]]:
        """What could not be read, and why, with what would help."""
        found = []
        for reply in self.replies:
            if reply.error:
                found.append((f"{self.role}/{reply.replica}", reply.error))
        for stack in self.processes:
            if not stack.threads:
                name = f"rank {stack.rank}" if stack.is_main else f"{stack.name} of rank {stack.rank}"
                found.append((name, _why_not(stack)))
        faults = self._received[1].items()
        return found + [(f"flight recorder of rank {rank}", why) for rank, why in faults if rank not in self.dumps]

    def to_document(self) -> dict[str, Any]:
        """Return it as JSON."""
        replies = [asdict(reply) for reply in self.replies]
        known = {"handle": self.handle, "role": self.role, "at": self.at, "seconds": self.seconds, "pace": self.pace}
        steps = {"pauses": list(self.pauses), "moved_at": self.moved_at}
        return {"format": _FORMAT, **known, **steps, "other_roles": list(self.other_roles), "replies": replies}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Take:
        """Return what `to_document` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        replies: list[dict[str, Any]] = [{**reply, "lines": tuple(reply["lines"])} for reply in document["replies"]]
        return cls(
            str(document["handle"]),
            str(document["role"]),
            float(document["at"]),
            float(document["seconds"]),
            tuple(ReplicaReply(**reply) for reply in replies),
            tuple(document["other_roles"]),
            pace=next((pace for pace in _PACES if pace == document.get("pace")), ""),
            pauses=tuple(map(float, document.get("pauses", ()))),
            moved_at=None if document.get("moved_at") is None else float(document["moved_at"]),
        )

    def _lines(self, kind: str) -> Iterator[dict[str, Any]]:
        for reply in self.replies:
            yield from (line for line in reply.lines if line.get("kind") == kind)


def take_stacks(
    runner: Runner, handle: str, *, role: str = "", native: bool = False, recorder: bool = True, stop: bool = True
) -> Take:
    """Read the stacks of all ranks of a job, and their flight recorders.

    Args:
        runner: asks the job's scheduler.
        handle: the job.
        role: which role; the first if empty.
        native: frames of C and C++ as well, which stops each rank for seconds.
        recorder: read the flight recorders too.
        stop: use py-spy as well, which stops each process for some milliseconds.

    Raises:
        UnknownAppException: there is no such job.
        UnknownRoleError: it has no such role.
        SchedulerError: its scheduler cannot look at running replicas, its replicas are not known, or the job waits to
            be started.
    """
    began, at = time.monotonic(), time.time()
    described = runner.job(handle).describe()
    if described is None:
        raise UnknownAppException(handle)
    statuses = {status.role: status.replicas for status in described.roles_statuses}
    if not statuses:
        raise SchedulerError(f"{handle} has no stacks: {described.reason or 'its replicas are not known'}")
    role = role or next(iter(statuses))
    if role not in statuses:
        raise UnknownRoleError(f"{handle} has no role {role}. Its roles: {join_names(statuses)}")
    if not described.has_ended and described.state not in _RUNS:
        raise SchedulerError(f"{handle} is {described.state.name}: it is not running yet and has no stacks")
    job = runner.job(handle)
    scheduler = job.scheduler
    if not isinstance(scheduler, RunsCommands) and not described.has_ended:
        raise SchedulerError(
            f"{job.scheduler_name} runs no commands beside its jobs: their stacks cannot be read from here"
        )
    argument = json.dumps({"native": native, "recorder": recorder, "stop": stop})
    timeout_s = NATIVE_TIMEOUT_S if native else TIMEOUT_S
    over = [status for status in statuses[role] if described.has_ended or is_terminal(status.state)]
    replies = {
        status.id: ReplicaReply(
            status.id, (), "", True, status.exit_code, status.signal, status.finished_at
        )
        for status in over
    }  # fmt: skip
    running = [status for status in statuses[role] if status.id not in replies]
    replies |= ask_replicas(
        lambda k: _ask(runner, handle, role, k, argument, timeout_s),
        running,
        once_a_node=scheduler.runs_once_per_node,
    )
    others = tuple(other for other in statuses if other != role)
    ordered = tuple(replies[number] for number in sorted(replies))
    recorded = recorded_dumps(described, role) if recorder else {}
    take = Take(handle, role, at, time.monotonic() - began, ordered, others, recorded)
    if take.ranks and isinstance(scheduler, KeepsLogFiles):
        take.pauses, take.moved_at = step_times(job.replica_logs(described))
    return take


def ask_replicas(
    ask: Callable[[int], ReplicaReply], running: Sequence[ReplicaStatus], *, once_a_node: bool
) -> dict[int, ReplicaReply]:
    """Ask the replicas that run, some at a time; with ``once_a_node`` no more of them than it takes to see all nodes.

    On a cluster each question is a step, which the controller has to start.
    """
    replies = {status.id: ReplicaReply(status.id) for status in running}
    of_node = {status.hostname: status for status in reversed(running) if status.hostname}
    if once_a_node:
        running = [each for each in running if not each.hostname or of_node[each.hostname] is each]
    seen: set[str] = set()
    for start in range(0, len(running), _AT_ONCE):
        part = [status.id for status in running[start : start + _AT_ONCE]]

        def keep(k: int) -> None:
            replies[k] = ask(k)

        for error in parallel_map(keep, part, most=_AT_ONCE):
            raise error
        hosts = [str(line.get("host")) for k in part for line in replies[k].lines if line.get("kind") == "end"]
        if once_a_node and len(seen.union(hosts)) < len(seen) + len(hosts):
            break
        seen.update(hosts)
    return replies


def recorded_dumps(described: DescribeAppResponse, role: str) -> dict[int, Dump]:
    """Return the dumps that ranks left in the job's folder, where that is on this machine; broken ones are left out."""
    folder = Path(described.insight_dir, role) if described.insight_dir else None
    found: dict[int, Dump] = {}
    if folder is None or not is_folder(folder):
        return found
    for path in sorted(folder.glob("fr_*"))[:_MOST_LINES]:
        rank = rank_of_file(path.name)
        if rank is None or rank > _MOST_RANKS:
            continue
        try:
            found[rank] = read_dump(path)
        except DumpError as error:
            logger.warning("%s: %s", path, error)
    return found


def _ask(runner: Runner, handle: str, role: str, k: int, argument: str, timeout_s: float) -> ReplicaReply:
    """Run the probe beside one replica."""
    for python in _PYTHONS:
        argv = [python, "-I", "-S", "-c", _program(), argument]
        try:
            output = runner.job(handle).run_beside(role, k, argv, timeout_s)
        except (TorchXTuiError, ValueError, NotImplementedError) as error:
            if python != _PYTHONS[-1] and python in str(error):
                continue
            return ReplicaReply(k, error=str(error))
        lines = tuple(_parse_lines(output.out))
        if any(line.get("kind") == "end" for line in lines):
            return ReplicaReply(k, lines, "" if _has_processes(lines) else "no Python process was found there")
        said = plain(output.err.decode("utf-8", "replace")).strip().splitlines()
        late = f"it did not end within {timeout_s:g} s" if output.code is None else f"exit {output.code}"
        return ReplicaReply(k, lines, said[-1][:300] if said else late)
    raise AssertionError("no Python was tried")


@cache
def _program() -> str:
    """Return the probe's source, packed: some ways carry a command of few kilobytes only."""
    packed = b85encode(zlib.compress(Path(__file__).with_name("probe.py").read_bytes(), 9)).decode("ascii")
    return f"import base64,zlib;exec(compile(zlib.decompress(base64.b85decode({packed!r})),'probe.py','exec'))"


def _parse_lines(data: bytes) -> Iterator[dict[str, Any]]:
    for text in data.splitlines()[:_MOST_LINES]:
        try:
            line = decode_json(text)
        except ValueError:
            continue  # a line of somebody else, or one that was cut off
        if isinstance(line, dict):
            yield line


def _has_processes(lines: tuple[dict[str, Any], ...]) -> bool:
    return any(line.get("kind") == "process" for line in lines)


def _stacks(reply: ReplicaReply) -> Iterator[ProcessStack]:
    for line in reply.lines:
        if line.get("kind") != "process":
            continue
        rank = _rank(line.get("rank"))
        text, threads = line.get("text"), line.get("threads")
        tried = line.get("tried") if isinstance(line.get("tried"), list) else []
        yield ProcessStack(
            reply.replica if rank is None else rank,
            reply.replica,
            plain(str(line.get("host") or "")),
            _number(line.get("pid")) or 0,
            line.get("is_main") is True,
            plain(str(line.get("name") or "")),
            str(line.get("state") or "")[:1],
            plain(str(line.get("waits_for") or "")),
            _number(line.get("cpu")) or 0,
            plain(str(line.get("way") or "")),
            tuple((plain(str(item[0])), plain(str(item[1]))) for item in tried if _is_pair(item)),
            parse_faulthandler(text) if isinstance(text, str) else parse_pyspy(threads),
        )  # fmt: skip


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _why_not(stack: ProcessStack) -> str:
    if stack.state == "D":
        return f"the kernel holds it (D{f', {stack.waits_for}' if stack.waits_for else ''})"
    reasons = [f"{way}: {reason}" for way, reason in stack.tried]
    # The last way is the one that needs nothing of the job: what it lacks helps most.
    return "; ".join(reasons[: -3 if stack.is_main else -2 : -1]) or "it is not a Python process"


def _rank(value: Any) -> int | None:
    """Return a rank or a number of ranks; None for what cannot be one."""
    number = _number(value)
    return number if number is not None and 0 <= number <= _MOST_RANKS else None


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value if abs(value) < 1 << 53 else None
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 10 else None


def _unpacked(data: Any) -> bytes:
    """Return a dump as it was before it was packed.

    Raises:
        DumpError: it is broken or too large.
    """
    try:
        unpack = zlib.decompressobj()
        plain_bytes = unpack.decompress(b64decode(str(data)), _MOST_DUMP_BYTES)
    except (ValueError, zlib.error) as error:
        raise DumpError(f"it arrived damaged: {error}") from error
    if unpack.unconsumed_tail:
        raise DumpError(f"it has more than {_MOST_DUMP_BYTES >> 20} MB")
    return plain_bytes
