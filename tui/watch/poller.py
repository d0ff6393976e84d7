"""The thread that asks one backend for its jobs, and posts what changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from ...backends.abilities import ListsAllUsers, PrunesJobs, WatchesChanges
from ...base.backoff import Backoff, jittered
from ...base.timeouts import LimitedCaller
from ...specs.status import AppState, is_terminal
from ..messages import BackendChecked, BackendFailed, JobsChanged, SchedulerMade
from ..rows import JobRow
from .make_rows import row_of
from .schedule import tick_seconds
from .thread import WatchingThread

if TYPE_CHECKING:
    from ...backends.api import ListAppResponse
    from ...backends.history.journal import LaunchRecord
    from ...backends.runner import Runner
    from ...settings.config import WatchSettings

logger = logging.getLogger(__name__)

# A backend that does not answer is asked again after so long, twice as long each time (s).
_FIRST_RETRY_S, _LONGEST_RETRY_S = 1.0, 60.0

Post = Callable[[Message], object]

# Changes that a backend pushes are taken together for so long (s).
_PUSH_PAUSE = 0.2
JOURNAL_TIMEOUT_S = 0.05
"""Seconds that rows wait for a long journal; the rest of it is read afterwards."""
# Pauses (s) between two parts of the journal, in which the event loop has the interpreter for itself.
_JOURNAL_PAUSE = 0.05
NEW_JOB_S = 30.0
"""Seconds in which a backend may not know a job yet that it has just accepted."""


class BackendPoller(WatchingThread):
    """Asks one backend for all its jobs, again and again, and posts what changed.

    Args:
        runner: the door to the backend.
        scheduler: its name.
        post: hands a message to the app; called from this thread.
        settings: how often it asks, and how long it waits for an answer.
        last_key_at: tells when a person last pressed a key, in monotonic seconds.
    """

    def __init__(
        self,
        runner: Runner,
        scheduler: str,
        post: Post,
        settings: WatchSettings,
        last_key_at: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(f"poll-{scheduler}")
        self._runner = runner
        self._scheduler = scheduler
        self._post = post
        self._settings = settings
        self._last_key_at = last_key_at
        self._caller = LimitedCaller(
            f"ask-{scheduler}", slow_seconds=settings.timeout_seconds / 3, on_slow=self._say_slow
        )
        self._rows = RowMaker()
        self._sent: dict[str, JobRow] = {}
        self._unremembered: dict[str, JobRow] = {}
        # What was listed while the journal is not read as far as that needs.
        self._unjoined: list[ListAppResponse] = []
        self._answers = 0
        self._faults: set[str] = set()
        self._failures = 0
        self._backoff = Backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        self._told_slow = False
        self._noted = ""
        self._last_answer = time.time()
        self._changed_at = time.monotonic()
        self._unsubscribe: Callable[[], object] | None = None
        self._all_users: bool | None = None
        # The reasons for missing jobs in the last answer and in the last message.
        self._missing, self._told_missing = "", ""

    def set_all_users(self, all_users: bool) -> None:
        """List the jobs of every user from the next question on, or this user's; it is asked now."""
        self._all_users = all_users
        self.refresh()

    def _list(self) -> list[ListAppResponse]:
        all_users, self._all_users = self._all_users, None
        if all_users is not None:
            scheduler = self._runner.scheduler(self._scheduler)
            if isinstance(scheduler, ListsAllUsers):
                scheduler.set_all_users(all_users)
        apps = self._runner.list(self._scheduler)
        self._missing = self._runner.scheduler(self._scheduler).missing_jobs()
        return apps

    def run(self) -> None:
        """Ask until `end`."""
        self._prepare()
        while not self._ended.is_set():
            delay = self.tick()
            if self._wait(delay) and not self._ended.is_set():
                self._ended.wait(_PUSH_PAUSE)
            self._wake.clear()
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _prepare(self) -> None:
        """Look at the backend itself, once; let it push changes where it can."""
        limit = self._settings.timeout_seconds
        try:
            scheduler = self._caller.call(lambda: self._runner.scheduler(self._scheduler), limit)
            self._send(SchedulerMade(self._scheduler, scheduler))
            findings = self._caller.call(lambda: self._runner.check(self._scheduler), limit)
            self._send(BackendChecked(self._scheduler, findings))
            if isinstance(scheduler, PrunesJobs) and not self._runner.read_only:
                self._caller.call(lambda: self._runner.prune(self._scheduler), limit)
            if isinstance(scheduler, WatchesChanges):
                self._unsubscribe = self._caller.call(lambda: scheduler.subscribe(self.refresh), limit)
        except Exception:
            # The first question tells what is wrong.
            logger.exception("%s: check", self._scheduler)

    def tick(self) -> float:
        """Ask once; return the seconds until the next time."""
        try:
            apps = self._caller.call(self._list, self._settings.timeout_seconds)
            rows = self._join(apps)
        except Exception as error:
            self._failures += 1
            delay = self._backoff.next()
            reason = str(error) or type(error).__name__
            if reason != self._noted:
                # Once, not with each of a day's tries.
                self._noted = reason
                logger.warning("%s did not answer: %s", self._scheduler, reason, exc_info=True)
            self._fail(reason, delay)
            return delay
        now = time.monotonic()
        return jittered(
            tick_seconds(
                active=any(not row.is_final for row in rows.values()),
                quiet=now - self._changed_at,
                unwatched=now - self._last_key_at(),
                fastest=self._settings.interval_seconds,
                slowest=self._settings.slowest_seconds,
            )
        )

    def _join(self, apps: list[ListAppResponse]) -> dict[str, JobRow]:
        """Post the rows of listed apps, with what the journal adds as far as it was read, and return them."""
        journal = self._runner.journal
        records = journal.find_all((app.app_handle for app in apps), JOURNAL_TIMEOUT_S)
        self._unjoined = [] if journal.is_whole else apps
        rows, faults = self._rows.make(apps, records)
        for fault in set(faults) - self._faults:
            logger.warning("%s: %s", self._scheduler, fault)
        self._faults = set(faults)
        self._take(rows, records)
        return rows

    def _wait(self, seconds: float) -> bool:
        """Wait for the next time to ask, and read a long journal meanwhile; return whether it was cut short."""
        until = time.monotonic() + seconds
        while self._unjoined and time.monotonic() < until:
            if self._runner.journal.read_on(JOURNAL_TIMEOUT_S):
                self._join(self._unjoined)
            elif self._wake.wait(_JOURNAL_PAUSE):
                break
        return self._wake.wait(max(0.0, until - time.monotonic()))

    def _take(self, rows: dict[str, JobRow], records: Mapping[str, LaunchRecord]) -> None:
        """Post what differs from what was posted before.

        Args:
            rows: of every job.
            records: the journal's of these jobs, as far as it was read.
        """
        recovered = self._failures > 0 or self._told_slow
        self._failures, self._told_slow, self._noted = 0, False, ""
        self._backoff.reset()
        self._last_answer = time.time()
        # A row that did not change is the very same object.
        changed = {handle: row for handle, row in rows.items() if self._sent.get(handle) is not row}
        removed = self._sent.keys() - rows.keys()
        self._note(changed)
        self._unremembered.update(changed)
        if not self._unjoined:
            self._remember(records)
        if changed or removed:
            self._changed_at = time.monotonic()
        is_news = self._missing != self._told_missing
        if changed or removed or recovered or is_news or not self._answers:
            self._told_missing = self._missing
            self._send(JobsChanged(self._scheduler, changed, set(removed), self._missing))
        self._answers += 1
        self._sent = rows

    def _note(self, changed: Mapping[str, JobRow]) -> None:
        """Write into the log file what cannot be."""
        for handle, row in changed.items():
            before = self._sent.get(handle)
            if before is not None and is_terminal(before.state) and not is_terminal(row.state):
                logger.warning("%s was %s and is %s now, says its backend", handle, before.state, row.state)

    def _remember(self, records: Mapping[str, LaunchRecord]) -> None:
        """Write into the journal in which state jobs were last seen, for when their backend does not tell any more."""
        for handle, row in self._unremembered.items():
            record = records.get(handle)
            known = row.state is not AppState.UNKNOWN or row.is_final
            if record is not None and known and record.state != row.state.name:
                try:
                    self._runner.remember(handle, row.state, row.why)
                except OSError as error:
                    logger.warning("the journal cannot be written: %s", error)
        self._unremembered.clear()

    def _say_slow(self, reason: str) -> None:
        if not self._told_slow and not self._failures:
            self._told_slow = True
            self._fail(reason, None)

    def _fail(self, reason: str, delay: float | None) -> None:
        next_try = 0.0 if delay is None else time.time() + delay
        self._send(BackendFailed(self._scheduler, reason, self._last_answer, next_try))

    def _send(self, message: Message) -> None:
        if not self._ended.is_set():
            self._post(message)


