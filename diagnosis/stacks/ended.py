"""A job that is over: what its ranks and torchrun wrote at their end, and who ended it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...backends.abilities import KeepsLogFiles, RunsCommands
from ...backends.types import Stream
from ...base.errors import TorchXTuiError
from ...base.files import read_tail
from ..recorder.verdict import Standing, input_words, rank_standings
from .conclusion import Conclusion, conclude
from .error_files import fill_ends
from .frames import Frame, main_frames
from .kept import kept_takes
from .take import take_stacks
from .torchrun import explain_torchrun, read_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from .take import Take

_TAIL_BYTES = 16 << 10
_MOST_CALLS = 3


@dataclass(frozen=True)
class End:
    """What is known of the end of a job.

    Args:
        sentences: which rank ended it, a sentence each, the finding first; none where that cannot be told.
        standings: where its ranks stood, by their flight recorders.
        evidence: what the standings were read from, and what the others waited for.
        stack: the calls of the user's own in which the rank stood that is named first, outermost first.
        stack_words: whose calls they are, and of when.
    """

    sentences: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = ()
    evidence: str = ""
    stack: tuple[Frame, ...] = ()
    stack_words: str = ""


def explain_end(runner: Runner, handle: str, logs: Sequence[ReplicaLog]) -> End:
    """Find out which rank ended a job that is over.

    The flight recorders that the ranks left come first, then torchrun's report; without one, who ended first and whose
    error is one of its own. The last stacks that were taken while it ran are told as well, and their flight recorders
    where the ranks left none.

    Args:
        runner: asks the job's scheduler.
        handle: the job.
        logs: the logs of its replicas.

    Raises:
        TorchXTuiError: the job's backend cannot be asked.
        OSError: its logs cannot be read.
    """
    job = runner.job(handle)
    ends = read_ends(logs)
    described = job.describe() if isinstance(job.scheduler, KeepsLogFiles) else None
    torchruns = fill_ends(ends, described, len(logs)) if described else list(ends.values())
    by_torchrun = explain_torchrun(torchruns)
    lines: list[str] = []
    taken: tuple[Take, Conclusion] | None = None
    culprits: tuple[int, ...] = ()
    if isinstance(job.scheduler, RunsCommands):
        take = take_stacks(runner, handle)
        if take.ranks:
            return End()
        if take.world_size > 1:
            # A replica with a torchrun is not one rank: its end tells of none.
            found = conclude(take, None, {} if by_torchrun else error_texts(runner, take))
            lines = [found.sentence, *found.details] if found.culprits or found.verdict else []
            taken, culprits = (take, found) if found.verdict else None, found.culprits
    # That a collective timed out says less than what was seen while the others waited in it.
    only_waited = any(each.waited for each in torchruns) and not any(each.by_themselves for each in torchruns)
    end = End()
    for earlier in kept_takes(handle, 1):
        before = conclude(earlier)
        at = time.strftime("%H:%M:%S", time.localtime(earlier.at))
        if before.culprits:
            when = "While it ran" if only_waited or not (lines or by_torchrun) else "Before that"
            said = f"{when}, {at}: {before.sentence}{'; it hung' if before.pace == 'hangs' else ''}"
            by_torchrun = (said, *by_torchrun) if only_waited else (*by_torchrun, said)
            taken = taken or ((earlier, before) if before.verdict else None)
        for rank in (culprits or before.culprits)[:1]:
            end = _with_stack(end, earlier, rank, at)
    if taken is not None:
        end = _with_standings(end, *taken)
    return replace(end, sentences=(*lines, *by_torchrun))


def _with_standings(end: End, take: Take, found: Conclusion) -> End:
    verdict = found.verdict
    if verdict is None or verdict.kind in ("agree", "straggler"):
        return end
    at = time.strftime(", %H:%M:%S", time.localtime(take.at)) if take.ranks else ""
    parts = [f"flight recorder, {len(take.dumps)} of {take.world_size} ranks{at}"]
    if verdict.collective is not None:
        parts.append(f"#{verdict.collective.seq} has {input_words(verdict.collective)}")
    return replace(
        end,
        standings=tuple(rank_standings(take.dumps, verdict, take.world_size)),
        evidence="   ".join(parts),
    )


def _with_stack(end: End, take: Take, rank: int, at: str) -> End:
    """Add the innermost calls of the user's own, if the rank was read."""
    stack = take.ranks.get(rank)
    own = [frame for frame in main_frames(stack.threads) if not frame.is_library] if stack else []
    words = f"What rank {rank} did, by its stack of {at}:" if own else ""
    return replace(end, stack=tuple(reversed(own[:_MOST_CALLS])), stack_words=words)


def error_texts(runner: Runner, take: Take) -> dict[int, str]:
    """Return the end of each ended rank's stderr, of those whose log is a file of this machine and of one rank."""
    job = runner.job(take.handle)
    if not isinstance(scheduler := job.scheduler, KeepsLogFiles):
        return {}
    texts = {}
    for rank, reply in take.exited.items():
        with suppress(TorchXTuiError, ValueError):
            files = scheduler.log_files(job.app_id, take.role, reply.replica) if reply else {}
            path = files.get(Stream.STDERR) or files.get(Stream.STDOUT)
            if path is not None:
                texts[rank] = read_tail(path, _TAIL_BYTES).decode("utf-8", "replace")
    return texts
