"""Explain in one sentence why a job failed, from its ranks, its logs and its backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError
from ...logs.lines.failure import Failure, explain_failure
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..stacks.ended import End, explain_end

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse
    from ...logs.source.replica_log import ReplicaLog

# The backend reports only that a process exited by itself. Signals do not match: their cause is elsewhere.
_JUST_EXITED = re.compile(r"(?:[\w ]+: )?exit (?:\d{1,2}|1[01]\d|12[0-8])\b")
_ENDS_WITH_EXIT = re.compile(r"\bexit \d+(?: \(\w+\))?$")


@dataclass(frozen=True)
class Explanation:
    """Why a job is in its state.

    Attributes:
        sentence: the reason in one line; empty where nothing is known.
        end: the rank that ended the job, and the position of every rank at that time.
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
    try:
        end = explain_end(runner, handle, logs)
    except (TorchXTuiError, OSError, ValueError):
        end = End()  # explain the failure from the logs alone
    return Explanation(_choose_sentence(reason, end, failure), end, failure)


def _choose_sentence(reason: str, end: End, failure: Failure) -> str:
    """Prefer the rank that ended the job, with its error; else use the error in the logs and the backend's reason."""
    is_own = failure.cause is not None and not failure.cause.is_consequence
    error = plain(failure.sentence) if is_own or failure.last_lines else ""
    if end.sentences:
        finding = plain(end.sentences[0])
        return f"{finding}, {error}" if error and _ENDS_WITH_EXIT.search(finding) else finding
    if error and error not in reason and (not reason or _JUST_EXITED.match(reason)):
        return f"{error}: {reason}" if reason else error
    return reason


def _first_failed(described: DescribeAppResponse) -> int:
    """Return the number of the failed replica that ended first, or 0 if none failed."""
    replicas = [replica for status in described.roles_statuses for replica in status.replicas]
    failed = [
        (replica.finished_at or float("inf"), number)
        for number, replica in enumerate(replicas)
        if replica.state is AppState.FAILED
    ]
    return min(failed, default=(0.0, 0))[1]
