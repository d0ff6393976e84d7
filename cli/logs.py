"""The command log, and the logs of a job that `run` waits for."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from ..settings.make_runner import make_runner
from ..specs import MalformedAppHandleException, UnknownAppException
from ..specs.errors import describe_error as described_error
from .output import green, say
from .status import described, say_outage

if TYPE_CHECKING:
    import argparse

    from ..backends.api import DescribeAppResponse, Stream
    from ..backends.runner import Runner
    from ..settings.config import Settings

# A role and the number of a replica.
Target = tuple[str, int]
# Prints one line: role, replica, and the line with what ends it.
PrintLine = Callable[[str, int, str], None]

_TARGET = re.compile(r"^(?P<handle>.+?://[^/]*/[^/]+)(?:/(?P<role>[^/]+)(?:/(?P<replicas>\d+(?:,\d+)*))?)?/?$")
_STREAMS = ("stdout", "stderr", "combined")
# How often a wait for threads looks whether a signal came (s).
_LOOK_SECONDS = 0.2


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--regex", help="only lines that match")
    parser.add_argument("-t", "--tail", action="store_true", help="follow until the job ends")
    parser.add_argument("--streams", choices=_STREAMS, help="the stream to print; default: the scheduler's choice")
    parser.add_argument("--json", action="store_true", help="print each line as a JSON object: role, replica, line")
    parser.add_argument("handle", metavar="HANDLE[/ROLE[/REPLICA,...]]")


def _log(arguments: Any, settings: Settings) -> int:
    match = _TARGET.match(arguments.handle)
    if match is None:
        raise MalformedAppHandleException(arguments.handle)
    handle = match["handle"]
    streams: Stream | None = None
    if arguments.streams:
        from ..backends.api import Stream

        streams = Stream(arguments.streams)
    with make_runner(settings) as runner:
        if arguments.tail:
            found = runner.until_answered(handle, lambda: described(runner, handle), on_lost=say_outage)
        else:
            found = described(runner, handle)
        chosen = _chosen(found, handle, match["role"], match["replicas"])
        reading = _Reading(runner, handle, arguments.tail, arguments.regex, streams)
        print_lines(chosen, reading, json_line if arguments.json else line_printer(sys.stdout))
    return 0


def _chosen(found: DescribeAppResponse, handle: str, role: str | None, replicas: str | None) -> list[Target]:
    """Return the replicas that were asked for.

    Raises:
        UnknownAppException: there is no such role or replica; the message has those that there are.
    """
    every = all_targets(found)
    numbers = None if replicas is None else [int(k) for k in replicas.split(",")]
    of_role = [target for target in every if role in (None, target[0])]
    if role is not None and not of_role:
        known = ", ".join(dict.fromkeys(name for name, _ in every)) or "not known"
        raise UnknownAppException(f"{handle}/{role}, whose job has the roles {known},")
    missing = [k for k in numbers or () if not any(k == number for _, number in of_role)]
    if missing:
        raise UnknownAppException(f"{handle}/{role}/{missing[0]}, whose role has {len(of_role)} replicas from 0,")
    return [target for target in of_role if numbers is None or target[1] in numbers]


def all_targets(found: DescribeAppResponse) -> list[Target]:
    """Return every replica of a job."""
    return [(role.name, k) for role in found.roles for k in range(role.num_replicas)]


def line_printer(file: TextIO) -> PrintLine:
    """Return what prints a line after the replica that wrote it, green where the file is a terminal."""
    from ..logs.text.sanitize import plain

    safe = file.isatty()

    def print_line(role: str, k: int, line: str) -> None:
        body = line.rstrip("\r\n")
        print(f"{green(f'{plain(role)}/{k}', file)} {plain(body) if safe else body}", file=file, flush=True)

    return print_line


def json_line(role: str, k: int, line: str) -> None:
    """Print a line as a JSON object."""
    import json

    print(json.dumps({"role": role, "replica": k, "line": line.rstrip("\r\n")}), flush=True)


def follow_logs(runner: Runner, handle: str, file: TextIO) -> None:
    """Print the logs of all replicas of a job until it ends.

    Raises:
        Exception: as `print_lines`.
    """
    found = runner.until_answered(handle, lambda: described(runner, handle), on_lost=say_outage)
    print_lines(all_targets(found), _Reading(runner, handle, follows=True), line_printer(file))


@dataclass
class _Reading:
    """What is read of a job's replicas.

    Args:
        runner: the way to its backend.
        handle: the job's handle.
        follows: read until the job ends, and survive outages.
        regex: only lines that match.
        streams: which output.
    """

    runner: Runner
    handle: str
    follows: bool
    regex: str | None = None
    streams: Stream | None = None

    def lines(self, role: str, k: int) -> Iterable[str]:
        """Begin to read a replica."""

        def begin() -> Iterable[str]:
            return self.runner.log_lines(self.handle, role, k, self.regex, None, None, self.follows, self.streams)

        return self.runner.until_answered(self.handle, begin) if self.follows else begin()


def print_lines(targets: Sequence[Target], reading: _Reading, show: PrintLine) -> None:
    """Print the lines of several replicas, each read in a thread of its own, one line at a time.

    What cannot be read of some replicas is said on stderr; the others are printed all the same.

    Raises:
        Exception: what was wrong with the first one, where none was read to its end; or with the output.
    """
    printing = _Printing(reading, show)
    threads = [
        threading.Thread(target=printing.print_one, args=[target], name="print-log", daemon=True) for target in targets
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and printing.broken is None:
                thread.join(_LOOK_SECONDS)
                printing.say_failures()
    finally:
        printing.close()
    if printing.broken is not None:
        raise printing.broken
    if targets and len(printing.failures) == len(targets):
        raise printing.failures[targets[0]]
    printing.say_failures()


class _Printing:
    """Prints replicas, and keeps what went wrong.

    Args:
        reading: what is read.
        show: prints a line.
    """

    def __init__(self, reading: _Reading, show: PrintLine) -> None:
        self._reading = reading
        self._show = show
        self._lock = threading.Lock()
        self._open: list[Iterable[str]] = []
        self._is_any_read = False
        self._told: set[Target] = set()
        self.failures: dict[Target, Exception] = {}
        self.broken: OSError | None = None

    def print_one(self, target: Target) -> None:
        """Print a replica's lines."""
        try:
            lines = self._reading.lines(*target)
            self._open.append(lines)
            for line in lines:
                if not self._print(target, line):
                    return
        except Exception as error:  # whatever a scheduler of another package raises
            self.failures[target] = error
        else:
            self._is_any_read = True

    def _print(self, target: Target, line: str) -> bool:
        with self._lock:
            try:
                if self.broken is None:
                    self._show(*target, line)
            except OSError as error:
                self.broken = error
            self._is_any_read = True
        return self.broken is None

    def say_failures(self) -> None:
        """Say which replicas cannot be read, once something of others was."""
        failed = sorted(target for target in list(self.failures) if target not in self._told)
        for role, k in failed if self._is_any_read else ():
            self._told.add((role, k))
            say(f"{role}/{k} cannot be read: {described_error(self.failures[role, k])}")

    def close(self) -> None:
        """End what is read still."""
        for lines in list(self._open):
            close = getattr(lines, "close", None)
            if close is not None:
                close()


COMMANDS = {"log": (_add_log, _log)}
