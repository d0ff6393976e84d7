"""The command log, and the logs of a job that `run` waits for."""

from __future__ import annotations

import io
import queue
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ..backends.shared.replicas import pick_replica
from ..base.errors import TorchXTuiError, describe_error
from ..logs.source.stream import Record
from ..specs.errors import MalformedAppHandleException, SchedulerError
from ..specs.status import AppState
from .jobs import describe_job, describe_through_outage, with_job
from .log_printers import JsonPrinter, LogPrinter, StreamKey, Target, log_printer
from .output import say

if TYPE_CHECKING:
    from ..backends.job import Job
    from ..backends.log_records import LogRecords
    from ..backends.types import DescribeAppResponse, Stream
    from ..settings.config import Settings

_TARGET = re.compile(r"^(?P<handle>.+?://[^/]*/[^/]+)(?:/(?P<role>[^/]+)(?:/(?P<replicas>\d+(?:,\d+)*))?)?/?$")
# Interval for drawing unfinished lines and for checking for signals (s).
_REFRESH_S = 0.1
# Replicas that are read at a time, one thread each: whole logs, and logs that are followed until the job ends.
_MOST_READ, _MOST_FOLLOWED = 16, 256
# Records that wait to be printed.
_MOST_RECORDS = 256


def log(arguments: Any, settings: Settings) -> int:
    from ..backends.types import Stream, line_pattern

    match = _TARGET.match(arguments.handle)
    if match is None:
        raise MalformedAppHandleException(arguments.handle)
    stream = Stream(arguments.streams) if arguments.streams else None
    try:
        pattern = line_pattern(arguments.regex)
    except ValueError as error:
        raise TorchXTuiError(str(error)) from error
    with with_job(settings, match["handle"]) as (_, job):
        found = describe_through_outage(job) if arguments.tail else describe_job(job)
        if arguments.tail and _is_waiting(found):
            say(f"waiting for the log of {arguments.handle}, which has not started{_colon_reason(found)}")
        printer = JsonPrinter(sys.stdout, pattern) if arguments.json else log_printer(sys.stdout, pattern)
        reading = _Reading(job, arguments.tail, stream, arguments.lines, pattern)
        _print_logs(reading, _choose(job, found, match["role"], match["replicas"]), printer)
    if not printer.has_printed and arguments.lines != 0:
        say(_why_nothing(arguments, found))
    return 0


def follow_logs(job: Job, file: TextIO) -> None:
    """Print the logs of all replicas of a job until it ends; raise as `_print_logs`."""
    printer = log_printer(file)
    _print_logs(_Reading(job, follows=True), job.log_targets(describe_through_outage(job)), printer)
    printer.pause()


def _why_nothing(arguments: Any, found: DescribeAppResponse) -> str:
    """Return the reason why no line of a log was printed."""
    name = arguments.handle
    if not arguments.tail and _is_waiting(found):
        return f"{name} has not started and has no log yet{_colon_reason(found)}"
    return f"{name} has no line that matches {arguments.regex!r}" if arguments.regex else f"the log of {name} is empty"


def _is_waiting(found: DescribeAppResponse) -> bool:
    return found.state in (AppState.SUBMITTED, AppState.PENDING)


def _colon_reason(found: DescribeAppResponse) -> str:
    return f": {found.reason}" if found.reason else ""


def _choose(job: Job, found: DescribeAppResponse, role: str | None, replicas: str | None) -> list[Target]:
    """Return the replicas that were asked for.

    Raises:
        UnknownReplicaError: there is no such role or replica; the message lists the valid ones.
        SchedulerError: no replica is known.
    """
    targets = job.log_targets(found)
    if role is not None:
        # The error for a replica without a log of its own names the log that has its output.
        targets += [(status.role, replica.id) for status in found.roles_statuses for replica in status.replicas]
    if not targets:
        raise SchedulerError(f"the log of {job.handle} cannot be read: {found.reason or 'its replicas are not known'}")
    if role is None:
        return targets
    known: dict[str, dict[int, Target]] = {}
    for target in targets:
        known.setdefault(target[0], {})[target[1]] = target
    numbers = map(int, replicas.split(",")) if replicas else known.get(role, [0])
    return [pick_replica(job.handle, known, role, k) for k in dict.fromkeys(numbers)]


