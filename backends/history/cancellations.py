"""That an app was cancelled, for schedulers whose backends do not remember it: they call it failed.

The journal keeps it, for as long as the job is known. Of a job that has no record there, as somebody else launched it,
this process remembers it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.files import user_name
from ...specs.status import AppState, ReplicaStatus, RoleStatus, is_terminal

if TYPE_CHECKING:
    from ..api import Scheduler
    from ..types import DescribeAppResponse, ListAppResponse
    from .journal import Journal, LaunchRecord


# A list does not wait longer for a long journal (s); the next one is told of the rest.
_JOURNAL_SECONDS = 0.2


@dataclass(frozen=True)
class Cancellation:
    """Who asked for an app's end, and when, in seconds since the epoch."""

    at: float
    by: str


class Cancellations:
    """Cancels apps, and turns what a scheduler says of them afterwards into what is true of them.

    Args:
        journal: where cancellations are kept.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._own: dict[str, Cancellation] = {}
        self._lock = threading.Lock()

    def cancel(self, scheduler: Scheduler[Any], app_id: str, handle: str) -> None:
        """Note that an app is cancelled, then ask its scheduler for its end.

        Where the scheduler does not remember it, an app that has ended is left as it is.

        Raises:
            SchedulerError: the scheduler refused; nothing is noted then.
        """
        now = Cancellation(time.time(), user_name())
        if not scheduler.capabilities.remembers_cancel:
            described = scheduler.describe(app_id)
            if described is None or described.has_ended:
                return
            with self._lock:
                # The first time stays.
                now = self._own.setdefault(handle, now)
        record = self._journal.find(handle)
        if record is not None:
            self._journal.note(record, cancelled_at=now.at, cancelled_by=now.by)
        try:
            scheduler.cancel(app_id)
        except Exception:
            self.forget(handle)
            if record is not None:
                self._journal.note(record, cancelled_at=record.cancelled_at, cancelled_by=record.cancelled_by)
            raise

    def forget(self, handle: str) -> None:
        """Forget that an app was cancelled, as far as this process alone knew."""
        with self._lock:
            self._own.pop(handle, None)

    def correct_rows(self, rows: Iterable[ListAppResponse]) -> None:
        """Set the state and the reason of the rows, handles filled in, whose apps were cancelled."""
        rows = list(rows)
        records = self._journal.find_all((row.app_handle for row in rows), _JOURNAL_SECONDS)
        for row in rows:
            if (cancelled := self._find(row.app_handle, records)) is not None:
                row.state, row.msg = _corrected(row, cancelled)

    def correct(self, described: DescribeAppResponse, handle: str) -> None:
        """Set the state, the reason and the replicas' states of an app that was cancelled."""
        cancelled = self._find(handle, self._journal.find_all([handle]))
        if cancelled is None:
            return
        before = described.state
        described.state, described.msg = _corrected(described, cancelled)
        described.timeline = [
            replace(change, state=described.state) if change.state is before and is_terminal(before) else change
            for change in described.timeline
        ]
        described.roles_statuses = [
            RoleStatus(role.role, [_replica(replica, cancelled) for replica in role.replicas])
            for role in described.roles_statuses
        ]

    def _find(self, handle: str, records: Mapping[str, LaunchRecord]) -> Cancellation | None:
        record = records.get(handle)
        if record is not None and record.cancelled_at is not None:
            return Cancellation(record.cancelled_at, record.cancelled_by)
        return self._own.get(handle)


def _corrected(app: DescribeAppResponse | ListAppResponse, cancelled: Cancellation) -> tuple[AppState, str]:
    from ..shared.exit_reasons import format_cancelled

    # It was live when it was asked to end: whatever it ended with, even with 0, is that end.
    ended = is_terminal(app.state)
    began = app.started_at or app.submitted_at
    after = None if began is None else cancelled.at - began
    return (AppState.CANCELLED if ended else app.state), format_cancelled(cancelled.by, after, ended)


def _replica(replica: ReplicaStatus, cancelled: Cancellation) -> ReplicaStatus:
    # One that had failed before did not end by the cancel.
    if replica.state is AppState.FAILED and (replica.finished_at or 0.0) >= cancelled.at:
        return replace(replica, state=AppState.CANCELLED)
    return replica
