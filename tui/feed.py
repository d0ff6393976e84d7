"""The threads that ask the backends: one poller a backend, and one for the job that is looked at."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from ..specs import is_terminal, parse_app_handle
from .job_rows import JobRow, row_of
from .messages import BackendChecked, BackendFailed, FailureExplained, JobDescribed, JobsChanged

if TYPE_CHECKING:
    from ..backends.logs.replica_log import ReplicaLog
    from ..backends.runner import Runner

logger = logging.getLogger(__name__)

Post = Callable[[Message], object]

# Seconds. A backend that fails is asked again after 1, 2, 4 ... up to a minute.
LONGEST_BACK_OFF = 60.0
# A table of finished jobs changes only when somebody launches elsewhere.
IDLE_FACTOR = 3.0


class BackendPoller(threading.Thread):
    """Asks one backend for all its jobs, again and again, and posts what changed.

    Args:
        runner: the door to the backend.
        scheduler: its name.
        post: hands a message to the app; called from this thread.
        interval: seconds between two questions while a job is active.
    """

    def __init__(self, runner: Runner, scheduler: str, post: Post, interval: float = 1.0) -> None:
        super().__init__(name=f"poll-{scheduler}", daemon=True)
        self._runner = runner
        self._scheduler = scheduler
        self._post = post
        self._interval = interval
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._sent: dict[str, JobRow] = {}
        self._failures = 0
        self._last_answer = time.time()

    def refresh(self) -> None:
        """Ask now."""
        self._wake.set()

    def end(self) -> None:
        """End the thread; one question under way is not waited for."""
        self._ended.set()
        self._wake.set()

    def run(self) -> None:
        """Ask until `end`."""
        self._check()
        self._prune()
        while not self._ended.is_set():
            delay = self._tick()
            self._wake.wait(delay)
            self._wake.clear()

    def _check(self) -> None:
        try:
            findings = self._runner.check(self._scheduler)
        except Exception as error:
            logger.exception("check of %s", self._scheduler)
            self._fail(error, 1.0)
            return
        self._send(BackendChecked(self._scheduler, findings))

    def _prune(self) -> None:
        try:
            self._runner.prune(self._scheduler)
        except Exception:
            logger.exception("prune of %s", self._scheduler)

    def _tick(self) -> float:
        """Ask once; return the seconds until the next time."""
        try:
            rows = self._list()
        except Exception as error:
            delay = min(LONGEST_BACK_OFF, 2.0**self._failures) * random.uniform(0.8, 1.2)  # noqa: S311
            self._failures += 1
            logger.warning("%s did not answer: %s", self._scheduler, error, exc_info=True)
            self._fail(error, delay)
            return delay
        recovered = self._failures > 0
        self._failures = 0
        self._last_answer = time.time()
        changed = {handle: row for handle, row in rows.items() if self._sent.get(handle) != row}
        removed = self._sent.keys() - rows.keys()
        first = not self._sent and not rows
        if changed or removed or recovered or first:
            self._send(JobsChanged(self._scheduler, changed, set(removed)))
        self._sent = rows
        active = any(not row.is_final for row in rows.values())
        return self._interval if active else self._interval * IDLE_FACTOR

    def _list(self) -> dict[str, JobRow]:
        apps = self._runner.list(self._scheduler)
        records = {record.handle: record for record in self._runner.journal.records()}
        rows: dict[str, JobRow] = {}
        for app in apps:
            record = records.get(app.app_handle)
            rows[app.app_handle] = row_of(app, record)
            if record is not None and is_terminal(app.state) and record.state != app.state.name:
                self._runner.remember(app.app_handle, app.state, app.msg)
        return rows

    def _fail(self, error: Exception, delay: float) -> None:
        reason = str(error) or type(error).__name__
        self._send(BackendFailed(self._scheduler, reason, self._last_answer, time.time() + delay))

    def _send(self, message: Message) -> None:
        if not self._ended.is_set():
            self._post(message)


class JobWatcher(threading.Thread):
    """Describes the job that is looked at, until it is final."""

    def __init__(self, runner: Runner, post: Post, interval: float = 0.5) -> None:
        super().__init__(name="watch-job", daemon=True)
        self._runner = runner
        self._post = post
        self._interval = interval
        self._handle: str | None = None
        self._wake = threading.Event()
        self._ended = threading.Event()

    def watch(self, handle: str | None) -> None:
        """Look at this job from now on, or at none."""
        self._handle = handle
        self._wake.set()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self._wake.set()

    def run(self) -> None:
        """Describe until `end`."""
        delay: float | None = None
        while True:
            self._wake.wait(delay)
            self._wake.clear()
            if self._ended.is_set():
                return
            handle = self._handle
            delay = None if handle is None else self._describe(handle)

    def _describe(self, handle: str) -> float | None:
        """Describe once; return the seconds until the next time, or None when nothing will change."""
        from .job_logs import replica_logs

        try:
            described = self._runner.describe(handle)
            logs = replica_logs(self._runner, handle, described) if described else []
        except Exception as error:
            logger.warning("describe of %s: %s", handle, error, exc_info=True)
            self._post(JobDescribed(handle, None, error=str(error) or type(error).__name__))
            return self._interval * 4
        self._post(JobDescribed(handle, described, logs))
        return None if described is None or described.has_ended else self._interval


class Feed:
    """All threads of one app.

    Args:
        runner: the door to the backends.
        post: hands a message to the app, from any thread.
        interval: seconds between two questions to a backend with active jobs.
    """

    def __init__(self, runner: Runner, post: Post, interval: float = 1.0) -> None:
        self._runner = runner
        self._post = post
        self._interval = interval
        self._pollers: dict[str, BackendPoller] = {}
        self._watcher = JobWatcher(runner, post, interval / 2)
        self._ended = threading.Event()

    def start(self, schedulers: list[str]) -> None:
        """Start a poller for each of these schedulers, and the watcher."""
        self._watcher.start()
        for name in schedulers:
            self._pollers[name] = BackendPoller(self._runner, name, self._post, self._interval)
            self._pollers[name].start()

    def refresh(self, handle: str | None = None) -> None:
        """Ask every backend now, or the one that has a job."""
        if handle is None:
            for poller in self._pollers.values():
                poller.refresh()
            return
        poller = self._pollers.get(parse_app_handle(handle).scheduler_backend)
        if poller is not None:
            poller.refresh()

    def watch(self, handle: str | None) -> None:
        """Describe this job from now on."""
        self._watcher.watch(handle)

    def explain(self, handle: str, logs: list[ReplicaLog], first_failed: int, error_patterns: Sequence[str]) -> None:
        """Read the logs of a failed job for its cause; the answer is a `FailureExplained`."""

        def work() -> None:
            from ..backends.logs.failure import explain_failure

            try:
                failure = explain_failure(logs, first_failed, extra_patterns=error_patterns, stopped=self._ended.is_set)
            except Exception:
                logger.exception("the logs of %s cannot be read for its cause", handle)
                return
            self._post(FailureExplained(handle, failure))

        threading.Thread(target=work, name="explain-failure", daemon=True).start()

    def end(self) -> None:
        """End all threads; none is waited for."""
        self._ended.set()
        self._watcher.end()
        for poller in self._pollers.values():
            poller.end()