class _LastLines(LogPrinter):
    """Printer into a buffer of the last lines.

    Args:
        pattern: keep only lines that contain a match.
        count: the number of lines.
    """

    def __init__(self, pattern: re.Pattern[str] | None, count: int) -> None:
        super().__init__(io.StringIO(), pattern)
        self.lines: deque[tuple[StreamKey, bytes]] = deque(maxlen=count)

    def _print(self, key: StreamKey, line: bytes) -> None:
        self.lines.append((key, line))


@dataclass
class _Reading:
    """How the logs of a job are read.

    Attributes:
        job: the job.
        follows: read until the job ends, and retry while its backend cannot be reached.
        stream: which output.
        last: the number of existing lines to begin with; None for all.
        pattern: count only lines that contain a match.
    """

    job: Job
    follows: bool
    stream: Stream | None = None
    last: int | None = None
    pattern: re.Pattern[str] | None = None

    def read(self, target: Target, opened: list[LogRecords]) -> Iterator[Record]:
        """Yield the records of a replica; append each opened log to ``opened``."""
        from ..backends.abilities import KeepsLogFiles

        if self.last is None or (self.pattern is None and isinstance(self.job.scheduler, KeepsLogFiles)):
            yield from self._open(target, opened, self.follows, self.last)
            return
        # This log cannot be read from its end: read all existing lines, then the new ones.
        kept = _LastLines(self.pattern, self.last)
        size = 0
        for record in self._open(target, opened, follows=False):
            kept.add(target, record)
            size += len(record.data)
        kept.end(target)
        for (_, _, stream), line in kept.lines:
            yield Record(line, None, stream)
        for record in self._open(target, opened, follows=True) if self.follows else ():
            if data := record.data[size:]:
                yield record._replace(data=data)
            size = max(0, size - len(record.data))

    def _open(self, target: Target, opened: list[LogRecords], follows: bool, last: int | None = None) -> LogRecords:
        from ..backends.types import LogQuery

        query = LogQuery.parse(self.job.app_id, *target, should_tail=follows, streams=self.stream)
        begin = partial(self.job.log_records, query, last)
        opened.append(self.job.until_answered(begin) if self.follows else begin())
        return opened[-1]


def _print_logs(reading: _Reading, targets: Sequence[Target], printer: LogPrinter) -> None:
    """Print the logs of several replicas; report those that cannot be read on stderr.

    Raises:
        Exception: the error of the first replica if none can be read.
    """
    most = _MOST_FOLLOWED if reading.follows else _MOST_READ
    if reading.follows and len(targets) > most:
        choice = f"choose others as {reading.job.handle}/ROLE/REPLICA,..."
        say(f"following the first {most} of {len(targets)} replicas; {choice}")
        targets = targets[:most]
    waiting = deque(targets)
    # A record of a replica, or at its end None or the exception.
    items: queue.Queue[tuple[Target, Record | Exception | None]] = queue.Queue(_MOST_RECORDS)
    opened: list[LogRecords] = []
    is_closed = threading.Event()

    def read_waiting() -> None:
        with suppress(IndexError):
            while not is_closed.is_set():
                target, end = waiting.popleft(), None
                try:
                    for record in reading.read(target, opened):
                        items.put((target, record))
                        if is_closed.is_set():
                            return
                except Exception as error:  # of a scheduler of another package too
                    end = error
                items.put((target, end))

    for _ in targets[:most]:
        threading.Thread(target=read_waiting, name="read-log", daemon=True).start()
    left = len(targets)
    read: set[Target] = set()
    failures: dict[Target, Exception] = {}
    reported: set[Target] = set()
    refreshed_at = time.monotonic()
    try:
        while left:
            with suppress(queue.Empty):
                target, item = items.get(timeout=_REFRESH_S)
                if isinstance(item, Record):
                    printer.add(target, item)
                else:
                    printer.end(target)
                    left -= 1
                if isinstance(item, Exception):
                    failures[target] = item
                else:
                    read.add(target)
            if not left or time.monotonic() - refreshed_at >= _REFRESH_S:
                refreshed_at = time.monotonic()
                printer.refresh()
                for target in sorted(failures.keys() - reported) if read - failures.keys() else ():
                    printer.pause()
                    reported.add(target)
                    say(f"{target[0]}/{target[1]} cannot be read: {describe_error(failures[target])}")
    except KeyboardInterrupt:
        printer.pause()
        raise
    finally:
        is_closed.set()
        for records in opened:
            records.close()
        # Wake the threads that wait to put a record.
        with suppress(queue.Empty):
            while True:
                items.get_nowait()
    if failures and len(failures) == len(targets):
        raise failures[targets[0]]