class RowMaker:
    """Makes the rows of listed apps; what did not change keeps its row."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[ListAppResponse, LaunchRecord | None, JobRow]] = {}

    def make(
        self, apps: list[ListAppResponse], records: Mapping[str, LaunchRecord]
    ) -> tuple[dict[str, JobRow], list[str]]:
        """Return a row for each app, and what is wrong with those that cannot be shown."""
        made, rows, faults = self._made, {}, []
        fresh: dict[str, tuple[ListAppResponse, LaunchRecord | None, JobRow]] = {}
        now = time.time()
        for app in apps:
            try:
                handle = app.app_handle
                record = records.get(handle)
                known = made.get(handle)
                same = known is not None and known[1] is record and (known[0] is app or known[0] == app)
                if known is not None and same and known[2].state is not AppState.SUBMITTED:
                    fresh[handle], rows[handle] = known, known[2]
                    continue
                row = _tolerant(row_of(app, record), now)
                if known is not None and known[2] == row:
                    row = known[2]
            except Exception as error:
                faults.append(f"a job that cannot be shown: {app!r:.200}: {error}")
                continue
            fresh[handle] = app, record, row
            rows[handle] = row
        self._made = fresh
        return rows, faults


def _tolerant(row: JobRow, now: float) -> JobRow:
    """Show a job as submitted while its backend has not found its own feet with it."""
    new = row.submitted_at is not None and 0 <= now - row.submitted_at < NEW_JOB_S
    if row.state is AppState.UNKNOWN and row.finished_at is None and new:
        return replace(row, state=AppState.SUBMITTED)
    return row
