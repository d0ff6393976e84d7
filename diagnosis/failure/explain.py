"""Explain why a job failed, from its flight recorders, torchrun's report, the ends of its ranks, logs and stacks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...backends.abilities import KeepsLogFiles, RunsCommands
from ...base.errors import TorchXTuiError
from ...logs.lines.failure import Failure, explain_failure
from ...logs.lines.merge import MergedLog
from ...logs.text.sanitize import plain
from ...logs.text.shown import shown_text
from ...specs.status import AppState
from ..frames import Frame, main_frames
from ..recorder.findings import Finding, RankPosition, rank_positions
from ..stacks.collect import take_snapshot
from ..stacks.conclusion import Conclusion, conclude
from ..stacks.kept import kept_snapshots
from ..stacks.rank_errors import read_rank_errors
from ..stacks.snapshot import StackSnapshot
from ..stacks.text import describe_inputs
from .text import describe_torchruns
from .torchrun import Cause, TorchrunEnd, parse_torchrun
from .torchrun_files import add_errors

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse
    from ...logs.source.replica_log import ReplicaLog

# The backend reports only that a process exited by itself. Signals do not match: their cause is elsewhere.
_JUST_EXITED = re.compile(r"(?:[\w ]+: )?exit (?:\d{1,2}|1[01]\d|12[0-8])\b")
_MAX_LINES, _MAX_SECONDS, _MAX_CALLS = 20_000, 2.0, 3


@dataclass(frozen=True)
class Explanation:
    """The reason of a job's state.

    Attributes:
        sentence: the reason in one line; empty if unknown.
        details: what else is known of the end of its ranks, a sentence each; empty if that is unknown.
        positions: the positions of its ranks, by their flight recorders.
        evidence: the source of the positions, and what the ranks waited for.
        stack: the innermost calls of the user's code in the rank that ended the job, outermost first.
        stack_title: the rank and the time of the stack.
        failure: the errors in the job's logs.
    """

    sentence: str = ""
    details: tuple[str, ...] = ()
    positions: tuple[RankPosition, ...] = ()
    evidence: str = ""
    stack: tuple[Frame, ...] = ()
    stack_title: str = ""
    failure: Failure = field(default_factory=Failure)


def explain_job(
    runner: Runner,
    handle: str,
    described: DescribeAppResponse,
    logs: Sequence[ReplicaLog],
    *,
    extra_patterns: Sequence[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> Explanation:
    """Explain the state of a job. This reads the logs of a failed job, so call it in a thread.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        described: the backend's description of the job.
        logs: the logs of its replicas.
        extra_patterns: regular expressions for errors that the table does not list.
        stopped: returns True to cancel the search.
    """
    reason = plain(described.reason)
    if described.state is not AppState.FAILED or not logs:
        return Explanation(reason)
    failure = explain_failure(logs, _first_failed(described), extra_patterns=extra_patterns, stopped=stopped)
    is_own = failure.cause is not None and not failure.cause.is_consequence
    error = plain(failure.sentence) if is_own or failure.last_lines else ""
    try:
        explanation = explain_ranks(runner, handle, described, logs, error)
    except (TorchXTuiError, OSError, ValueError):
        explanation = Explanation()  # explain the failure from the logs alone
    if explanation.sentence:
        return replace(explanation, failure=failure)
    if error and error not in reason and (not reason or _JUST_EXITED.match(reason)):
        reason = f"{error}: {reason}" if reason else error
    return Explanation(reason, failure=failure)


def explain_ranks(
    runner: Runner, handle: str, described: DescribeAppResponse, logs: Sequence[ReplicaLog], error: str = ""
) -> Explanation:
    """Explain which rank ended a job that has ended.

    The flight recorders that the ranks left come first, then torchrun's report, or else the rank that ended first or
    has an error of its own. A collective that timed out comes after the snapshot of the wait for it.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        described: the backend's description of the job.
        logs: the logs of its replicas.
        error: the error in its logs, for a rank without one of its own.

    Raises:
        TorchXTuiError: the job's backend does not answer.
        OSError: the logs cannot be read.
    """
    ends = _read_torchruns(logs)
    scheduler = runner.job(handle).scheduler
    has_files = isinstance(scheduler, KeepsLogFiles)
    torchruns = add_errors(ends, described) if has_files else list(ends.values())
    by_torchrun = describe_torchruns(torchruns, error)
    by_ranks: list[str] = []
    seen: list[tuple[StackSnapshot, Conclusion]] = []
    if isinstance(scheduler, RunsCommands):
        snapshot = take_snapshot(runner, handle)
        if snapshot.ranks:
            return Explanation()  # ranks still run
        # A replica of torchrun is several ranks: its output is not that of one rank.
        found = conclude(snapshot, None, {} if torchruns else read_rank_errors(runner, snapshot))
        if snapshot.world_size > 1 and (found.blocking or found.finding):
            by_ranks = [found.sentence, *found.details]
            seen.append((snapshot, found))
    sentences = [*by_ranks, *by_torchrun]
    for snapshot in kept_snapshots(handle, 1):
        found = conclude(snapshot)
        seen.append((snapshot, found))
        if found.blocking:
            # A collective that timed out says less than the snapshot of the wait for it.
            timed_out = any(end.ends(Cause.TIMEOUT) for end in torchruns) and not any(
                end.ends(Cause.OWN) for end in torchruns
            )
            when = "While it ran" if timed_out or not sentences else "Before that"
            hung = "; the job hung" if found.pace == "hangs" else ""
            described_before = f"{when}, {_clock(snapshot)}: {found.sentence}{hung}"
            sentences.insert(len(by_ranks) if timed_out else len(sentences), described_before)
    explanation = Explanation(plain(sentences[0]) if sentences else "", tuple(sentences[1:]))
    blocking = next((found.blocking for _, found in seen if found.blocking), ())
    for snapshot, found in seen:
        explanation = _with_positions(_with_stack(explanation, snapshot, blocking), snapshot, found.finding)
    return explanation


def _with_positions(explanation: Explanation, snapshot: StackSnapshot, finding: Finding | None) -> Explanation:
    if explanation.positions or finding is None or finding.kind == "straggler":
        return explanation
    clock = f", {_clock(snapshot)}" if snapshot.ranks else ""
    source = f"flight recorder, {len(snapshot.dumps)} of {snapshot.world_size} ranks{clock}"
    call = finding.collective
    inputs = f"   #{call.seq} has {describe_inputs(call)}" if call else ""
    positions = rank_positions(snapshot.dumps, finding, snapshot.world_size)
    return replace(explanation, positions=tuple(positions), evidence=source + inputs)


def _with_stack(explanation: Explanation, snapshot: StackSnapshot, blocking: Sequence[int]) -> Explanation:
    stacks = [snapshot.ranks[rank] for rank in blocking[:1] if rank in snapshot.ranks]
    own = [frame for stack in stacks for frame in main_frames(stack.threads) if not frame.is_library]
    if not own:
        return explanation
    cut = f", the innermost {_MAX_CALLS} of {len(own)} calls in your code" if len(own) > _MAX_CALLS else ""
    title = f"Stack of rank {blocking[0]} at {_clock(snapshot)}{cut}:"
    return replace(explanation, stack=tuple(reversed(own[:_MAX_CALLS])), stack_title=title)


def _clock(snapshot: StackSnapshot) -> str:
    return time.strftime("%H:%M:%S", time.localtime(snapshot.at))


def _read_torchruns(logs: Sequence[ReplicaLog]) -> dict[int, TorchrunEnd]:
    """Return the end of torchrun in the log of each replica that has one."""
    log = MergedLog(logs)
    texts: dict[int, list[str]] = {}
    try:
        log.open()
        log.read_older(_MAX_SECONDS, _MAX_LINES)
        bounds = log.bounds()
        for line in log.lines(max(bounds.first, bounds.end - _MAX_LINES), _MAX_LINES):
            if line.replica >= 0:
                texts.setdefault(line.replica, []).append(shown_text(line.data))
    finally:
        log.close()
    return {number: found for number in sorted(texts) if (found := parse_torchrun(texts[number])) is not None}


def _first_failed(described: DescribeAppResponse) -> int:
    """Return the number of the failed replica that ended first, or 0 if none failed."""
    replicas = [replica for status in described.roles_statuses for replica in status.replicas]
    failed = [
        (replica.finished_at or float("inf"), number)
        for number, replica in enumerate(replicas)
        if replica.state is AppState.FAILED
    ]
    return min(failed, default=(0.0, 0))[1]
