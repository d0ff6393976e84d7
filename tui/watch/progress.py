"""Reads how far running jobs are, for the table: by the end of their logs, where these are files on this machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ...backends.replica_logs import replica_logs
from ...diagnosis.progress.activity import main_series
from ...diagnosis.progress.reader import read_tail
from ...diagnosis.progress.tracker import Moments, ProgressTracker
from ...specs import parse_app_handle
from ..messages import ProgressRead
from ..rows import RowProgress
from .thread import WatchingThread

if TYPE_CHECKING:
    from textual.message import Message

    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from ...settings.config import MetricsSettings

logger = logging.getLogger(__name__)

_INTERVAL_S = 5.0
# Where a job's logs are is asked once. Servers are asked for one job in so many seconds; this machine at once.
_SERVER_PAUSE_S = 10.0
_MOST_KNOWN = 500


class ProgressWatcher(WatchingThread):
    """Looks at the jobs that are on the screen, while somebody wants to see how far they are.

    Args:
        runner: the door to the backends.
        post: hands a message to the app, from any thread.
        settings: the table ``[metrics]``.
    """

    def __init__(self, runner: Runner, post: Callable[[Message], object], settings: MetricsSettings) -> None:
        super().__init__("watch-progress")
        self._runner = runner
        self._post = post
        self._settings = settings
        self._handles: tuple[str, ...] = ()
        self._logs: dict[str, list[ReplicaLog]] = {}
        self._moments: dict[str, Moments] = {}
        self._asked_server_at = -_SERVER_PAUSE_S

    def watch(self, handles: Collection[str]) -> None:
        """Look at these jobs from now on, or at none."""
        chosen = tuple(handles)
        if chosen != self._handles:
            self._handles = chosen
            self._wake.set()

    def run(self) -> None:
        """Look until `end`."""
        while not self._ended.is_set():
            found = {}
            for handle in self._handles:
                if self._ended.is_set():
                    return
                try:
                    found[handle] = self._look(handle)
                except Exception as error:
                    logger.debug("progress of %s: %s", handle, error)
            known = {handle: progress for handle, progress in found.items() if progress is not None}
            if known:
                self._post(ProgressRead(known))
            self._wake.wait(_INTERVAL_S if self._handles else None)
            self._wake.clear()

    def _look(self, handle: str) -> RowProgress | None:
        logs = self._logs_of(handle)
        if not logs:
            return None
        tracker = ProgressTracker(self._settings.denied, self._settings.names, is_bounded=True)
        read_tail(logs, tracker)
        progress = tracker.progress()
        moments = self._moments.setdefault(handle, Moments())
        if progress.step is not None and progress.moved_at is not None:
            moments.add(progress.moved_at, progress.step)
        rate = moments.rate() or progress.rate
        left = progress.seconds_left
        if rate and progress.total and progress.step is not None:
            left = max(0.0, progress.total - progress.step) / rate
        main = main_series(tracker.series())
        return RowProgress(
            progress.step, progress.fraction, left, main.name if main else "", main.printed if main else ""
        )

    def _logs_of(self, handle: str) -> list[ReplicaLog]:
        if handle in self._logs:
            return self._logs[handle]
        scheduler = parse_app_handle(handle).scheduler_backend
        if not self._runner.capabilities(scheduler).log_files:
            return []
        if not scheduler.startswith("local"):
            if time.monotonic() - self._asked_server_at < _SERVER_PAUSE_S:
                return []
            self._asked_server_at = time.monotonic()
        described = self._runner.describe(handle)
        logs = replica_logs(self._runner.replica_log, handle, described) if described else []
        if len(self._logs) >= _MOST_KNOWN:
            self._logs.clear()
            self._moments.clear()
        if logs:
            self._logs[handle] = logs
        return logs
