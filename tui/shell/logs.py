"""The command log, and the logs of a job that `run` waits for."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ...specs import MalformedAppHandleException, UnknownAppException
from ..make_runner import make_runner
from .output import green
from .watch import described

if TYPE_CHECKING:
    import argparse

    from ...backends.api import DescribeAppResponse, Stream
    from ...backends.runner import Runner
    from ..config import Settings

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
    parser.add_argument("--streams", choices=_STREAMS, help="which stream; the scheduler's own choice if not given")
    parser.add_argument("--json", action="store_true", help="print each line as a JSON object: role, replica, line")
    parser.add_argument("handle", metavar="HANDLE[/ROLE[/REPLICA,...]]")


def _log(arguments: Any, settings: Settings) -> int:
    match = _TARGET.match(arguments.handle)
    if match is None:
        raise MalformedAppHandleException(arguments.handle)
    handle = match["handle"]
    streams: Stream | None = None
    if arguments.streams:
        from ...backends.api import Stream

        streams = Stream(arguments.streams)
    with make_runner(settings) as runner:
        chosen = _chosen(described(runner, handle), handle, match["role"], match["replicas"])
        show = json_line if arguments.json else line_printer(sys.stdout)
        iterators = [
            runner.log_lines(handle, role, k, arguments.regex, None, None, arguments.tail, streams)
            for role, k in chosen
        ]
        print_lines(chosen, iterators, show)
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
    from ...backends.logs.sanitize import plain

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
    """Print the logs of all replicas of a job until it ends."""
    targets = all_targets(described(runner, handle))
    iterators = [runner.log_lines(handle, role, k, None, None, None, True, None) for role, k in targets]
    print_lines(targets, iterators, line_printer(file))


def print_lines(targets: Sequence[Target], iterators: Sequence[Iterable[str]], show: PrintLine) -> None:
    """Print what several iterators of lines give, each in a thread of its own, one line at a time.

    Raises:
        Exception: what the first iterator that failed raised.
    """
    lock = threading.Lock()
    failures: list[Exception] = []

    def print_one(target: Target, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                with lock:
                    show(*target, line)
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=print_one, args=pair, daemon=True) for pair in zip(targets, iterators, strict=True)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not failures:
                thread.join(_LOOK_SECONDS)
    finally:
        for lines in iterators:
            close = getattr(lines, "close", None)
            if close is not None:
                close()
    if failures:
        raise failures[0]


COMMANDS = {"log": (_add_log, _log)}
