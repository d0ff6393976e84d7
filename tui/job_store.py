"""What the screens know of all jobs: the rows of every backend, history, counts, and which backends are silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .job_rows import JobRow, history_rows

if TYPE_CHECKING:
    from ..backends.api import Finding
    from ..backends.journal import Journal
    from ..specs import AppState
    from .messages import BackendFailed, JobsChanged


@dataclass(frozen=True)
class Outage:
    """A backend that does not answer."""

    reason: str
    since: float
    next_try: float


class JobStore:
    """The rows of all backends, as last heard.

    Args:
        journal: what was launched, for history.
        now: the clock, in seconds since the epoch.
    """

    def __init__(self, journal: Journal, now: Callable[[], float]) -> None:
        self._journal = journal
        self._now = now
        self.rows: dict[str, JobRow] = {}
        self.schedulers: list[str] = []
        self.answered: set[str] = set()
        self.outages: dict[str, Outage] = {}
        self.findings: dict[str, list[Finding]] = {}

    def set_schedulers(self, names: list[str]) -> None:
        """Take the backends that are watched."""
        self.schedulers = names

    def apply(self, message: JobsChanged) -> list[JobRow]:
        """Take one backend's changes; return the jobs that have just become final while we looked."""
        self.outages.pop(message.scheduler, None)
        self.answered.add(message.scheduler)
        ended = []
        for handle, row in message.changed.items():
            before = self.rows.get(handle)
            if before is not None and not before.is_final and row.is_final:
                ended.append(row)
            self.rows[handle] = row
        for handle in message.removed:
            self.rows.pop(handle, None)
        return ended

    def fail(self, message: BackendFailed) -> bool:
        """Note that a backend is silent; return whether that is news."""
        news = message.scheduler not in self.outages
        self.outages[message.scheduler] = Outage(message.reason, message.since, message.next_try)
        return news

    def add(self, row: JobRow) -> None:
        """Show a job before its backend lists it: one that was just submitted."""
        self.rows.setdefault(row.handle, row)

    def forget(self, handle: str) -> None:
        """Take a job off the screen."""
        self.rows.pop(handle, None)

    def listed(self, scheduler: str | None = None) -> list[JobRow]:
        """Return the jobs of one backend, or of all."""
        return [row for row in self.rows.values() if scheduler in (None, row.scheduler)]

    def history(self, scheduler: str | None = None) -> list[JobRow]:
        """Return the launches that no backend knows any more."""
        rows = history_rows(self._journal.records(), set(self.rows))
        return [row for row in rows if scheduler in (None, row.scheduler)]

    def count(self, scheduler: str | None = None) -> int:
        """Return how many jobs a backend lists, or all of them."""
        return len(self.listed(scheduler))

    def state_counts(self) -> Counter[AppState]:
        """Return how many jobs are in each state."""
        return Counter(row.state for row in self.rows.values())

    @property
    def stale(self) -> frozenset[str]:
        """The backends whose rows are old."""
        return frozenset(self.outages)
