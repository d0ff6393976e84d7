"""What torchrun leaves in a log when its ranks fail: which rank failed by itself, and which ones it ended for that.

It ends all ranks as soon as it sees that one has failed, starts them again as often as it may, and reports the last
attempt: its "root cause" is whichever end it saw first, so that a rank that only lost its connection is often named,
and a rank that left with exit code 0 never is.

The forms are those of torch/distributed/elastic, multiprocessing/api.py and multiprocessing/errors/__init__.py, since
torch 1.9. What a rank wrote to its error.json (`@record`) stands in the report as its traceback.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...backends.shared.exit_reasons import format_exit, signal_name
from ...logs.lines.merge import MergedLog
from ...logs.source.replica_log import ReplicaLog
from ...logs.text.shown import shown_text
from ..recorder.verdict import name_ranks
from .conclusion import is_lost, is_timeout, own_error

MOST_SAID = 300
_MOST_LINES, _MOST_SECONDS, _MOST_ERRORS, _MOST_OWN_LINES = 20_000, 2.0, 4096, 60
_REPORT = re.compile(r"(?:torch\.distributed\.elastic\.\S{0,80}\.)?ChildFailedError: ?$")
_ENTRY = re.compile(r"\[(\d{1,7})\]: ?$")
_FIELD = re.compile(r"  (time|host|rank|exitcode|error_file|traceback) {0,8}: (.{0,4000})")
_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,7})\)")
_EXIT = re.compile(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")
_RULE = re.compile(r"[-=]{20,}$")
# With `--tee` torchrun writes `[default3]:`, `[trainer3]:` or `[3]:` before each line of the fourth rank of a machine.
# Without it, torch writes `[rank3]: ` before the lines of a traceback.
_TEED = re.compile(r"\[([^\]\s\d]{0,80})(\d{1,7})\]:(.*)", re.DOTALL)
_RANK_PREFIX = re.compile(r"\[rank\d{1,7}\]: ?")
_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,4})\) local_rank: (\d{1,7}) \(pid: \d{1,9}\)")
_CLOSING = re.compile(r"Sending process (\d{1,9}) closing signal")
_SIGNALLED = re.compile(r"SignalException: Process \d{1,9} got signal: (\d{1,2})$")
_TRACEBACK = "Traceback (most recent call last)"
_SAYS_NOTHING = re.compile(r"To enable traceback see|Signal \d+ \(\w*\) received by PID|<N/A>")


@dataclass
class RankEnd:
    """How one rank ended, by torchrun's report.

    Args:
        rank: the rank.
        local_rank: its number on its machine.
        exit_code: what it exited with, a signal's number below 0; 0 where that is not known.
        pid: its process.
        said: its error in one line; empty where it left none.
        error_file: the file that it wrote its error to, on its machine; empty for none.
    """

    rank: int = -1
    local_rank: int = -1
    exit_code: int = 0
    pid: int = 0
    said: str = ""
    error_file: str = ""

    @property
    def words(self) -> str:
        """How it ended, and what it said."""
        if not self.exit_code:
            return self.said
        return format_exit(self.exit_code) + (f", {self.said}" if self.said else "")


@dataclass
class Attempt:
    """The ranks of one machine, from their start until torchrun ended them.

    Args:
        output: the last lines of each rank that are in torchrun's own output, by local rank.
        by_rank: the last lines of tracebacks, by rank.
        closed: the processes that torchrun sent a signal.
        first: the local rank whose failure torchrun saw first, and its exit code.
    """

    output: dict[int, deque[str]] = field(default_factory=dict)
    by_rank: dict[int, deque[str]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    first: tuple[int, int] | None = None

    def lines(self, local_rank: int, rank: int | None) -> Iterable[str]:
        """Return the last lines of a rank."""
        return self.output.get(local_rank) or (self.by_rank.get(rank, ()) if rank is not None else ())

    def error(self, local_rank: int, rank: int | None) -> str:
        """Return the error of its own that a rank printed last; empty without one."""
        return own_error("\n".join(self.lines(local_rank, rank)))


@dataclass
class TorchrunEnd:
    """The end of one torchrun.

    Args:
        attempts: every start of its ranks, the last one last.
        failed: the ranks that its report names.
        signal: which signal ended torchrun itself; 0 for none.
        found_in: the folder in which the ranks' own errors were found, where there is no report.
    """

    attempts: list[Attempt]
    failed: list[RankEnd] = field(default_factory=list)
    signal: int = 0
    found_in: str = ""

    @property
    def last(self) -> Attempt:
        """The last start of its ranks."""
        return self.attempts[-1]

    def rank_of(self, local_rank: int) -> int | None:
        """Return the rank that a local rank has; None where the report names no rank."""
        return self.failed[0].rank - self.failed[0].local_rank + local_rank if self.failed else None

    @property
    def by_themselves(self) -> list[RankEnd]:
        """The ranks that failed, not because torchrun ended them or another rank was gone or late."""
        others = [*self.lost, *self.waited]
        return [end for end in self.failed if not self._was_ended(end) and end not in others]

    def _was_ended(self, end: RankEnd) -> bool:
        return end.pid in self.last.closed and (end.exit_code < 0 or not end.said)

    @property
    def waited(self) -> list[RankEnd]:
        """The ranks that failed because others did not come to a collective."""
        return [end for end in self.failed if is_timeout(end.said)]

    @property
    def lost(self) -> list[RankEnd]:
        """The ranks that failed because they lost their connection."""
        found = []
        for end in self.failed:
            told = [end.said] if end.said else self.last.lines(end.local_rank, end.rank)
            if end.exit_code >= 0 and any(is_lost(line) for line in told):
                found.append(end)
        return found

    @property
    def ended(self) -> list[RankEnd]:
        """The ranks that torchrun ended."""
        kept = [*self.by_themselves, *self.lost, *self.waited]
        return [end for end in self.failed if end not in kept]

    @property
    def left(self) -> list[int]:
        """The ranks that had left with exit code 0: they did not fail, and were sent no signal."""
        if self.found_in or self.last.closed - {end.pid for end in self.failed}:
            return []  # a rank that was sent a signal may have left with 0 because of it
        named = {end.local_rank for end in self.failed}
        there = range(max((*named, *self.last.output), default=-1) + 1)
        ranks = (self.rank_of(local_rank) for local_rank in there if local_rank not in named)
        return [rank for rank in ranks if rank is not None]


def read_torchrun(lines: Iterable[str]) -> TorchrunEnd | None:
    """Read the last end of torchrun in the log of a replica; None where there is none."""
    reader = _Reader()
    for line in lines:
        reader.feed(line)
    return reader.result()


class _Reader:
    """Takes in the lines of a log, one after the other."""

    def __init__(self) -> None:
        self._found = TorchrunEnd([Attempt()])
        self._failed: list[RankEnd] = []
        self._reports = False
        self._attempt_is_over = self._is_over = False

    def feed(self, line: str) -> None:
        """Take in a line: of the report, of a rank, or of torchrun itself."""
        if self._reports:
            self._feed_report(line)
        elif teed := _TEED.match(line):
            attempt, text = self._attempt(), _RANK_PREFIX.sub("", teed[3], count=1)
            kept = attempt.output if teed[1] != "rank" else attempt.by_rank
            kept.setdefault(int(teed[2]) % _MOST_ERRORS, deque(maxlen=_MOST_OWN_LINES)).append(text)
        elif _REPORT.match(line):
            self._failed, self._reports = [], True
        elif closing := _CLOSING.search(line):
            self._attempt().closed.add(int(closing[1]))
        elif failed := _FAILED.search(line):
            self._attempt().first = int(failed[2]), int(failed[1])
            self._attempt_is_over = True
        elif signalled := _SIGNALLED.search(line):
            self._found.signal = int(signalled[1])

    def result(self) -> TorchrunEnd | None:
        """Return the end of torchrun, if there was one."""
        found = self._found
        known = [end for end in self._failed if end.rank >= 0 and end.exit_code]
        found.failed = sorted(known, key=lambda end: end.rank)
        for end in found.failed:
            end.said = end.said or found.last.error(end.local_rank, end.rank)
        return found if found.failed or found.signal else None

    def _attempt(self) -> Attempt:
        """Return the attempt that a line belongs to."""
        if self._is_over:  # the scheduler has started torchrun again
            self._found, self._failed, self._is_over = TorchrunEnd([Attempt()]), [], False
        elif self._attempt_is_over:
            self._found.attempts.append(Attempt())
        self._attempt_is_over = False
        return self._found.last

    def _feed_report(self, line: str) -> None:
        entry = self._failed[-1] if self._failed else RankEnd()
        if _ENTRY.match(line) and len(self._failed) < _MOST_ERRORS:
            self._failed.append(RankEnd())
        elif self._failed and _RULE.match(line):
            self._reports = line[0] == "-"
            self._is_over = not self._reports
        elif told := _FIELD.match(line):
            if told[1] == "rank" and (rank := _RANK.match(told[2])):
                entry.rank, entry.local_rank = int(rank[1]), int(rank[2])
            elif told[1] == "exitcode" and (code := _EXIT.match(told[2])):
                entry.exit_code, entry.pid = int(code[1]), int(code[2])
            elif told[1] == "error_file" and told[2] != "<N/A>":
                entry.error_file = told[2]
            elif told[1] == "traceback" and not _SAYS_NOTHING.search(told[2]):
                entry.said = told[2].strip()[:MOST_SAID]
        elif line.startswith("  ") and not line[2:3].isspace() and entry.exit_code:
            # The traceback goes on. Its exception is indented as its first line is; a later one was raised from it.
            text = line.strip()[:MOST_SAID]
            entry.said = own_error(text) or (text if entry.said.startswith(_TRACEBACK) else entry.said)


def explain_torchrun(ends: Sequence[TorchrunEnd]) -> tuple[str, ...]:
    """Say what ended the ranks of a job: the cause, what followed from it, and the attempts before; a sentence each.

    Args:
        ends: of each replica that runs torchrun.
    """
    causes = [end for torchrun in ends for end in torchrun.by_themselves]
    lost = [end.rank for torchrun in ends for end in torchrun.lost]
    waited = [end for torchrun in ends for end in torchrun.waited]
    ended = [end.rank for torchrun in ends for end in torchrun.ended]
    left = [] if causes or not (lost or waited) else [rank for torchrun in ends for rank in torchrun.left]
    sentences = []
    if len(causes) == 1:
        sentences.append(f"{name_ranks([causes[0].rank])} failed: {causes[0].words}")
    elif causes:
        told = "; ".join(f"{name_ranks([end.rank])}: {end.words}" for end in causes[:3])
        sentences.append(f"{name_ranks(end.rank for end in causes)} failed, each by itself: {told}")
    elif left:
        sentences.append(f"{name_ranks(left)} left before the others, with exit code 0")
    elif waited:
        sentences.append(f"{name_ranks(end.rank for end in waited)} ended as a collective timed out: {waited[0].words}")
    elif signals := {torchrun.signal for torchrun in ends if torchrun.signal}:
        names = ", ".join(signal_name(-number) for number in sorted(signals))
        sentences.append(f"torchrun itself was sent {names}, and ended its ranks")
    elif lost:
        sentences.append(f"{name_ranks(lost)} lost the connection to another rank; none says why")
    follows = []
    if lost and sentences and (causes or left):
        to = "to it" if len(causes) + len(left) == 1 else "to the others"
        follows.append(f"{name_ranks(lost)} then lost the connection {to}")
    if waited and (causes or left):
        follows.append(f"for {name_ranks(end.rank for end in waited)} a collective timed out")
    if ended:
        follows.append(f"torchrun ended {name_ranks(ended)}")
    if follows:
        sentences.append("; ".join(follows))
    found = [f"torchrun left no report; the errors are those in {end.found_in}" for end in ends if end.found_in]
    return (*sentences, *_attempts(ends), *found)


def _attempts(ends: Sequence[TorchrunEnd]) -> list[str]:
    """Say what ended the attempts before the last one."""
    told = []
    for torchrun in ends:
        for number, attempt in enumerate(torchrun.attempts[:-1], 1):
            if attempt.first is None:
                continue
            local_rank, code = attempt.first
            rank = torchrun.rank_of(local_rank)
            who = f"local rank {local_rank}" if rank is None else name_ranks([rank])
            said = attempt.error(local_rank, rank)
            words = RankEnd(exit_code=code, said=said).words
            told.append(f"attempt {number} of {len(torchrun.attempts)}: {who}, {words}")
    return [f"torchrun started its ranks again; {told[0]}", *told[1:3]] if told else []


def read_ends(logs: Sequence[ReplicaLog]) -> dict[int, TorchrunEnd]:
    """Read how the torchrun of each replica ended, by number, from the ends of a job's logs; call it in a thread."""
    log = MergedLog(logs)
    texts: dict[int, list[str]] = {}
    try:
        log.open()
        log.read_older(_MOST_SECONDS, _MOST_LINES)
        end = log.bounds().end
        for line in log.lines(max(log.bounds().first, end - _MOST_LINES), _MOST_LINES):
            if line.replica >= 0:
                texts.setdefault(line.replica, []).append(shown_text(line.data))
    finally:
        log.close()
    return {number: found for number in sorted(texts) if (found := read_torchrun(texts[number])) is not None}
