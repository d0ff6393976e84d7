"""Reads how far jobs are, for the table.

Running jobs are read by the end of their logs, where these are files on this machine. Jobs that have ended are read so
once; without files, what was kept of them counts.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from ...backends.abilities import KeepsLogFiles
from ...base.errors import describe_error
from ...diagnosis.metrics.store import load_series, metrics_path
from ...diagnosis.progress.activity import STEP, TOTAL, Activity, CpuMeter, find_job_pause
from ...diagnosis.progress.reader import last_written, measure_cores, read_tail, read_timed_tail
from ...diagnosis.progress.stalls import Kind, Observation
from ...diagnosis.progress.tracker import Progress, ProgressTracker
from ...logs.lines.blocks import followed
from ...specs.handles import parse_app_handle
from ..messages import ProgressRead, Told
from ..rows import RowProgress
from .thread import WatchingThread

if TYPE_CHECKING:
    from textual.message import Message

    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from ...settings.config import MetricsSettings

logger = logging.getLogger(__name__)

_INTERVAL_S = 5.0
SERVER_PAUSE_S = 10.0
"""Seconds between two jobs whose logs a server is asked for; this machine is asked at once."""
MAX_CACHED_JOBS = 500
"""Jobs whose log files are remembered."""


class WatchedJob:
    """One job that is looked at.

    Args:
        logs: the logs of its replicas.
        measure: measures how many processor cores each replica uses; empty where that is not known.
    """

    def __init__(self, logs: list[ReplicaLog], measure: Callable[[], tuple[float, ...]] = tuple) -> None:
        self.logs = followed(logs)
        self._cpu = CpuMeter(measure)
        self._tracker: ProgressTracker | None = None
        self._written = (0.0, 0)

    def look(self, settings: MetricsSettings, now: float) -> RowProgress:
        """Read the ends of its logs if anything was printed since, and return how far it is."""
        written = last_written(self.logs)
        if self._tracker is None:
            self._tracker = new_tracker(settings)
            read_timed_tail(self.logs, self._tracker)
        elif written != self._written:
            self._tracker = self._read_again(self._tracker, settings)
        self._written = written
        pause = find_job_pause(self._tracker, now, self._cpu, written[0])
        return _row(self._tracker, () if pause is None else (pause,))

    def _read_again(self, before: ProgressTracker, settings: MetricsSettings) -> ProgressTracker:
        """Read the ends of the logs; the times of earlier steps are kept, since the lines have none."""
        tracker = new_tracker(settings)
        read_tail(self.logs, tracker)
        if tracker.main is not None and before.main is not None:
            latest, kept = tracker.main.moments, before.main.moments
            if latest.last is not None and latest.last_step is not None and latest.last_step != kept.last_step:
                kept.add(latest.last, latest.last_step)
            tracker.main.moments = kept
        return tracker

    def read_end(self, settings: MetricsSettings) -> RowProgress:
        """Read the ends of its logs when it has ended."""
        tracker = new_tracker(settings)
        read_tail(self.logs, tracker)
        return _row(tracker)._replace(seconds_left=None)


def new_tracker(settings: MetricsSettings) -> ProgressTracker:
    """Make a tracker of the logs of a job that is followed."""
    return ProgressTracker(settings.denied, settings.names, settings.patterns, is_bounded=True)


def _row(tracker: ProgressTracker, observations: tuple[Observation, ...] = ()) -> RowProgress:
    return row_progress(Activity(tracker.progress(), tracker.series(), observations))


def row_progress(activity: Activity) -> RowProgress:
    """Return what the table shows of a job's activity."""
    progress, main, stall = activity.progress, activity.main, activity.observed(Kind.STALLED)
    return RowProgress(
        progress.step,
        progress.fraction,
        progress.seconds_left,
        main.name if main else "",
        main.printed if main else "",
        stall.sentence if stall else "",
        stall.seconds if stall else 0.0,
    )


class _NotDescribedError(Exception):
    """The backend of a job did not describe it."""


