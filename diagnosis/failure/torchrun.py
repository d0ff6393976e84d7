"""Parser of what torchrun prints when its ranks fail.

torchrun stops all ranks as soon as one fails, restarts them up to its limit, and reports the last attempt. Its "root
cause" is the exit that it noticed first: often a rank that only lost its connection, and never one that exited with
code 0.

The formats are those of torch/distributed/elastic, multiprocessing/api.py and multiprocessing/errors/__init__.py, since
torch 1.9. The report contains the traceback that a rank wrote to its error.json (`@record`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ...logs.pattern.error_kinds import Role, known_kinds
from ...logs.pattern.error_reader import ReadError, read_errors, read_last_error, shorten

_MAX_RANKS = 4096
_REPORT = re.compile(r"(?:torch\.distributed\.elastic\.\S{0,80}\.)?ChildFailedError: ?$")
_ENTRY = re.compile(r"\[(\d{1,7})\]: ?$")
_FIELD = re.compile(r"  (time|host|rank|exitcode|error_file|traceback) {0,8}: (.{0,4000})")
_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,7})\)")
_EXIT = re.compile(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")
_RULE = re.compile(r"[-=]{20,}$")
# With `--tee`, torchrun writes `[default3]:`, `[trainer3]:` or `[3]:` before each line of local rank 3. Otherwise,
# torch writes `[rank3]: ` before the lines of a traceback.
_WORKER = re.compile(r"\[(?P<name>[^\]\s\d]{0,80})(?P<number>\d{1,7})\]:")
_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,4})\) local_rank: (\d{1,7}) \(pid: \d{1,9}\)")
_CLOSING = re.compile(r"Sending process (\d{1,9}) closing signal")
_SIGNALLED = re.compile(r"SignalException: Process \d{1,9} got signal: (\d{1,2})$")
_NO_TRACEBACK = re.compile(r"To enable traceback see|Signal \d+ \(\w*\) received by PID|<N/A>")


class Cause(Enum):
    """Why a rank ended."""

    OWN = "it failed"
    LOST_PEER = "it lost the connection to another rank"
    TIMEOUT = "other ranks did not reach a collective in time"
    STOPPED = "torchrun stopped it"


@dataclass(frozen=True)
class RankEnd:
    """The end of a rank.

    Attributes:
        rank: the rank; None if unknown.
        local_rank: its number on its machine.
        exit_code: its exit code, or a signal's number below 0; 0 if unknown.
        error: its last error; empty if unknown.
        error_file: the path of its error.json on its machine; empty without one.
    """

    rank: int | None = None
    local_rank: int = -1
    exit_code: int = 0
    pid: int = 0
    error: str = ""
    error_file: str = ""

    @property
    def role(self) -> Role:
        """The role of its error."""
        kind = known_kinds().kind_of(self.error)
        return kind.role if kind else Role.SIGN

    def with_error(self, error: ReadError | None) -> RankEnd:
        """Return this end with an error, unless it has one."""
        return self if self.error or error is None else replace(self, error=error.text)


@dataclass(frozen=True)
class TorchrunEnd:
    """The end of one torchrun process.

    Attributes:
        failed: the ranks in its report.
        earlier: of each earlier attempt the rank that torchrun saw fail first; None if unknown.
        closed: the processes that torchrun sent a signal in the last attempt.
        signal: the signal that torchrun received; 0 for none.
        local_size: the number of ranks whose output or report was seen.
        folder: the folder in which the ranks' errors were found, if there is no report.
    """

    failed: tuple[RankEnd, ...] = ()
    earlier: tuple[RankEnd | None, ...] = ()
    closed: frozenset[int] = frozenset()
    signal: int = 0
    local_size: int = 0
    folder: str = ""

    def ends(self, cause: Cause) -> list[RankEnd]:
        """Return the ranks that ended for a cause."""
        return [end for end in self.failed if self._cause_of(end) is cause]

    def _cause_of(self, end: RankEnd) -> Cause:
        if end.role is Role.TIMEOUT:
            return Cause.TIMEOUT
        if end.role is Role.LOST_PEER and end.exit_code >= 0:
            return Cause.LOST_PEER
        is_stopped = end.pid in self.closed and (end.exit_code < 0 or not end.error)
        return Cause.STOPPED if is_stopped else Cause.OWN

    @property
    def exited_early(self) -> list[int]:
        """The ranks that exited with code 0: they are not in the report, and were sent no signal."""
        # A rank that was sent a signal may have exited with 0 for that reason.
        if self.folder or not self.failed or self.closed - {end.pid for end in self.failed}:
            return []
        named = {end.local_rank for end in self.failed}
        first = (self.failed[0].rank or 0) - self.failed[0].local_rank
        return [first + local_rank for local_rank in range(self.local_size) if local_rank not in named]


@dataclass
class _Attempt:
    """One start of the ranks of a machine.

    Attributes:
        start: its first line.
        closed: the processes that torchrun sent a signal.
        first: the rank that torchrun saw fail first.
    """

    start: int
    closed: set[int] = field(default_factory=set)
    first: RankEnd | None = None


def parse_torchrun(lines: Sequence[str]) -> TorchrunEnd | None:
    """Parse the last end of torchrun in the log of a replica; return None if there is none."""
    parser = _Parser()
    for number, line in enumerate(lines):
        parser.feed(number, line)
    return parser.result(lines)


class _Parser:
    def __init__(self) -> None:
        self._reset(0)

    def _reset(self, start: int) -> None:
        self._attempts = [_Attempt(start)]
        self._entries: list[tuple[RankEnd, list[str]]] = []
        self._signal = self._local_size = 0
        self._in_report = self._attempt_ended = self._has_ended = False

    def feed(self, number: int, line: str) -> None:
        """Parse a line: of the report, of a rank, or of torchrun itself."""
        if self._in_report:
            self._feed_report(line)
        elif worker := _WORKER.match(line):
            self._attempt(number)
            if worker["name"] != "rank":
                self._local_size = max(self._local_size, int(worker["number"]) % _MAX_RANKS + 1)
        elif _REPORT.match(line):
            self._entries, self._in_report = [], True
        elif closing := _CLOSING.search(line):
            self._attempt(number).closed.add(int(closing[1]))
        elif failed := _FAILED.search(line):
            self._attempt(number).first = RankEnd(local_rank=int(failed[2]), exit_code=int(failed[1]))
            self._attempt_ended = True
        elif signalled := _SIGNALLED.search(line):
            self._signal = int(signalled[1])

    def result(self, lines: Sequence[str]) -> TorchrunEnd | None:
        known = [_reported(end, text) for end, text in self._entries if end.rank is not None and end.exit_code]
        if not known and not self._signal:
            return None
        known.sort(key=lambda end: end.rank or 0)
        errors = [error for error in read_errors([*lines]) if error.kind.role > Role.WRAPPER]
        starts = [*(attempt.start for attempt in self._attempts), len(lines)]

        def complete(end: RankEnd, number: int) -> RankEnd:
            """Add the last error that a rank printed in an attempt."""
            printed = [error for error in errors if starts[number] <= error.number < starts[number + 1]]
            return end.with_error(next((error for error in reversed(printed) if _is_of(error, end)), None))

        first = (known[0].rank or 0) - known[0].local_rank if known else None
        last = len(self._attempts) - 1
        earlier = [
            end and complete(replace(end, rank=None if first is None else first + end.local_rank), number)
            for number, end in enumerate(attempt.first for attempt in self._attempts[:-1])
        ]
        return TorchrunEnd(
            tuple(complete(end, last) for end in known),
            tuple(earlier),
            frozenset(self._attempts[-1].closed),
            self._signal,
            max(self._local_size, *(end.local_rank + 1 for end in known)) if known else 0,
        )

    def _attempt(self, number: int) -> _Attempt:
        """Return the attempt of a line."""
        if self._has_ended:  # the scheduler has restarted torchrun
            self._reset(number)
        elif self._attempt_ended:
            self._attempts.append(_Attempt(number))
        self._attempt_ended = False
        return self._attempts[-1]

    def _feed_report(self, line: str) -> None:
        if _ENTRY.match(line) and len(self._entries) < _MAX_RANKS:
            self._entries.append((RankEnd(), []))
        elif not self._entries:
            return
        elif _RULE.match(line):
            self._in_report = line[0] == "-"
            self._has_ended = not self._in_report
        else:
            end, traceback = self._entries[-1]
            self._entries[-1] = _parse_field(end, traceback, line), traceback


def _is_of(error: ReadError, end: RankEnd) -> bool:
    """Return whether the prefix of an error names a rank."""
    worker = _WORKER.match(error.worker)
    return worker is not None and int(worker["number"]) == (end.rank if worker["name"] == "rank" else end.local_rank)


def _parse_field(end: RankEnd, traceback: list[str], line: str) -> RankEnd:
    """Parse a line of a report's entry; the lines after the field ``traceback`` belong to it."""
    name, text = (found[1], found[2]) if (found := _FIELD.match(line)) else ("", "")
    if name == "rank" and (rank := _RANK.match(text)):
        return replace(end, rank=int(rank[1]), local_rank=int(rank[2]))
    if name == "exitcode" and (code := _EXIT.match(text)):
        return replace(end, exit_code=int(code[1]), pid=int(code[2]))
    if name == "error_file" and text != "<N/A>":
        return replace(end, error_file=text)
    if name == "traceback" and not _NO_TRACEBACK.search(text):
        traceback.append(text)
    elif traceback:
        traceback.append(line[2:])
    return end


def _reported(end: RankEnd, traceback: Sequence[str]) -> RankEnd:
    error = read_last_error("\n".join(traceback))
    return replace(end, error=error.text if error else shorten("".join(traceback[:1])))
