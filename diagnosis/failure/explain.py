"""Why a job failed: one sentence for all that show it, ranked from what its ranks, its logs and its backend tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...logs.text.sanitize import plain
from ...logs.view.failure import Failure, explain_failure
from ...specs import AppState, TorchXTuiError
from ..stacks.ended import End, explain_end

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse
    from ...logs.source.replica_log import ReplicaLog

# A process ended by itself, and its backend does not know why; a signal has its cause elsewhere.
_JUST_EXITED = re.compile(r"(?:[\w ]+: )?exit (?:\d{1,2}|1[01]\d|12[0-8])\b")
_ENDS_WITH_EXIT = re.compile(r"\bexit \d+(?: \(\w+\))?$")


@dataclass(frozen=True)
class Explanation:
    """Why a job is in its state.

    Attributes:
        sentence: the reason in one line; empty where nothing is known.
        end: which rank ended it, and where its ranks stood.
        failure: the errors in its logs.
    """

    sentence: str = ""
    end: End = field(default_factory=End)
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
    """Explain the state of a job; of a failed one its logs are read, so call it in a thread.

    Args:
        runner: asks the job's scheduler.
        handle: the job.
        described: what its backend says of it.
        logs: the logs of its replicas.
        extra_patterns: regular expressions for errors besides the table.
        stopped: tells whether to give up.
    """
    told = plain(described.reason)
    if described.state is not AppState.FAILED or not logs:
        return Explanation(told)
    failure = explain_failure(logs, _first_failed(described), extra_patterns=extra_patterns, stopped=stopped)
    try:
        end = explain_end(runner, handle, logs)
    except (TorchXTuiError, OSError, ValueError):
        end = End()  # the backend cannot be asked; the logs tell all the same
    return Explanation(_rank(told, end, failure), end, failure)


def _rank(told: str, end: End, failure: Failure) -> str:
    """Return the sentence: of the rank that ended the job, with its error, or else of the logs and of the backend."""
    is_own = failure.cause is not None and not failure.cause.is_consequence
    said = plain(failure.sentence) if is_own or failure.last_lines else ""
    if end.sentences:
        finding = plain(end.sentences[0])
        return f"{finding}, {said}" if said and _ENDS_WITH_EXIT.search(finding) else finding
    if said and said not in told and (not told or _JUST_EXITED.match(told)):
        return f"{said}: {told}" if told else said
    return told


def _first_failed(described: DescribeAppResponse) -> int:
    """Return the number of the failed replica that ended first, or 0 if none failed."""
    replicas = [replica for status in described.roles_statuses for replica in status.replicas]
    failed = [
        (replica.finished_at or float("inf"), number)
        for number, replica in enumerate(replicas)
        if replica.state is AppState.FAILED
    ]
    return min(failed, default=(0.0, 0))[1]
