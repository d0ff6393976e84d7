"""The command log, and the logs of a job that `run` waits for."""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ..base.errors import TorchXTuiError
from ..base.errors import describe_error as described_error
from ..logs.source.stream import Record
from ..settings.make_runner import make_runner
from ..specs.errors import MalformedAppHandleException, SchedulerError, UnknownRoleError
from ..specs.status import AppState
from .log_printers import JsonPrinter, LogPrinter, Target, log_printer
from .output import say
from .status import described, say_outage

if TYPE_CHECKING:
    import argparse

    from ..backends.api import DescribeAppResponse
    from ..backends.job import Job
    from ..backends.log_records import LogRecords
    from ..backends.runner import Runner
    from ..backends.types import Stream
    from ..settings.config import Settings

_TARGET = re.compile(r"^(?P<handle>.+?://[^/]*/[^/]+)(?:/(?P<role>[^/]+)(?:/(?P<replicas>\d+(?:,\d+)*))?)?/?$")
_STREAMS = ("stdout", "stderr", "combined")
# Interval for drawing unfinished lines and for checking for signals (s).
_REFRESH_S = 0.1


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--regex", help="only lines that match")
    parser.add_argument(
        "-n", "--lines", type=_count, metavar="N", help="begin with the last N lines of each replica; default: all"
    )
    parser.add_argument("-t", "--tail", action="store_true", help="follow until the job ends")
    parser.add_argument("--streams", choices=_STREAMS, help="the stream to print; default: the scheduler's choice")
    parser.add_argument("--json", action="store_true", help="print each line as a JSON object: role, replica, line")
    parser.add_argument("handle", metavar="HANDLE[/ROLE[/REPLICA,...]]")


def _count(text: str) -> int:
    """Parse a number of lines."""
    if not (text.isascii() and text.isdigit()):
        import argparse

        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines, such as 50")
    return int(text[:18])


def _log(arguments: Any, settings: Settings) -> int:
    match = _TARGET.match(arguments.handle)
    if match is None:
        raise MalformedAppHandleException(arguments.handle)
    handle = match["handle"]
    from ..backends.types import Stream, line_pattern

    stream = Stream(arguments.streams) if arguments.streams else None
    try:
        pattern = line_pattern(arguments.regex)
    except ValueError as error:
        raise TorchXTuiError(str(error)) from error
    with make_runner(settings) as runner:
        if arguments.tail:
            found = runner.job(handle).until_answered(lambda: described(runner, handle), on_lost=say_outage)
        else:
            found = described(runner, handle)
        chosen = _chosen(runner, found, handle, match["role"], match["replicas"])
        reading = _Reading(runner.job(handle), arguments.tail, pattern, stream, arguments.lines)
        printer = JsonPrinter(pattern) if arguments.json else log_printer(sys.stdout, pattern)
        print_logs(chosen, reading, printer)
    if not printer.has_printed and arguments.lines != 0:
        say(_why_nothing(arguments, found))
    return 0


def _why_nothing(arguments: Any, found: DescribeAppResponse) -> str:
    """Return the reason why no line of a log was printed."""
    name = arguments.handle
    if not arguments.tail and found.state in (AppState.SUBMITTED, AppState.PENDING):
        return f"{name} has not started and has no log yet{f': {found.reason}' if found.reason else ''}"
    return f"{name} has no line that matches {arguments.regex!r}" if arguments.regex else f"the log of {name} is empty"


def _chosen(
    runner: Runner, found: DescribeAppResponse, handle: str, role: str | None, replicas: str | None
) -> list[Target]:
    """Return the replicas that were asked for.

    Raises:
        UnknownRoleError: there is no such role or replica; the message has those that there are.
        SchedulerError: no replica is known.
    """
    from ..backends.shared.exit_reasons import some_of

    told = [(status.role, replica.id) for status in found.roles_statuses for replica in status.replicas]
    every = runner.job(handle).log_targets(found)
    if role is not None:
        # The error for a replica without a log of its own names the log that has its output.
        every = [*dict.fromkeys([*every, *told])]
    if not every:
        raise SchedulerError(f"the log of {handle} cannot be read: {found.reason or 'its replicas are not known'}")
    numbers = None if replicas is None else [int(k) for k in replicas.split(",")]
    of_role = [target for target in every if role in (None, target[0])]
    if role is not None and not of_role:
        known = ", ".join(dict.fromkeys(name for name, _ in every)) or "not known"
        raise UnknownRoleError(f"{handle} has no role {role}. Its roles: {known}")
    missing = [k for k in numbers or () if not any(k == number for _, number in of_role)]
    if missing:
        numbers_there = [k for _, k in of_role]
        is_range = len(of_role) > 1 and numbers_there == [*range(len(of_role))]
        known = f"0 to {len(of_role) - 1}" if is_range else some_of(map(str, numbers_there), 12)
        raise UnknownRoleError(f"{handle} has no replica {role}/{missing[0]}. Valid: {known}")
    return [target for target in of_role if numbers is None or target[1] in numbers]


