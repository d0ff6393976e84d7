"""Watching the local jobs of a user on this host for their first step and for stalls, all in one process."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.files import private_folder, read_file, state_folder, write_private
from ..diagnosis.progress.activity import job_place
from ..diagnosis.progress.reader import ActivityReader, measure_cores
from ..diagnosis.progress.stalls import Kind, Observation
from ..diagnosis.progress.tracker import ProgressTracker
from ..diagnosis.stacks.take import find_stalled
from ..settings.helper_request import Happened, helper_request, read_request
from ..settings.make_runner import make_runner
from ..specs.status import AppState
from .channels import used_variables
from .helper import start_helper
from .message import FIRST_STEP, STALL

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import Settings

logger = logging.getLogger(__name__)

_POLL_INTERVAL_S = 2.0


def watch(settings: Settings, handle: str) -> None:
    """Add a job to the watched ones, and watch them all unless another process does; return when none is left."""
    folder = private_folder(state_folder() / "notify" / f"watched-{os.uname().nodename}")
    # The process that watches may have been started for another job, with another environment.
    environ = {name: os.environ[name] for name in used_variables(settings.notify) if name in os.environ}
    request = {"environ": environ, "request": helper_request(settings, [Happened(handle, "start")])}
    path = folder / hashlib.sha256(handle.encode()).hexdigest()[:32]
    write_private(path, json.dumps(request).encode(), sync=False)
    # A job may be added between the last look into the folder and the release of the lock.
    while any(folder.iterdir()):
        with _locked(folder.with_suffix(".lock")) as is_ours:
            if not is_ours:
                return
            _watch_folder(folder, settings)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Lock a file; yield False if another process has locked it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _watch_folder(folder: Path, settings: Settings) -> None:
    jobs: dict[Path, _WatchedJob] = {}
    with make_runner(settings) as runner:
        while True:
            for path in set(folder.iterdir()) - set(jobs):
                try:
                    jobs[path] = _WatchedJob(read_file(path))
                except (OSError, ValueError):
                    logger.exception("%s is not a request", path)
                    path.unlink(missing_ok=True)
            if not jobs:
                return
            for path, job in list(jobs.items()):
                try:
                    is_done = job.poll(runner)
                except Exception:
                    logger.exception("%s is no longer watched", job.handle)
                    is_done = True
                if is_done:
                    job.close()
                    del jobs[path]
                    path.unlink(missing_ok=True)
            time.sleep(_POLL_INTERVAL_S)


class _WatchedJob:
    """One job; its events are sent by processes of their own, so that a slow server delays no other job."""

    def __init__(self, data: bytes) -> None:
        request = json.loads(data)
        self.settings, (happened,) = read_request(request["request"])
        self.handle = happened.handle
        self._environ: Mapping[str, str] = request["environ"]
        self._events = {event for event in (STALL, FIRST_STEP) if event in self.settings.notify.events}
        self._reader: ActivityReader | None = None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def poll(self, runner: Runner) -> bool:
        """Look at the job; return whether it has ended or all its events were sent."""
        described = runner.job(self.handle).describe()
        if described is None or described.has_ended:
            return True
        if self._reader is None and described.state is AppState.RUNNING:
            logs = runner.job(self.handle).replica_logs(described)
            metrics = self.settings.metrics
            self._reader = ActivityReader(
                self.handle,
                logs,
                partial(job_place, runner, self.handle, described),
                lambda: None,
                ProgressTracker(metrics.denied, metrics.names, metrics.patterns, is_bounded=True),
                measure=partial(measure_cores, runner, self.handle),
            )
            self._reader.start()
        if self._reader is not None:
            self._reader.acknowledge()
            for event, sentence in self._news(runner, self._reader).items():
                self._events.discard(event)
                start_helper(self.settings, [Happened(self.handle, event, sentence)], self._environ)
        return not self._events

    def _news(self, runner: Runner, reader: ActivityReader) -> dict[str, str]:
        """Return what happened since the last poll, as sentences by event."""
        news = {}
        progress = reader.latest.progress
        if FIRST_STEP in self._events and progress.step:
            total = f" of {progress.total:,.0f}" if progress.total else ""
            news[FIRST_STEP] = f"step {progress.step:,.0f}{total}"
        if STALL in self._events:
            stall = reader.latest.observed(Kind.STALLED)
            if stall is not None:
                news[STALL] = self._describe_stall(runner, stall)
        return news

    def _describe_stall(self, runner: Runner, stall: Observation) -> str:
        """Describe a stall as the Job screen does: the pause, and where the ranks wait."""
        since = stall.since if math.isfinite(stall.since) else time.time()
        found = find_stalled(runner, self.handle, since, may_take=self.settings.watch.stacks_of_stalled)
        return f"{stall.sentence}; {found[1].sentence}" if found else stall.sentence
