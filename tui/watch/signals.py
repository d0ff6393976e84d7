"""What is published of jobs on the event loop; screens subscribe when they are mounted."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.signal import Signal

if TYPE_CHECKING:
    from textual.app import App

    from ..messages import (
        ActivityRead,
        FailureExplained,
        JobDescribed,
        ProgressRead,
        StacksTaken,
        UsageSampled,
    )
    from ..rows import JobRow


class RowsChanged(NamedTuple):
    """Rows that are new or differ, and handles that are gone; both are empty if only a backend's state changed."""

    changed: Collection[JobRow] = ()
    removed: Collection[str] = ()


NO_CHANGE = RowsChanged()


class JobSignals:
    """A signal for each kind of news; the store is up to date when they are published."""

    def __init__(self, app: App[Any]) -> None:
        self.rows: Signal[RowsChanged] = Signal(app, "rows")
        self.described: Signal[JobDescribed] = Signal(app, "described")
        self.usage: Signal[UsageSampled] = Signal(app, "usage")
        self.activity: Signal[ActivityRead] = Signal(app, "activity")
        self.progress: Signal[ProgressRead] = Signal(app, "progress")
        self.failures: Signal[FailureExplained] = Signal(app, "failures")
        self.stacks: Signal[StacksTaken] = Signal(app, "stacks")