def follow_logs(runner: Runner, handle: str, file: TextIO) -> None:
    """Print the logs of all replicas of a job until it ends.

    Raises:
        Exception: as `print_lines`.
    """
    found = runner.job(handle).until_answered(lambda: described(runner, handle), on_lost=say_outage)
    printer = log_printer(file)
    print_logs(runner.job(handle).log_targets(found), _Reading(runner.job(handle), follows=True), printer)
    printer.pause()


@dataclass
class _Reading:
    """What is read of a job's replicas.

    Attributes:
        job: the job.
        follows: read until the job ends, and wait out outages.
        pattern: of the last lines, count only those that contain a match.
        stream: which output.
        last: the number of existing lines to begin with; None for all.
    """

    job: Job
    follows: bool
    pattern: re.Pattern[str] | None = None
    stream: Stream | None = None
    last: int | None = None

    def read(self, target: Target, opened: list[LogRecords]) -> Iterator[Record]:
        """Yield the records of a replica to print; append each opened log to ``opened``."""
        from ..backends.abilities import KeepsLogFiles

        if self.last is None or (self.pattern is None and isinstance(self.job.scheduler, KeepsLogFiles)):
            opened.append(records := self._open(target, self.follows, self.last))
            yield from records
            return
        # This log cannot be read from its end: read all existing lines, then the new ones.
        opened.append(there := self._open(target, follows=False))
        kept: deque[Record] = deque(maxlen=self.last)
        size = 0
        for record in _lines(there):
            size += len(record.data)
            if self.pattern is None or self.pattern.search(record.data.decode("utf-8", "replace")):
                kept.append(record)
        yield from kept
        if self.follows:
            opened.append(records := self._open(target, follows=True))
            yield from _without_start(records, size)

    def _open(self, target: Target, follows: bool, last: int | None = None) -> LogRecords:
        from ..backends.types import LogQuery

        query = LogQuery.parse(self.job.app_id, *target, should_tail=follows, streams=self.stream)

        def begin() -> LogRecords:
            return self.job.log_records(query, last)

        return self.job.until_answered(begin) if self.follows else begin()


def _lines(records: Iterable[Record]) -> Iterator[Record]:
    """Yield whole lines as records."""
    from ..backends.log_records import LineAssembler

    assembler = LineAssembler()
    for record in records:
        for at, line in assembler.add(record):
            yield Record(line, at, record.stream)
    for at, line in assembler.rest():
        yield Record(line, at, "c")


def _without_start(records: Iterable[Record], size: int) -> Iterator[Record]:
    """Yield records without their first ``size`` bytes."""
    for record in records:
        data = record.data[size:]
        size = max(0, size - len(record.data))
        if data:
            yield record._replace(data=data)


def print_logs(targets: Sequence[Target], reading: _Reading, printer: LogPrinter) -> None:
    """Print the logs of several replicas, each read in a thread of its own, one line at a time.

    What cannot be read of some replicas is said on stderr; the others are printed all the same.

    Raises:
        Exception: what was wrong with the first one, where none was read to its end; or with the output.
    """
    printing = _Printing(reading, printer)
    threads = [
        threading.Thread(target=printing.print_one, args=[target], name="print-log", daemon=True) for target in targets
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and printing.broken is None:
                thread.join(_REFRESH_S)
                printing.refresh()
    except KeyboardInterrupt:
        printing.pause()
        raise
    finally:
        printing.close()
    if printing.broken is not None:
        raise printing.broken
    if targets and len(printing.failures) == len(targets):
        raise printing.failures[targets[0]]
    printing.refresh()


class _Printing:
    """Prints replicas, and keeps what went wrong.

    Args:
        reading: what is read.
        printer: prints the records.
    """

    def __init__(self, reading: _Reading, printer: LogPrinter) -> None:
        self._reading = reading
        self._printer = printer
        self._lock = threading.Lock()
        self._open: list[LogRecords] = []
        self._is_any_read = self._is_closed = False
        self._reported: set[Target] = set()
        self.failures: dict[Target, Exception] = {}
        self.broken: OSError | None = None

    def print_one(self, target: Target) -> None:
        """Print a replica's log."""
        try:
            for record in self._reading.read(target, self._open):
                self._print(partial(self._printer.add, target, record))
                self._is_any_read = True
                if self.broken is not None:
                    return
        except Exception as error:  # whatever a scheduler of another package raises
            self.failures[target] = error
        else:
            self._is_any_read = True
        self._print(partial(self._printer.end, target))

    def _print(self, show: Callable[[], None]) -> None:
        """Print something, unless the output is broken."""
        with self._lock:
            try:
                if self.broken is None and not self._is_closed:
                    show()
            except OSError as error:
                self.broken = error

    def pause(self) -> None:
        """End the current line, so that a message can follow on a new one."""
        self._print(self._printer.pause)

    def refresh(self) -> None:
        """Draw unfinished lines. Report replicas that cannot be read once another one was read."""
        self._print(self._printer.refresh)
        failed = sorted(target for target in list(self.failures) if target not in self._reported)
        for role, k in failed if self._is_any_read else ():
            self._reported.add((role, k))
            self.pause()
            say(f"{role}/{k} cannot be read: {described_error(self.failures[role, k])}")

    def close(self) -> None:
        """Stop reading and printing."""
        self._is_closed = True
        for records in list(self._open):
            records.close()


COMMANDS = {"log": (_add_log, _log)}
