"""Reads how far jobs are, for the table.

Of running jobs by the end of their logs, where these are files on this machine; of ended ones by what was kept of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ...backends.replica_logs import replica_logs
from ...diagnosis.metrics.store import load_series, metrics_path
from ...diagnosis.progress.activity import STEP, TOTAL, main_series
from ...diagnosis.progress.blocks import followed
from ...diagnosis.progress.reader import last_written, read_tail
from ...diagnosis.progress.stalls import Kind, find_pause
from ...diagnosis.progress.tracker import Moments, Progress, ProgressTracker
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


class WatchedJob:
    """One job that is looked at.

    Args:
        logs: the logs of its replicas.
    """

    def __init__(self, logs: list[ReplicaLog]) -> None:
        self.logs = followed(logs)
        self._moments = Moments()
        self._tracker: ProgressTracker | None = None
        self._written = (0.0, 0)

    def look(self, settings: MetricsSettings, now: float) -> RowProgress:
        """Read the ends of its logs, if anything was printed since the last time, and say how far it is."""
        written = last_written(self.logs)
        printed_at = written[0]
        if self._tracker is None or written != self._written:
            self._tracker = ProgressTracker(settings.denied, settings.names, settings.patterns, is_bounded=True)
            read_tail(self.logs, self._tracker)
            self._written = written
        tracker, moments = self._tracker, self._moments
        progress = tracker.progress()
        if progress.step is not None and progress.step != moments.last_step:
            moments.add(printed_at, progress.step)
        left, seconds = progress.seconds_left, moments.step_seconds()
        if seconds and progress.total and progress.step is not None:
            left = max(0.0, progress.total - progress.step) * seconds
        pause = find_pause(moments.pauses(), moments.last, printed_at, now, is_excused=tracker.is_excused)
        is_stalled = pause is not None and pause.kind is Kind.STALLED
        main = main_series(tracker.series())
        return RowProgress(
            progress.step, progress.fraction, left, main.name if main else "", main.printed if main else "",
            pause.sentence if pause and is_stalled else "", pause.seconds if pause and is_stalled else 0.0,
        )  # fmt: skip


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
        self._ended_handles: tuple[str, ...] = ()
        self._kept: dict[str, float] = {}
        self._jobs: dict[str, WatchedJob] = {}
        self._asked_server_at = -_SERVER_PAUSE_S

    def watch(self, running: Collection[str], ended: Collection[str] = ()) -> None:
        """Look at these jobs from now on, or at none."""
        chosen = tuple(running), tuple(ended)
        if chosen != (self._handles, self._ended_handles):
            self._handles, self._ended_handles = chosen
            self._wake.set()

    def run(self) -> None:
        """Look until `end`."""
        while not self._ended.is_set():
            found = {}
            running, ended = self._handles, self._ended_handles
            # A row that comes back is told again.
            self._kept = {handle: kept_at for handle, kept_at in self._kept.items() if handle in ended}
            for handle in (*running, *ended):
                if self._ended.is_set():
                    return
                try:
                    found[handle] = self._look(handle) if handle in running else self._look_at_kept(handle)
                except Exception as error:
                    logger.debug("progress of %s: %s", handle, error)
            known = {handle: progress for handle, progress in found.items() if progress is not None}
            if known:
                self._post(ProgressRead(known))
            self._wake.wait(_INTERVAL_S if running or ended else None)
            self._wake.clear()

    def _look(self, handle: str) -> RowProgress | None:
        watched = self._watched(handle)
        return watched.look(self._settings, time.time()) if watched else None

    def _look_at_kept(self, handle: str) -> RowProgress | None:
        """Return how far an ended job came, if that was kept since the last time."""
        try:
            kept_at = metrics_path(handle).stat().st_mtime
        except OSError:
            return None
        if self._kept.get(handle) == kept_at:
            return None
        self._kept[handle] = kept_at
        series, facts = load_series(handle)
        main = main_series(series)
        progress = Progress(facts.get(STEP), facts.get(TOTAL))
        return RowProgress(
            progress.step, progress.fraction, None, main.name if main else "", main.printed if main else ""
        )

    def _watched(self, handle: str) -> WatchedJob | None:
        if handle in self._jobs:
            return self._jobs[handle]
        scheduler = parse_app_handle(handle).scheduler_backend
        if not self._runner.capabilities(scheduler).log_files:
            return None
        if not scheduler.startswith("local"):
            if time.monotonic() - self._asked_server_at < _SERVER_PAUSE_S:
                return None
            self._asked_server_at = time.monotonic()
        described = self._runner.describe(handle)
        logs = replica_logs(self._runner.replica_log, handle, described) if described else []
        if len(self._jobs) >= _MOST_KNOWN:
            self._jobs.clear()
        if not logs:
            return None
        self._jobs[handle] = WatchedJob(logs)
        return self._jobs[handle]
