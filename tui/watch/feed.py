"""The threads that ask the backends: one poller a backend, and one for the job that is looked at."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ...base.timeouts import CallDroppedError, LimitedCaller, NoAnswerError
from ...specs.errors import NotAllowedError
from ...specs.handles import parse_app_handle
from ..messages import FailureExplained, JobDescribed, UsageSampled
from .poller import BackendPoller, Post
from .schedule import UNWATCHED_SECONDS, tick_seconds
from .thread import JobWatchingThread

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...backends.runner import Runner
    from ...diagnosis.progress.activity import Activity
    from ...logs.source.replica_log import ReplicaLog
    from ...settings.config import Settings, WatchSettings
    from .activities import Activities
    from .progress import ProgressWatcher


logger = logging.getLogger(__name__)

USAGE_INTERVAL_S = 2.0
"""Seconds between two measurements of what replicas use."""


class JobWatcher(JobWatchingThread):
    """Describes the job that is looked at, until it is final."""

    def __init__(self, runner: Runner, post: Post, settings: WatchSettings, last_key_at: Callable[[], float]) -> None:
        super().__init__("watch-job")
        self._runner = runner
        self._post = post
        self._interval = settings.interval_seconds / 2
        self._slowest = settings.slowest_seconds
        self._last_key_at = last_key_at
        self._changed_at = time.monotonic()
        self._limit = settings.timeout_seconds
        self._callers: dict[str, LimitedCaller] = {}
        self._noted = ("", "")
        # What was posted last, as text: a scheduler may give the same object again, changed.
        self._posted = ""

    def run(self) -> None:
        """Describe until `end`."""
        delay: float | None = None
        while True:
            self._wake.wait(delay)
            # Asked after the wait: a screen may have begun to look as the time was over.
            if self._wake.is_set():
                self._wake.clear()
                # Whoever begins to look has not seen it.
                self._posted = ""
            if self._ended.is_set():
                return
            handle = self._job
            delay = None if handle is None else self.describe(handle)

    def describe(self, handle: str) -> float | None:
        """Describe once; return the seconds until the next time, or None when nothing will change."""
        # A backend that hangs holds up no job of another one.
        backend = parse_app_handle(handle).scheduler_backend
        caller = self._callers.setdefault(backend, LimitedCaller(f"describe-{backend}"))
        try:
            # An answer about this job is taken, also where it was asked for once more meanwhile.
            described, logs = caller.call(lambda: self.read(handle), self._limit, lambda: self._job != handle)
        except CallDroppedError:
            # Whoever looks at another job wakes this thread.
            return None
        except NoAnswerError as error:
            self._posted = ""
            self._post(JobDescribed(handle, None, error=f"{backend}: {error}"))
            return self._interval * 4
        except Exception as error:
            self._note(handle, error)
            self._posted = ""
            self._post(JobDescribed(handle, None, error=str(error) or type(error).__name__))
            return self._slowest if isinstance(error, NotAllowedError) else self._interval * 4
        if self._posted != (found := repr((described, logs))):
            self._posted = found
            self._changed_at = time.monotonic()
            self._post(JobDescribed(handle, described, logs))
        return None if described is None or described.has_ended else self._pause()

    def _pause(self) -> float:
        now = time.monotonic()
        return tick_seconds(
            active=True,
            quiet=now - self._changed_at,
            unwatched=now - self._last_key_at(),
            fastest=self._interval,
            slowest=self._slowest,
        )

    def _note(self, handle: str, error: Exception) -> None:
        """Write an error into the log file once, not with each of a day's tries."""
        if (noted := (handle, str(error))) != self._noted:
            self._noted = noted
            logger.warning("describe of %s: %s", handle, error, exc_info=True)

    def read(self, handle: str) -> tuple[DescribeAppResponse | None, list[ReplicaLog]]:
        """Return what a job's backend says of it, and its logs."""
        described = self._runner.job(handle).describe()
        return described, self._runner.job(handle).replica_logs(described) if described else []


class UsageWatcher(JobWatchingThread):
    """Measures what the replicas of a job use, while somebody looks."""

    def __init__(self, runner: Runner, post: Post, limit: float) -> None:
        super().__init__("watch-usage")
        self._runner = runner
        self._post = post
        self._limit = limit
        self._caller = LimitedCaller("measure-usage")

    def run(self) -> None:
        """Measure until `end`."""
        while not self._ended.is_set():
            handle = self._job
            if handle is not None:
                self._measure(handle)
            self._wake.wait(None if handle is None else USAGE_INTERVAL_S)
            self._wake.clear()

    def _measure(self, handle: str) -> None:
        try:
            usages = self._caller.call(
                lambda: self._runner.job(handle).usage(), self._limit, lambda: self._job != handle
            )
        except Exception as error:
            logger.debug("usage of %s: %s", handle, error)
            return
        if usages and handle == self._job:
            self._post(UsageSampled(handle, usages))


