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
from ...diagnosis.progress.activity import STEP, TOTAL, main_series
from ...diagnosis.progress.moments import Moments
from ...diagnosis.progress.reader import last_written, measure_cores, read_tail, read_timed_tail
from ...diagnosis.progress.stalls import Kind, Observation, find_pause
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
# Interval between CPU measurements of a job that seems stalled (s).
_MEASURE_AGAIN_S = 30.0


class WatchedJob:
    """One job that is looked at.

    Args:
        logs: the logs of its replicas.
        measure: measures how many processor cores each replica uses; empty where that is not known.
    """

    def __init__(self, logs: list[ReplicaLog], measure: Callable[[], tuple[float, ...]] = tuple) -> None:
        self.logs = followed(logs)
        self._measure = measure
        self._measured_at = -math.inf
        self._cores: tuple[float, ...] = ()
        self._moments = Moments()
        self._tracker: ProgressTracker | None = None
        self._written = (0.0, 0)

    def look(self, settings: MetricsSettings, now: float) -> RowProgress:
        """Read the ends of its logs, if anything was printed since the last time, and say how far it is."""
        written = last_written(self.logs)
        printed_at = written[0]
        if self._tracker is None:
            self._tracker = _new_tracker(settings)
            read_timed_tail(self.logs, self._tracker)
            self._moments = self._tracker.main.moments if self._tracker.main else self._moments
        elif written != self._written:
            self._tracker = _new_tracker(settings)
            read_tail(self.logs, self._tracker)
        self._written = written
        tracker, moments = self._tracker, self._moments
        progress = tracker.progress()
        if progress.step is not None and progress.step != moments.last_step:
            moments.add(printed_at, progress.step)
        left, seconds = progress.seconds_left, moments.step_seconds()
        if seconds and progress.fraction is not None and progress.total and progress.step is not None:
            left = max(0.0, progress.total - progress.step) * seconds
        pause = self._find_stall(printed_at, now)
        if pause is not None:
            return _row(tracker)._replace(seconds_left=left, stalled=pause.sentence, stalled_seconds=pause.seconds)
        return _row(tracker)._replace(seconds_left=left)

    def _find_stall(self, printed_at: float, now: float) -> Observation | None:
        """Return the pause if the job is stalled; its CPU is measured before that is believed."""
        pause = self._pause(printed_at, now, ())
        if pause is None or pause.kind is not Kind.STALLED:
            return None
        if now - self._measured_at > _MEASURE_AGAIN_S:
            self._measured_at, self._cores = now, self._measure()
        pause = self._pause(printed_at, now, self._cores)
        return pause if pause is not None and pause.kind is Kind.STALLED else None

    def _pause(self, printed_at: float, now: float, cores: tuple[float, ...]) -> Observation | None:
        is_excused = self._tracker is not None and self._tracker.is_excused
        moments = self._moments
        return find_pause(moments.pauses(), moments.last, printed_at, now, is_excused=is_excused, cores=cores)

    def read_end(self, settings: MetricsSettings) -> RowProgress:
        """Read the ends of its logs when it has ended."""
        tracker = _new_tracker(settings)
        read_tail(self.logs, tracker)
        return _row(tracker)


def _new_tracker(settings: MetricsSettings) -> ProgressTracker:
    return ProgressTracker(settings.denied, settings.names, settings.patterns, is_bounded=True)


def _row(tracker: ProgressTracker) -> RowProgress:
    """Return the last step and the last main value."""
    progress, main = tracker.progress(), main_series(tracker.series())
    name, printed = (main.name, main.printed) if main else ("", "")
    return RowProgress(progress.step, progress.fraction, None, name, printed)


class _NotDescribedError(Exception):
    """The backend of a job did not describe it."""


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
        main = main_series(series)
        progress = Progress(facts.get(STEP), facts.get(TOTAL))
        return RowProgress(
            progress.step, progress.fraction, None, main.name if main else "", main.printed if main else ""
        )

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
