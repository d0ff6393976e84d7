"""Take a snapshot of a job: run `probe.py` beside each replica and parse its output."""

from __future__ import annotations

import json
import logging
import time
import zlib
from base64 import b85encode
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.abilities import KeepsLogFiles, RunsCommands
from ...backends.shared.parallel import parallel_map
from ...base.errors import TorchXTuiError, join_names
from ...base.files import is_folder
from ...logs.text.sanitize import plain
from ...specs.errors import SchedulerError, UnknownAppException, UnknownRoleError
from ...specs.status import AppState, ReplicaStatus, is_terminal
from ..progress.reader import step_times
from ..recorder.dump import Dump, DumpError, rank_of_file, read_dump
from .protocol import MAX_RANK, parse_lines, parse_snapshot
from .snapshot import ReplicaReply, StackSnapshot

if TYPE_CHECKING:
    from ...backends.job import Job
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse

logger = logging.getLogger(__name__)

TIMEOUT_S, NATIVE_TIMEOUT_S = 30.0, 150.0
_PARALLEL_PROBES = 8
_PYTHONS = ("python3", "python")


def take_snapshot(
    runner: Runner, handle: str, *, role: str = "", native: bool = False, stop: bool = True
) -> StackSnapshot:
    """Read the stacks and flight recorders of all ranks of a job.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job.
        role: the role; empty for the first one.
        native: read frames of C and C++, too, which stops each rank for seconds.
        stop: use py-spy, which stops each process for some milliseconds.

    Raises:
        UnknownAppException: there is no such job.
        UnknownRoleError: it has no such role.
        SchedulerError: the scheduler runs no commands beside its jobs, the replicas are unknown, or the job does not
            run yet.
    """
    began, at = time.monotonic(), time.time()
    job = runner.job(handle)
    described = job.describe()
    if described is None:
        raise UnknownAppException(handle)
    statuses = {status.role: status.replicas for status in described.roles_statuses}
    if not statuses:
        raise SchedulerError(f"{handle} has no stacks: {described.reason or 'its replicas are not known'}")
    role = role or next(iter(statuses))
    if role not in statuses:
        raise UnknownRoleError(f"{handle} has no role {role}. Its roles: {join_names(statuses)}")
    if not described.has_ended and described.state is not AppState.RUNNING:
        raise SchedulerError(f"{handle} is {described.state.name}: it is not running yet and has no stacks")
    scheduler = job.scheduler
    if not isinstance(scheduler, RunsCommands) and not described.has_ended:
        raise SchedulerError(
            f"{job.scheduler_name} runs no commands beside its jobs: their stacks cannot be read from here"
        )
    argument = json.dumps({"native": native, "stop": stop})
    timeout_s = NATIVE_TIMEOUT_S if native else TIMEOUT_S
    ended = [status for status in statuses[role] if described.has_ended or is_terminal(status.state)]
    replies = {
        status.id: ReplicaReply(
            status.id, has_ended=True, exit_code=status.exit_code, signal=status.signal, ended_at=status.finished_at
        )
        for status in ended
    }
    replies |= ask_replicas(
        lambda k: _ask(job, role, k, argument, timeout_s),
        [status for status in statuses[role] if status.id not in replies],
        once_a_node=scheduler.runs_once_per_node,
    )
    is_read = isinstance(scheduler, KeepsLogFiles) and any(reply.lines for reply in replies.values())
    pauses, moved_at = step_times(job.replica_logs(described)) if is_read else ((), None)
    return parse_snapshot(
        handle,
        role,
        [replies[number] for number in sorted(replies)],
        recorded=_recorded_dumps(described, role),
        at=at,
        seconds=time.monotonic() - began,
        other_roles=tuple(other for other in statuses if other != role),
        pauses=pauses,
        moved_at=moved_at,
    )  # fmt: skip


def ask_replicas(
    ask: Callable[[int], ReplicaReply], running: Sequence[ReplicaStatus], *, once_a_node: bool
) -> dict[int, ReplicaReply]:
    """Ask running replicas, some at a time.

    Args:
        ask: asks a replica, given its number.
        running: the replicas.
        once_a_node: ask only as many as it takes to see all nodes: on a cluster each question is a job step.
    """
    replies = {status.id: ReplicaReply(status.id) for status in running}
    of_node = {status.hostname: status for status in reversed(running) if status.hostname}
    if once_a_node:
        running = [each for each in running if not each.hostname or of_node[each.hostname] is each]
    seen: set[str] = set()
    for start in range(0, len(running), _PARALLEL_PROBES):
        part = [status.id for status in running[start : start + _PARALLEL_PROBES]]

        def keep(k: int) -> None:
            replies[k] = ask(k)

        for error in parallel_map(keep, part, most=_PARALLEL_PROBES):
            raise error
        hosts = [str(line.get("host")) for k in part for line in replies[k].lines if line.get("kind") == "end"]
        if once_a_node and len(seen.union(hosts)) < len(seen) + len(hosts):
            break
        seen.update(hosts)
    return replies


def _recorded_dumps(described: DescribeAppResponse, role: str) -> dict[int, Dump]:
    """Return the readable dumps that ranks left in the job's folder on this machine."""
    folder = Path(described.insight_dir, role) if described.insight_dir else None
    found: dict[int, Dump] = {}
    if folder is None or not is_folder(folder):
        return found
    for path in sorted(folder.glob("fr_*"))[:MAX_RANK]:
        rank = rank_of_file(path.name)
        if rank is not None and rank <= MAX_RANK:
            try:
                found[rank] = read_dump(path)
            except DumpError as error:
                logger.warning("%s: %s", path, error)
    return found


def _ask(job: Job, role: str, k: int, argument: str, timeout_s: float) -> ReplicaReply:
    """Run the probe beside one replica."""
    for python in _PYTHONS:
        argv = [python, "-I", "-S", "-c", _program(), argument]
        try:
            output = job.run_beside(role, k, argv, timeout_s)
        except (TorchXTuiError, ValueError, NotImplementedError) as error:
            if python != _PYTHONS[-1] and python in str(error):
                continue
            return ReplicaReply(k, error=str(error))
        lines = parse_lines(output.out)
        kinds = {line.get("kind") for line in lines}
        if "end" in kinds:
            return ReplicaReply(k, lines, "" if "process" in kinds else "no Python process was found there")
        errors = plain(output.err.decode("utf-8", "replace")).strip().splitlines()
        late = f"it did not end within {timeout_s:g} s" if output.code is None else f"exit {output.code}"
        return ReplicaReply(k, lines, errors[-1][:300] if errors else late)
    raise AssertionError("no Python was tried")


@cache
def _program() -> str:
    """Return the probe's source, compressed: some schedulers limit a command to a few kilobytes."""
    packed = b85encode(zlib.compress(Path(__file__).with_name("probe.py").read_bytes(), 9)).decode("ascii")
    return f"import base64,zlib;exec(compile(zlib.decompress(base64.b85decode({packed!r})),'probe.py','exec'))"