class Feed:
    """All threads of one app.

    Args:
        runner: the door to the backends.
        post: hands a message to the app, from any thread.
        settings: all settings.
        now: the clock, in seconds since the epoch.
    """

    def __init__(self, runner: Runner, post: Post, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self._runner = runner
        self._post = post
        self._settings = settings
        self._now = now
        self._pollers: dict[str, BackendPoller] = {}
        self._watcher = JobWatcher(runner, post, settings.watch, lambda: self._last_key_at)
        self._usage_watcher = UsageWatcher(runner, post, settings.watch.timeout_seconds)
        self._progress_watcher: ProgressWatcher | None = None
        self._activities: Activities | None = None
        self._last_key_at = time.monotonic()
        self._ended = threading.Event()

    def start(self, schedulers: list[str]) -> None:
        """Start a poller for each of these schedulers, and the watcher."""
        self._watcher.start()
        self._usage_watcher.start()
        for name in schedulers:
            self._pollers[name] = BackendPoller(
                self._runner, name, self._post, self._settings.watch, lambda: self._last_key_at
            )
            self._pollers[name].start()

    def touch(self) -> None:
        """Say that a person pressed a key: who comes back sees what is, not what was."""
        now = time.monotonic()
        away, self._last_key_at = now - self._last_key_at, now
        if away >= UNWATCHED_SECONDS:
            self.refresh()

    @property
    def last_key_at(self) -> float:
        """When a person last pressed a key (`time.monotonic`)."""
        return self._last_key_at

    @property
    def seconds_without_keys(self) -> float:
        """How long ago the last key was pressed."""
        return time.monotonic() - self._last_key_at

    def refresh(self, handle: str | None = None) -> None:
        """Ask every backend now, or the one that has a job."""
        if handle is None:
            for poller in self._pollers.values():
                poller.refresh()
            self._watcher.refresh()
            return
        poller = self._pollers.get(parse_app_handle(handle).scheduler_backend)
        if poller is not None:
            poller.refresh()

    def set_all_users(self, schedulers: Collection[str], all_users: bool) -> None:
        """List the jobs of every user of these backends from now on, or this user's alone."""
        for name in schedulers:
            if name in self._pollers:
                self._pollers[name].set_all_users(all_users)

    def watch(self, handle: str | None) -> None:
        """Describe this job from now on."""
        self._watcher.watch(handle)

    def watch_usage(self, handle: str | None) -> None:
        """Measure what this job's replicas use from now on; None measures nothing."""
        self._usage_watcher.watch(handle)

    def unwatch_usage(self, handle: str) -> None:
        """Stop measuring this job; another one that is watched by now is still measured."""
        self._usage_watcher.unwatch(handle)

    def watch_progress(self, running: Collection[str], ended: Collection[str] = ()) -> None:
        """Read how far these jobs are or came from now on, or nobody; the answers are `ProgressRead`."""
        if self._progress_watcher is not None or running or ended:
            self._progress().watch(running, ended)

    def read_ends(self, handles: Collection[str]) -> None:
        """Read how far jobs came that have just ended; the answers are `ProgressRead`."""
        if handles:
            self._progress().read_ends(handles)

    def _progress(self) -> ProgressWatcher:
        """Return the thread that reads how far jobs are, which is started when it is first needed."""
        if self._progress_watcher is None:
            from .progress import ProgressWatcher

            self._progress_watcher = ProgressWatcher(self._runner, self._post, self._settings.metrics, self.activity)
            self._progress_watcher.start()
        return self._progress_watcher

    @property
    def activities(self) -> Activities:
        """The threads that read what jobs do, loaded when they are first needed."""
        if self._activities is None:
            from .activities import Activities

            self._activities = Activities(self._runner, self._post, self._settings.metrics, self._now)
        return self._activities

    def activity(self, handle: str) -> Activity | None:
        """Return the last activity that was read of a job; None if no screen follows it."""
        return self._activities.latest(handle) if self._activities is not None else None

    def describe(self, handle: str) -> tuple[DescribeAppResponse | None, list[ReplicaLog]]:
        """Ask a job's backend for its description and its logs; it may take long."""
        return self._watcher.read(handle)

    def explain(
        self, handle: str, described: DescribeAppResponse | None = None, logs: list[ReplicaLog] | None = None
    ) -> None:
        """Find out why a job failed; post a `FailureExplained`.

        Args:
            handle: the job.
            described: its description; its backend is asked if None.
            logs: its logs, if it was described.
        """

        def work() -> None:
            from ...diagnosis.failure.explain import explain_job

            patterns = self._settings.logs.error_patterns
            found, its_logs = (described, logs or []) if described else self._watcher.read(handle)
            if found is not None:
                stopped = self._ended.is_set
                self._post(
                    FailureExplained(
                        handle,
                        explain_job(self._runner, handle, found, its_logs, extra_patterns=patterns, stopped=stopped),
                    )
                )

        threading.Thread(target=work, name="explain-failure", daemon=True).start()

    def end(self) -> None:
        """End all threads; none is waited for."""
        self._ended.set()
        self._watcher.end()
        self._usage_watcher.end()
        if self._progress_watcher is not None:
            self._progress_watcher.end()
        if self._activities is not None:
            self._activities.end()
        for poller in self._pollers.values():
            poller.end()
