"""A job that is over: what its ranks and torchrun wrote at their end, and who ended it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...backends.types import Stream
from ...specs import parse_app_handle
from ...specs.files import read_tail
from .conclusion import conclude
from .error_files import fill_ends
from .kept import kept_takes
from .take import take_stacks
from .torchrun import explain_torchrun, read_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from .take import Take

_TAIL_BYTES = 16 << 10


def explain_end(runner: Runner, handle: str, logs: Sequence[ReplicaLog]) -> tuple[str, ...]:
    """Say which rank ended a job that is over, a sentence each; nothing where that cannot be told.

    The flight recorders that the ranks left come first, then torchrun's report; without one, who ended first and whose
    error is one of its own. The last stacks that were taken while it ran are told as well.

    Args:
        runner: asks the job's scheduler.
        handle: the job.
        logs: the logs of its replicas.

    Raises:
        TorchXTuiError: the job's backend cannot be asked.
        OSError: its logs cannot be read.
    """
    capabilities = runner.capabilities(parse_app_handle(handle).scheduler_backend)
    ends = read_ends(logs)
    described = runner.describe(handle) if capabilities.log_files else None
    by_torchrun = explain_torchrun(fill_ends(ends, described, len(logs)) if described else list(ends.values()))
    lines: list[str] = []
    if capabilities.run_beside:
        take = take_stacks(runner, handle)
        if take.ranks:
            return ()
        if take.world_size > 1:
            # A replica with a torchrun is not one rank: its end tells of none.
            found = conclude(take, None, {} if by_torchrun else error_texts(runner, take))
            lines = [found.sentence, *found.details] if found.culprits or found.verdict else []
    lines += by_torchrun
    for earlier in kept_takes(handle, 1):
        before = conclude(earlier)
        if before.culprits:
            at = time.strftime("%H:%M:%S", time.localtime(earlier.at))
            hung = "; it hung" if before.pace == "hangs" else ""
            lines.append(f"Before that, {at}: {before.sentence}{hung}")
    return tuple(lines)


def error_texts(runner: Runner, take: Take) -> dict[int, str]:
    """Return the end of each ended rank's stderr, of those whose log is a file of this machine and of one rank."""
    name, _, app_id = parse_app_handle(take.handle)
    scheduler = runner.scheduler(name)
    if not scheduler.capabilities.log_files:
        return {}
    streams = scheduler.capabilities.log_streams
    stream = Stream.STDERR if Stream.STDERR in streams else Stream.COMBINED
    texts = {}
    for rank, reply in take.exited.items():
        path = scheduler.log_path(app_id, take.role, reply.replica, stream) if reply else None
        if path is not None:
            texts[rank] = read_tail(path, _TAIL_BYTES).decode("utf-8", "replace")
    return texts
