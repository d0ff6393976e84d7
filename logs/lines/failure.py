"""Why a job failed, from its logs: the root error, and the errors that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..pattern.error_kinds import ErrorKind, KindFinder, Role, error_pattern
from ..pattern.error_reader import choose_error, last_lines, read_error, read_unknown
from ..source.replica_log import ReplicaLog
from ..text.shown import shown_text
from .matches import Matches, Rule
from .merge import LogLine, MergedLog

# The lines of a log's end that are read.
_MAX_LINES = 200_000
MAX_SECONDS = 2.0
"""How long the end of a log is read."""
# Errors that are examined, the latest first.
_MAX_ERRORS = 200
# The job recovered from an error that is this many seconds older than its last one.
_RECENT_S = 120.0
# Maximum lines of all replicas in which the traceback of one replica is searched.
_MAX_LINES_AFTER_START = 4_000
# Lines per read while following an error of one replica.
_CHUNK = 64


class LoggedError(NamedTuple):
    """An error in a log.

    Attributes:
        replica: which of the logs it is from.
        line: the number of its line in the log that was read; of a traceback, of its first line.
        time: when it was logged (seconds since the epoch), None if not known.
        text: its message in one line: of a traceback, the exception.
        kind: its kind, which has its role in a failure.
        worker: the prefix of the worker that printed it; empty without one.
    """

    replica: int
    line: int
    time: float | None
    text: str
    kind: ErrorKind
    worker: str = ""

    @property
    def is_consequence(self) -> bool:
        """Whether this error cannot be the cause of a failure."""
        return self.kind.is_consequence

    @property
    def process(self) -> Hashable:
        """An id of the process that printed it."""
        return self.replica, self.worker.partition("]")[0]


@dataclass(frozen=True)
class Failure:
    """The errors in the logs of a failed job.

    Attributes:
        cause: the error that the others follow from, None if there is no error.
        consequences: the errors after it, in order; the same text of one replica is there once.
        is_only: the whole log was read and has no other error.
        last_lines: the last lines of the replica that failed first, if no error is recognised.
    """

    cause: LoggedError | None = None
    consequences: tuple[LoggedError, ...] = ()
    is_only: bool = False
    last_lines: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The cause, or else the last line; empty if neither is known."""
        return self.cause.text if self.cause else self.last_lines[-1] if self.last_lines else ""


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
        stopped: returns whether to give up.
    """
    log = MergedLog(logs)
    try:
        log.open()
        log.read_older(MAX_SECONDS, _MAX_LINES)
        errors, is_whole = _last_errors(log, extra_patterns, stopped)
        if not errors:
            return Failure(last_lines=_last_lines(log, first_failed))
        failure = choose_cause(errors, first_failed)
        return replace(failure, is_only=is_whole and len(errors) == 1)
    finally:
        log.close()


def find_cause(
    log: MergedLog, *, extra_patterns: Sequence[str] = (), stopped: Callable[[], bool] = lambda: False
) -> int | None:
    """Find the line of the last cause of a failure in a log that another thread reads.

    Args:
        log: the log of one replica, or of several; of several, the earliest of the last errors is the cause.
        extra_patterns: regular expressions for errors besides the table.
        stopped: returns whether to give up.
    """
    alone = 0 if len(log.logs) == 1 else -1
    cause = choose_cause(_last_errors(log, extra_patterns, stopped)[0], alone).cause
    return None if cause is None else cause.line


def choose_cause(errors: Sequence[LoggedError], first_failed: int) -> Failure:
    """Split errors into the cause and its consequences.

    `choose_error` chooses the cause among the errors of the replica that failed first, or else among those of all
    replicas. If all errors are consequences, the cause is the earliest one.

    Args:
        errors: a job's last errors in order, without those long before its end.
        first_failed: the replica that failed first.
    """
    if not errors:
        return Failure()
    own = [error for error in errors if error.replica == first_failed and not error.is_consequence]
    independent = [error for error in errors if not error.is_consequence]
    followers = [error for error in errors if error.kind.role in (Role.LOST_PEER, Role.TIMEOUT)]
    cause = choose_error(own) or choose_error(independent) or (followers or errors)[0]
    consequences: list[LoggedError] = []
    for error in errors[errors.index(cause) + 1 :]:
        listed = {(other.replica, other.text) for other in (cause, *consequences)}
        if (error.replica, error.text) not in listed and error.kind.role is not Role.NOISE:
            consequences.append(error)
    return Failure(cause, tuple(consequences))


def _last_errors(
    log: MergedLog, extra_patterns: Sequence[str], stopped: Callable[[], bool]
) -> tuple[list[LoggedError], bool]:
    """List the last errors of a log, in order; the second value is True if the log has no others."""
    if not any(log.index.sizes()):
        return [], True
    kinds = KindFinder(extra_patterns)
    found, is_whole = _error_lines(log, extra_patterns, stopped)
    errors: list[LoggedError] = []
    used: set[tuple[int, int]] = set()
    for line in found:
        if (line.replica, line.number) in used or line.replica < 0 or stopped():
            continue
        error = read_error(_replica_lines(log, line), kinds)
        if error is not None:
            errors.append(LoggedError(line.replica, line.number, line.time, error.text, error.kind, error.worker))
            used |= {(line.replica, number) for number in error.used}
    if errors and all(error.is_consequence for error in errors):
        errors[:0] = _unknown_before(log, errors[0])
    return errors, is_whole


def _error_lines(
    log: MergedLog, extra_patterns: Sequence[str], stopped: Callable[[], bool]
) -> tuple[list[LogLine], bool]:
    """List the last lines of errors, in order; the second value is True if there are no others."""
    matches = Matches(log, [Rule(error_pattern(extra_patterns))])
    found: list[LogLine] = []
    at = log.bounds().end - 1
    newest: float | None = None
    while len(found) < _MAX_ERRORS and not stopped():
        number = matches.find(at, False, stopped)
        if number is None:
            return found[::-1], log.bounds().complete
        at = number - 1
        # None if the line was dropped just now; then so were all before it.
        line = next(iter(log.lines(number, 1)), None)
        if line is None:
            break
        newest = newest or line.time
        if newest is not None and line.time is not None and line.time < newest - _RECENT_S:
            break
        found.append(line)
    return found[::-1], False


def _replica_lines(log: MergedLog, first: LogLine) -> Iterator[tuple[int, str]]:
    """Yield the lines of one replica, starting at a line."""
    yield first.number, shown_text(first.data)
    for start in range(first.number + 1, first.number + _MAX_LINES_AFTER_START, _CHUNK):
        lines = log.lines(start, _CHUNK)
        yield from ((line.number, shown_text(line.data)) for line in lines if line.replica == first.replica)
        if not lines:
            return


def _unknown_before(log: MergedLog, first: LoggedError) -> list[LoggedError]:
    """Return the line before the first consequence if it may be an error of unknown kind."""
    before = [line for line in log.lines(first.line - 1, 1) if line.number < first.line and line.stream != "o"]
    found = [(line, read_unknown(line.number, shown_text(line.data))) for line in before if line.replica >= 0]
    return [LoggedError(line.replica, line.number, line.time, error.text, error.kind) for line, error in found if error]


def _last_lines(log: MergedLog, replica: int) -> tuple[str, ...]:
    """Return the last lines of a replica's stderr, or of its combined output if the streams are not separate."""
    end = log.bounds().end
    lines = log.lines(max(log.bounds().first, end - _MAX_LINES_AFTER_START), _MAX_LINES_AFTER_START)
    return last_lines(shown_text(line.data) for line in lines if line.replica == replica and line.stream in "ec")