class ProgressWatcher(WatchingThread):
    """Looks at the jobs that are on the screen, while somebody wants to see how far they are.

    Args:
        runner: the door to the backends.
        post: hands a message to the app, from any thread.
        settings: the table ``[metrics]``.
        followed: returns what was read of a job that a screen follows, so that the table shows the same.
    """

    def __init__(
        self,
        runner: Runner,
        post: Callable[[Message], object],
        settings: MetricsSettings,
        followed: Callable[[str], Activity | None] = lambda _: None,
    ) -> None:
        super().__init__("watch-progress")
        self._followed = followed
        self._runner = runner
        self._post = post
        self._settings = settings
        self._handles: tuple[str, ...] = ()
        self._ended_handles: tuple[str, ...] = ()
        self._kept: dict[str, float] = {}
        self._noted: dict[str, str] = {}
        self._just_ended: deque[str] = deque()
        # How far jobs came that ended while the dashboard was open, or are read at their end.
        self._at_end: dict[str, RowProgress | None] = {}
        self._jobs: dict[str, WatchedJob] = {}
        self._asked_server_at = -math.inf

    def watch(self, running: Collection[str], ended: Collection[str] = ()) -> None:
        """Look at these jobs from now on, or at none."""
        chosen = tuple(running), tuple(ended)
        if chosen != (self._handles, self._ended_handles):
            self._handles, self._ended_handles = chosen
            self._wake.set()

    def read_ends(self, handles: Collection[str]) -> None:
        """Read the ends of the logs of jobs that have just ended, whatever is on the screen."""
        self._just_ended.extend(handles)
        self._wake.set()

    def run(self) -> None:
        """Look until `end`."""
        while not self._ended.is_set():
            found = {}
            while self._just_ended and not self._ended.is_set():
                handle = self._just_ended.popleft()
                self._at_end.pop(handle, None)
                self._kept.pop(handle, None)
                self._note(found, handle, self._look_at_end)
            running, ended = self._handles, self._ended_handles
            # A row that comes back is told again.
            self._kept = {handle: kept_at for handle, kept_at in self._kept.items() if handle in ended}
            for handle in (*running, *ended):
                if self._ended.is_set():
                    return
                self._note(found, handle, self.look if handle in running else self._look_at_end)
            known = {handle: progress for handle, progress in found.items() if progress is not None}
            if known:
                self._post(ProgressRead(known))
            self._wake.wait(_INTERVAL_S if running or ended else None)
            self._wake.clear()

    def _note(
        self, found: dict[str, RowProgress | None], handle: str, look: Callable[[str], RowProgress | None]
    ) -> None:
        try:
            found[handle] = look(handle)
        except _NotDescribedError:
            # The poller reports errors of the backend.
            logger.info("progress of %s", handle, exc_info=True)
        except Exception as error:
            # Report each failure once, not at every poll.
            if self._noted.get(handle) != (reason := describe_error(error)):
                self._noted[handle] = reason
                logger.warning("progress of %s", handle, exc_info=True)
                self._post(Told(f"progress of {handle}: {reason}; see the log file", failed=True))

    def look(self, handle: str) -> RowProgress | None:
        """Read how far a job is; None if that is not known."""
        if (activity := self._followed(handle)) is not None and activity.is_read:
            return row_progress(activity)
        watched = self._watched(handle)
        return watched.look(self._settings, time.time()) if watched else None

    def _look_at_end(self, handle: str) -> RowProgress | None:
        """Return how far an ended job came, if that is news: by the end of its log, or what was kept if more."""
        kept = self._look_at_kept(handle)
        if handle not in self._at_end:
            if len(self._at_end) >= MAX_CACHED_JOBS:
                self._at_end.clear()
            is_near = parse_app_handle(handle).scheduler_backend.startswith("local") or handle in self._jobs
            watched = self._watched(handle) if is_near else None
            self._at_end[handle] = watched.read_end(self._settings) if watched else None
        elif kept is None:
            return None
        ended = self._at_end[handle]
        if ended is None or ended.step is None or (kept is not None and (kept.step or 0) > ended.step):
            return kept
        return ended if ended.metric or kept is None else ended._replace(metric=kept.metric, value=kept.value)

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
        return row_progress(Activity(Progress(facts.get(STEP), facts.get(TOTAL)), series))

    def _watched(self, handle: str) -> WatchedJob | None:
        if handle in self._jobs:
            return self._jobs[handle]
        scheduler = parse_app_handle(handle).scheduler_backend
        if not isinstance(self._runner.scheduler(scheduler), KeepsLogFiles):
            return None
        if not scheduler.startswith("local"):
            if time.monotonic() - self._asked_server_at < SERVER_PAUSE_S:
                return None
            self._asked_server_at = time.monotonic()
        try:
            described = self._runner.job(handle).describe()
        except Exception as error:
            raise _NotDescribedError(handle) from error
        logs = self._runner.job(handle).replica_logs(described) if described else []
        if len(self._jobs) >= MAX_CACHED_JOBS:
            self._jobs.clear()
        if not logs:
            return None
        self._jobs[handle] = WatchedJob(logs, partial(measure_cores, self._runner, handle))
        return self._jobs[handle]
