"""Why a job failed, by its logs: the error that was first, and those that only follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..pattern.error_kinds import KindFinder, error_pattern
from ..source.replica_log import ReplicaLog
from ..text.shown import shown_text
from ..text.tracebacks import TRACEBACK, without_worker
from .filtering import Rule, RulesScanner
from .merge import LogLine, MergedLog
from .tally import Tally, take_sample

# How much of a log's end is looked at, in lines, and for how long (s).
_LINES = 200_000
_SECONDS = 2.0
# Errors that are looked at, the latest first.
_MOST = 200
# An error that came so long before the job's last one was got over (s).
_RECENT = 120.0
# Lines of one replica that its traceback may have, and lines of all replicas they may be among.
_LONGEST = 400
_AMONG = 4_000
_TRACEBACK_KIND = "Python traceback"


class LoggedError(NamedTuple):
    """An error in a log.

    Attributes:
        replica: which of the logs it is from.
        line: the number of its line in the log that was read; of a traceback, of its first line.
        time: when it came (seconds since the epoch), None where nobody noted it.
        text: what it says in one line: of a traceback, its exception.
        kind: what it is, in a word or two.
        follows: it tells by itself that something else failed before.
    """

    replica: int
    line: int
    time: float | None
    text: str
    kind: str
    follows: bool


@dataclass(frozen=True)
class Failure:
    """What the logs tell of a failed job.

    Attributes:
        cause: the error that the others follow from, None where no error was found.
        followers: the errors after it, in order; the same text of one replica is there once.
    """

    cause: LoggedError | None = None
    followers: tuple[LoggedError, ...] = ()


def explain_failure(
    logs: Sequence[ReplicaLog],
    first_failed: int,
    *,
    extra_patterns: Sequence[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> Failure:
    """Read the end of a failed job's logs; it may take seconds, and belongs in a thread.

    Args:
        logs: the logs of all replicas.
        first_failed: the replica that failed first, by its place in ``logs``.
        extra_patterns: what counts as an error besides the table.
        stopped: tells whether to give up.
    """
    log = MergedLog(logs)
    try:
        log.open()
        log.read_older(_SECONDS, _LINES)
        return choose_cause(_last_errors(log, extra_patterns, stopped), first_failed)
    finally:
        log.close()


def find_cause(
    log: MergedLog, *, extra_patterns: Sequence[str] = (), stopped: Callable[[], bool] = lambda: False
) -> int | None:
    """Return the line of a log that is read by somebody else at which its last cause of a failure stands.

    Args:
        log: the log of one replica, or of several, of which the earliest of the last errors counts.
        extra_patterns: what counts as an error besides the table.
        stopped: tells whether to give up.
    """
    alone = 0 if len(log.logs) == 1 else -1
    cause = choose_cause(_last_errors(log, extra_patterns, stopped), alone).cause
    return None if cause is None else cause.line


def choose_cause(errors: Sequence[LoggedError], first_failed: int) -> Failure:
    """Part errors into the cause and those that follow from it.

    The cause is the last traceback, or else the last error, of the replica that failed first, unless that one merely
    follows: then the earliest error of any replica that does not; and if all do, the earliest of all.

    Args:
        errors: a job's last errors in order, those long before its end left out.
        first_failed: the replica that failed first.
    """
    if not errors:
        return Failure()
    own = [error for error in errors if error.replica == first_failed and not error.follows]
    tracebacks = [error for error in own if error.kind == _TRACEBACK_KIND]
    telling = [error for error in errors if not error.follows]
    cause = (tracebacks or own)[-1] if own else (telling or errors)[0]
    followers: list[LoggedError] = []
    for error in errors[errors.index(cause) + 1 :]:
        if not any(error.replica == one.replica and error.text == one.text for one in (cause, *followers)):
            followers.append(error)
    return Failure(cause, tuple(followers))


def _last_errors(log: MergedLog, extra_patterns: Sequence[str], stopped: Callable[[], bool]) -> list[LoggedError]:
    """Return the last errors of a log, in order."""
    if not any(log.index.sizes()):
        return []
    kinds = KindFinder(extra_patterns)
    tally = Tally(log, RulesScanner([Rule(error_pattern(extra_patterns))], take_sample(log)))
    found: list[LoggedError] = []
    at = log.bounds().end - 1
    newest: float | None = None
    while len(found) < _MOST and not stopped():
        number = tally.find(at, False, stopped)
        if number is None:
            break
        at = number - 1
        (line,) = log.lines(number, 1)
        newest = newest or line.time
        if newest is not None and line.time is not None and line.time < newest - _RECENT:
            break
        error = _read_error(log, line, kinds)
        if error is not None:
            found.append(error)
    return _without_parts(found[::-1])


def _read_error(log: MergedLog, line: LogLine, kinds: KindFinder) -> LoggedError | None:
    text = shown_text(line.data)
    kind = kinds.kind_of(text)
    if kind is None or line.replica < 0:
        return None
    said, follows = without_worker(text).strip(), kind.follows
    if kind.name == _TRACEBACK_KIND:
        said = _exception_of(log, line) or said
        follows = (found := kinds.kind_of(said)) is not None and found.follows
    return LoggedError(line.replica, line.number, line.time, said, kind.name, follows)


def _exception_of(log: MergedLog, first: LogLine) -> str:
    """Return the exception of the traceback that begins at a line; empty if it does not end."""
    worker = _worker_of(shown_text(first.data))
    own = 0
    for line in log.lines(first.number + 1, _AMONG):
        text = shown_text(line.data)
        if line.replica != first.replica or (worker and _worker_of(text) != worker):
            continue
        said = without_worker(text)
        own += 1
        if own > _LONGEST or said.startswith(TRACEBACK):
            return ""
        if said.strip() and not said.startswith((" ", "\t")):
            return said.strip()
    return ""


def _worker_of(text: str) -> str:
    return text[: len(text) - len(without_worker(text))]


def _without_parts(errors: list[LoggedError]) -> list[LoggedError]:
    """Leave out the exception's own line where its traceback is among the errors."""
    told = {(error.replica, error.text) for error in errors if error.kind == _TRACEBACK_KIND}
    return [error for error in errors if error.kind == _TRACEBACK_KIND or (error.replica, error.text) not in told]
