"""Why a job failed, from its logs: the root error, and the errors that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..pattern.error_kinds import KindFinder, error_pattern
from ..source.replica_log import ReplicaLog
from ..text.line_kinds import TRACEBACK, without_worker
from ..text.shown import shown_text
from .filtering import Rule, RulesScanner
from .match_index import MatchIndex, take_sample
from .merge import LogLine, MergedLog

# How much of a log's end is read, in lines and in seconds.
_MAX_LINES = 200_000
_MAX_SECONDS = 2.0
# Errors that are examined, the latest first.
_MAX_ERRORS = 200
# The job recovered from an error that is so much older (s) than its last one.
_RECENT_S = 120.0
# The longest traceback of one replica, in its own lines, and in the lines of all replicas among which they stand.
_MAX_TRACEBACK_LINES = 400
_MAX_LINES_AFTER_START = 4_000
_TRACEBACK_KIND = "Python traceback"


class LoggedError(NamedTuple):
    """An error in a log.

    Attributes:
        replica: which of the logs it is from.
        line: the number of its line in the log that was read; of a traceback, of its first line.
        time: when it was logged (seconds since the epoch), None where that is not known.
        text: its message in one line: of a traceback, the exception.
        kind: the name of its kind, see `ErrorKind`.
        is_consequence: its kind says that something else failed before.
    """

    replica: int
    line: int
    time: float | None
    text: str
    kind: str
    is_consequence: bool


@dataclass(frozen=True)
class Failure:
    """The errors in the logs of a failed job.

    Attributes:
        cause: the error that the others follow from, None if there is no error.
        consequences: the errors after it, in order; the same text of one replica is there once.
    """

    cause: LoggedError | None = None
    consequences: tuple[LoggedError, ...] = ()


def explain_failure(
    logs: Sequence[ReplicaLog],
    first_failed: int,
    *,
    extra_patterns: Sequence[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> Failure:
    """Find the cause of a failure at the end of a job's logs; call it in a thread, for it may take seconds.

    Args:
        logs: the logs of all replicas.
        first_failed: the index in ``logs`` of the replica that failed first.
        extra_patterns: regular expressions for errors besides the table.
        stopped: tells whether to give up.
    """
    log = MergedLog(logs)
    try:
        log.open()
        log.read_older(_MAX_SECONDS, _MAX_LINES)
        return choose_cause(_last_errors(log, extra_patterns, stopped), first_failed)
    finally:
        log.close()


def find_cause(
    log: MergedLog, *, extra_patterns: Sequence[str] = (), stopped: Callable[[], bool] = lambda: False
) -> int | None:
    """Find the line of the last cause of a failure in a log that another thread reads.

    Args:
        log: the log of one replica, or of several; of several, the earliest of the last errors is the cause.
        extra_patterns: regular expressions for errors besides the table.
        stopped: tells whether to give up.
    """
    alone = 0 if len(log.logs) == 1 else -1
    cause = choose_cause(_last_errors(log, extra_patterns, stopped), alone).cause
    return None if cause is None else cause.line


def choose_cause(errors: Sequence[LoggedError], first_failed: int) -> Failure:
    """Split errors into the cause and its consequences.

    The cause is the last traceback, or else the last error, of the replica that failed first, unless that is a
    consequence by its kind. Then it is the earliest error of any replica that is none, or else the earliest of all.

    Args:
        errors: a job's last errors in order, without those long before its end.
        first_failed: the replica that failed first.
    """
    if not errors:
        return Failure()
    own = [error for error in errors if error.replica == first_failed and not error.is_consequence]
    tracebacks = [error for error in own if error.kind == _TRACEBACK_KIND]
    independent = [error for error in errors if not error.is_consequence]
    cause = (tracebacks or own)[-1] if own else (independent or errors)[0]
    consequences: list[LoggedError] = []
    for error in errors[errors.index(cause) + 1 :]:
        listed = {(other.replica, other.text) for other in (cause, *consequences)}
        if (error.replica, error.text) not in listed:
            consequences.append(error)
    return Failure(cause, tuple(consequences))


def _last_errors(log: MergedLog, extra_patterns: Sequence[str], stopped: Callable[[], bool]) -> list[LoggedError]:
    """List the last errors of a log, in order."""
    if not any(log.index.sizes()):
        return []
    kinds = KindFinder(extra_patterns)
    matches = MatchIndex(log, RulesScanner([Rule(error_pattern(extra_patterns))], take_sample(log)))
    errors: list[LoggedError] = []
    at = log.bounds().end - 1
    newest: float | None = None
    while len(errors) < _MAX_ERRORS and not stopped():
        number = matches.find(at, False, stopped)
        if number is None:
            break
        at = number - 1
        (line,) = log.lines(number, 1)
        newest = newest or line.time
        if newest is not None and line.time is not None and line.time < newest - _RECENT_S:
            break
        error = _read_error(log, line, kinds)
        if error is not None:
            errors.append(error)
    return _without_exception_lines(errors[::-1])


def _read_error(log: MergedLog, line: LogLine, kinds: KindFinder) -> LoggedError | None:
    text = shown_text(line.data)
    kind = kinds.kind_of(text)
    if kind is None or line.replica < 0:
        return None
    message, is_consequence = without_worker(text).strip(), kind.is_consequence
    if kind.name == _TRACEBACK_KIND:
        message = _exception_line(log, line) or message
        exception_kind = kinds.kind_of(message)
        is_consequence = exception_kind is not None and exception_kind.is_consequence
    return LoggedError(line.replica, line.number, line.time, message, kind.name, is_consequence)


def _exception_line(log: MergedLog, first: LogLine) -> str:
    """Return the exception of the traceback that begins at a line; empty if it does not end."""
    worker = _worker_of(shown_text(first.data))
    own = 0
    for line in log.lines(first.number + 1, _MAX_LINES_AFTER_START):
        text = shown_text(line.data)
        if line.replica != first.replica or (worker and _worker_of(text) != worker):
            continue
        message = without_worker(text)
        own += 1
        if own > _MAX_TRACEBACK_LINES or message.startswith(TRACEBACK):
            return ""
        if message.strip() and not message.startswith((" ", "\t")):
            return message.strip()
    return ""


def _worker_of(text: str) -> str:
    return text[: len(text) - len(without_worker(text))]


def _without_exception_lines(errors: list[LoggedError]) -> list[LoggedError]:
    """Drop the exception's own line where its traceback is among the errors."""
    exceptions = {(error.replica, error.text) for error in errors if error.kind == _TRACEBACK_KIND}
    return [error for error in errors if error.kind == _TRACEBACK_KIND or (error.replica, error.text) not in exceptions]
