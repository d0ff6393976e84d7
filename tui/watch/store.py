"""What the screens know of all jobs: the rows of every backend, their counts, and which backends are silent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...specs.status import AppState
from ..rows import JobRow

if TYPE_CHECKING:
    from ...backends.api import Capabilities, Finding, Scheduler
    from ..messages import BackendFailed, JobsChanged, StacksTaken


# Changes of state that are kept of a job.
_MOST_CHANGES = 100


@dataclass(frozen=True)
class Outage:
    """A backend that does not answer."""

    reason: str
    since: float
    next_try: float


class JobStore:
    """The rows of all backends, as last heard."""

    def __init__(self) -> None:
        self.rows: dict[str, JobRow] = {}
        self.schedulers: list[str] = []
        self.error = ""
        self.answered: set[str] = set()
        self.outages: dict[str, Outage] = {}
        self.answered_before: frozenset[str] = frozenset()
        """Backends that have answered an earlier run of the dashboard."""
        self.missing: dict[str, str] = {}
        """Reasons why the lists of backends may lack jobs, by backend."""
        self.findings: dict[str, list[Finding]] = {}
        self.made: dict[str, Scheduler[Any]] = {}
        """The schedulers that were made, by name: only their abilities may be asked for here, see `can`."""
        self.taken: dict[str, StacksTaken] = {}
        """The last stacks that were taken of jobs, and what they mean."""
        self.explained: dict[str, str] = {}
        """Reasons of failed jobs by handle, found in their logs."""
        self.marked: list[JobRow] = []
        """The jobs that are marked in the table."""
        self.cancelled_together: set[str] = set()
        """The handles of several jobs that were cancelled at once: their end is announced once."""
        # Kept as rows come and go: with many jobs, counting them would cost more than drawing the screen.
        self._counts: Counter[tuple[str, AppState]] = Counter()
        self._changes: dict[str, list[tuple[AppState, float]]] = {}

    def set_schedulers(self, names: list[str], error: str = "") -> None:
        """Take the backends that are watched, or why they cannot be found."""
        self.schedulers, self.error = [*names], error

    def can(self, scheduler: str, *abilities: type) -> bool:
        """Return whether a scheduler has one of some abilities; it does not until it was made."""
        return isinstance(self.made.get(scheduler), abilities)

    def with_ability(self, ability: type) -> list[str]:
        """Return the watched schedulers that have an ability, in their order."""
        return [name for name in self.schedulers if self.can(name, ability)]

    def capabilities(self, scheduler: str) -> Capabilities | None:
        """Return the capabilities of a scheduler; None until it was made."""
        made = self.made.get(scheduler)
        return None if made is None else made.capabilities

    def apply(self, message: JobsChanged) -> list[JobRow]:
        """Take one backend's changes; return the jobs that have just become final while we looked."""
        self.outages.pop(message.scheduler, None)
        self.answered.add(message.scheduler)
        self.missing.pop(message.scheduler, None)
        if message.missing:
            self.missing[message.scheduler] = message.missing
        ended = []
        for handle, row in message.changed.items():
            before = self.rows.get(handle)
            if before is not None and not before.is_final and row.is_final:
                ended.append(row)
            self._put(row)
        for handle in message.removed:
            self.forget(handle)
        return ended

    def explain(self, handle: str, sentence: str) -> JobRow | None:
        """Keep why a job failed; return its row, if it has one."""
        self.explained[handle] = sentence
        if (row := self.rows.get(handle)) is not None:
            self._put(row)
        return self.rows.get(handle)

    def taken_since(self, handle: str, since: float) -> StacksTaken | None:
        """Return the last stacks of a job, where they were taken after a time in seconds since the epoch."""
        taken = self.taken.get(handle)
        return taken if taken is not None and taken.at >= since else None

    def fail(self, message: BackendFailed) -> bool:
        """Note that a backend is silent; return whether that is news, as is what an answer that was late came to."""
        before = self.outages.get(message.scheduler)
        news = before is None or (before.next_try == 0 and message.next_try != 0)
        self.outages[message.scheduler] = Outage(message.reason, message.since, message.next_try)
        # What is not set up here comes last.
        self.schedulers.sort(key=self.not_set_up.__contains__)
        return news

    @property
    def not_set_up(self) -> set[str]:
        """The backends that fail and have never answered."""
        return self.outages.keys() - self.answered - self.answered_before

    def expect_cancelled(self, handles: Collection[str]) -> None:
        """Remember jobs that are being cancelled, if they are several."""
        if len(handles) > 1:
            self.cancelled_together = {*filter(self.is_live, self.cancelled_together), *handles}

    def is_live(self, handle: str) -> bool:
        """Return whether a job is listed and has not ended."""
        row = self.rows.get(handle)
        return row is not None and not row.is_final

    def add(self, row: JobRow) -> None:
        """Show a job before its backend lists it: one that was just submitted."""
        if row.handle not in self.rows:
            self._put(row)

    def forget(self, handle: str) -> None:
        """Take a job off the screen."""
        row = self.rows.pop(handle, None)
        self._changes.pop(handle, None)
        self.taken.pop(handle, None)
        self.explained.pop(handle, None)
        if row is not None:
            self._counts[row.scheduler, row.state] -= 1

    def _put(self, row: JobRow) -> None:
        if row.state is not AppState.FAILED:
            self.explained.pop(row.handle, None)  # it runs again
        elif why := self.explained.get(row.handle):
            row = replace(row, why=why)
        before = self.rows.get(row.handle)
        if before is not None:
            self._counts[before.scheduler, before.state] -= 1
            if before.state is not row.state:
                seen = self._changes.setdefault(row.handle, [(before.state, _since(before))])
                seen.append((row.state, _since(row) if row.is_final else time.time()))
                # A job that is restarted for weeks has its last changes only.
                del seen[:-_MOST_CHANGES]
        self.rows[row.handle] = row
        self._counts[row.scheduler, row.state] += 1

    def changes(self, handle: str) -> list[tuple[AppState, float]]:
        """Return the states that a job was in while we looked, each with when it began, in seconds since the epoch."""
        row = self.rows.get(handle)
        return self._changes.get(handle) or ([(row.state, _since(row))] if row is not None else [])

    def unanswered(self, scheduler: str | None = None) -> list[str]:
        """Return which backends, all or the one given, have neither answered nor failed yet."""
        names = self.schedulers if scheduler is None else [scheduler]
        return [name for name in names if name not in self.answered and name not in self.outages]

    def is_known(self, scheduler: str | None = None) -> bool:
        """Return whether the number of jobs of a backend, or of all, is known."""
        return bool(self.schedulers) and not self.unanswered(scheduler)

    def count(self, scheduler: str | None = None) -> int:
        """Return how many jobs a backend lists, or all of them."""
        if scheduler is None:
            return len(self.rows)
        return sum(number for (name, _), number in self._counts.items() if name == scheduler)

    def state_counts(self, scheduler: str | None = None) -> Counter[AppState]:
        """Return how many jobs of a backend, or of all, are in each state."""
        counts: Counter[AppState] = Counter()
        for (name, state), number in self._counts.items():
            if scheduler in (None, name):
                counts[state] += number
        return counts

    @property
    def stale(self) -> frozenset[str]:
        """The backends whose rows are old."""
        return frozenset(self.outages)


def _since(row: JobRow) -> float:
    """Return when a job entered its state, as nearly as its backend tells."""
    known = row.finished_at if row.is_final else row.started_at if row.running else row.submitted_at
    return known or time.time()
