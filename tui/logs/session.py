"""What a log pane shows of a job: replicas, stream, since when, filters, the pattern and the current line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from textual.message import Message
from textual.message_pump import MessagePump

from ...logs.lines.background import LogFollower
from ...logs.lines.matches import Matches, Rule
from ...logs.lines.merge import MergedLog
from ...logs.pattern.pattern import Pattern
from ...logs.source.replica_log import ReplicaLog, StreamName
from ..ui.replica_numbers import replica_numbers

STREAMS: tuple[StreamName, ...] = ("combined", "stdout", "stderr")
# How far back the log goes, in seconds, and in words; None is all of it.
SINCE: tuple[tuple[float | None, str], ...] = ((None, "all"), (60, "1m"), (600, "10m"), (3600, "1h"))
# The first line that has a time is looked for among so many.
_LOOKED_THROUGH = 50

AnyLog = MergedLog | Matches


@dataclass
class LogGrew(Message, bubble=False):
    """The reading thread has found something."""

    log: MergedLog


class LogSession:
    """The chosen part of a job's logs, read in a thread of its own, and what is searched for in it.

    Args:
        target: who is told, by `LogGrew`.
    """

    def __init__(self, target: MessagePump) -> None:
        self._target = target
        self.logs: tuple[ReplicaLog, ...] = ()
        self.all_numbers: tuple[int, ...] = ()
        """The number of each replica, as screens show it."""
        self.replica: int | None = None
        """The place of the chosen replica, None for all of them."""
        self.stream: StreamName = "combined"
        self.rules: tuple[Rule, ...] = ()
        self.pattern: Pattern | None = None
        """What is searched for."""
        self.current: int | None = None
        """The line that the last search stopped at, or that was gone to."""
        self._since = 0
        self._earliest: float | None = None
        self._is_final: Callable[[], bool] | None = None
        self.follower: LogFollower | None = None
        self._whole: MergedLog | None = None
        self.log: AnyLog | None = None
        """The log as it is shown: what the filters let through; None where there is none."""
        self._start: float | None = None
        self._start_at: int | None = None

    def choose(self, logs: Sequence[ReplicaLog], is_final: Callable[[], bool] | None) -> None:
        """Take another job's replicas. `open` begins to read."""
        self.logs = tuple(logs)
        self.all_numbers = replica_numbers((log.role, log.replica) for log in logs)
        self._is_final = is_final
        self.replica = 0 if len(self.logs) == 1 else None
        self.stream = "combined"
        self.rules = ()
        self.pattern = self.current = None
        self._since = 0
        self._earliest = self._start = None

    def open(self) -> None:
        """Read what is chosen, in place of what was read."""
        self.close()
        if not self.logs:
            return
        whole = self._whole = self._merged(self.stream)
        self.log = self._filtered(whole)
        self.follower = LogFollower(self.log, partial(self._tell, whole), self._is_final)
        self.follower.start()

    def close(self) -> None:
        """End the reading thread."""
        if self.follower is not None:
            self.follower.close()
        self.follower = self._whole = self.log = self._start_at = None

    def filter(self, rules: tuple[Rule, ...]) -> None:
        """Let only some lines through from now on."""
        self.rules = rules
        if self.ended:
            # Nobody reads any more.
            self.open()
        elif self.follower is not None and self._whole is not None:
            self.log = self._filtered(self._whole)
            self.follower.switch_to(self.log)

    def next_stream(self) -> None:
        """Choose the next stream; `open` reads it."""
        self.stream = STREAMS[(STREAMS.index(self.stream) + 1) % len(STREAMS)]

    def next_since(self) -> None:
        """Choose how far back the log goes: from now, or from the last line of a job that has ended."""
        self._since = (self._since + 1) % len(SINCE)
        last = self.last_time() if self.ended else None
        seconds = SINCE[self._since][0]
        self._earliest = None if seconds is None else (time.time() if last is None else last) - seconds

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of each replica that is read, as screens show it."""
        return self.all_numbers if self.replica is None else (self.all_numbers[self.replica],)

    @property
    def since(self) -> str:
        """How far back the log goes, such as ``10m``; empty where all of it is read."""
        return SINCE[self._since][1] if self._since else ""

    @property
    def failure(self) -> str:
        """Why the log can no longer be read, in words; empty while it can."""
        return self.follower.failure if self.follower is not None else ""

    @property
    def ended(self) -> bool:
        """Whether the job has ended and every line of it is known."""
        return self.follower is not None and self.follower.ended

    @property
    def is_behind(self) -> bool:
        """Whether the reading ended just when other lines were to be let through; `open` reads those."""
        return self.follower is not None and self.follower.ended and self.follower.log is not self.log

    @property
    def has_streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        return any(log.has_streams for log in self.logs)

    @property
    def words(self) -> str:
        """What is read, such as ``16 merged`` or ``replica 3 of 16``."""
        count = len(self.logs)
        if count == 1:
            return "1 replica"
        if self.replica is None:
            return f"{count} merged"
        # The tasks of an array have numbers of their own.
        return f"replica {self.numbers[0]}{' of' if self.numbers[0] < count else ', one of'} {count}"

    def seen(self) -> None:
        """Say that the last change is shown."""
        if self.follower is not None:
            self.follower.acknowledge()

    def look(self) -> None:
        """Look at once whether the job has ended."""
        if self.follower is not None:
            self.follower.poll_now()

    def is_read(self, log: MergedLog) -> bool:
        """Whether a log is the one that is read now."""
        return log is self._whole

    def start_time(self) -> float | None:
        """Return when the job's first known line came (seconds since the epoch), None if no line has a time."""
        whole = self._whole
        if whole is not None and whole.bounds().first != self._start_at:
            self._start_at = whole.bounds().first
            times = [line.time for line in whole.lines(self._start_at, _LOOKED_THROUGH) if line.time is not None]
            self._start = min([*times[:1], *([self._start] if self._start is not None else [])], default=None)
        return self._start

    def last_time(self) -> float | None:
        """Return when the last known line came (seconds since the epoch), None if it has no time."""
        log = self.log
        return next((line.time for line in log.lines(log.bounds().end - 1, 1)), None) if log is not None else None

    def anew(self) -> AnyLog:
        """Return the same lines as a log of its own, not opened yet, for a reader that goes on by itself."""
        return self._filtered(self._merged(self.stream))

    def everything(self) -> MergedLog:
        """Return all lines of all replicas as a log of its own, not opened yet."""
        return MergedLog(self.logs)

    def _merged(self, stream: StreamName) -> MergedLog:
        logs = self.logs if self.replica is None else [self.logs[self.replica]]
        return MergedLog(logs, stream, since=self._earliest)

    def _filtered(self, log: MergedLog) -> AnyLog:
        return Matches(log, self.rules) if self.rules else log

    def _tell(self, log: MergedLog) -> None:
        """Called in the reading thread, which never waits for the event loop."""
        # The loop may be gone already when the app ends.
        with suppress(RuntimeError):
            self._target.post_message(LogGrew(log))
