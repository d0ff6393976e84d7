"""Every job that is known of: those of the queue, and what accounting has of those that have left it."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ...specs import BackendUnavailableError, SchedulerError, is_terminal
from ...specs.files import cache_folder
from .accounting import history_text, jobs_by_id, parse_history
from .commands import ask, clean_environment
from .jobs import App, Job, group
from .queue import parse_queue, queue_command
from .shared_answer import ActionTimes, Intervals, SharedAnswer

logger = logging.getLogger(__name__)

LOST = "LOST"
"""The state of a job that accounting believes to be alive and that the controller does not know."""
HISTORY_DAYS = 14.0
_HISTORY_S = 900.0
# A job that neither the queue nor accounting had is asked for again after so many seconds.
_UNKNOWN_S = 10.0


class KnownJobs:
    """This user's jobs, asked for as seldom as `SharedAnswer` allows; others are asked for by their id.

    Args:
        intervals: how often the queue may be asked.
        history_days: how far back accounting is asked, in days.
    """

    def __init__(self, intervals: Intervals, history_days: float = HISTORY_DAYS) -> None:
        folder = _answers_folder()
        self.actions = ActionTimes(folder / "acted")
        self.queue_answer = SharedAnswer(folder / "queue", lambda: ask(queue_command()), intervals, self.actions)
        self._history = SharedAnswer(
            folder / "history", lambda: history_text(history_days), Intervals(_HISTORY_S, _HISTORY_S)
        )
        self._lock = threading.Lock()
        self._queued: tuple[float, dict[str, Job]] = (0.0, {})
        self._accounted: tuple[float, dict[str, Job]] = (0.0, {})
        self._left: dict[str, Job] = {}
        self._grouped: tuple[tuple[float, float, int], dict[str, App]] = ((0.0, 0.0, 0), {})
        self._changes = 0
        self._others: dict[str, tuple[float, App | None]] = {}

    def apps(self) -> dict[str, App]:
        """Return every app by its id.

        Raises:
            BackendUnavailableError: the controller cannot be reached.
        """
        with self._lock:
            queued = self._from_queue()
            accounted = self._from_history()
            self._look_up_left(queued, accounted)
            version = (self._queued[0], self._accounted[0], self._changes)
            if self._grouped[0] != version:
                self._grouped = version, group({**accounted, **self._left, **queued}.values())
            return self._grouped[1]

    def find(self, app_id: str) -> App | None:
        """Return an app, whoever's it is; None where there is none. An array's task is part of its array.

        Raises:
            BackendUnavailableError: the controller cannot be reached.
        """
        job_id = app_id.partition("_")[0]
        known = self.apps().get(job_id)
        if known is not None:
            return known
        now = time.monotonic()
        with self._lock:
            at, app = self._others.get(job_id, (0.0, None))
            if at and now - at < _UNKNOWN_S:
                return app
        app = _ask_for(job_id)
        with self._lock:
            self._others[job_id] = now, app
        return app

    def _from_queue(self) -> dict[str, Job]:
        answer = self.queue_answer.get()
        asked_at, jobs = self._queued
        if answer.asked_at != asked_at:
            now_there = {job.job_id: job for job in parse_queue(answer.text)}
            for job_id, job in jobs.items():
                if job_id not in now_there:
                    self._left[job_id] = job
            jobs = now_there
            self._left = {job_id: job for job_id, job in self._left.items() if job_id not in jobs}
            self._queued = answer.asked_at, jobs
        return jobs

    def _from_history(self) -> dict[str, Job]:
        try:
            answer = self._history.get()
        except (BackendUnavailableError, SchedulerError) as error:
            logger.warning("accounting has no history: %s", error)
            return self._accounted[1]
        asked_at, jobs = self._accounted
        if answer.asked_at != asked_at:
            jobs = {job.job_id: job for job in parse_history(answer.text)}
            self._accounted = answer.asked_at, jobs
        return jobs

    def _look_up_left(self, queued: dict[str, Job], accounted: dict[str, Job]) -> None:
        """Ask accounting how those ended that are no longer in the queue, all in one question."""
        open_ids = [
            job.job_id
            for job in {**accounted, **self._left}.values()
            if job.job_id not in queued and not is_terminal(job.app_state) and job.state != LOST
        ]
        if not open_ids:
            return
        self._changes += 1
        try:
            told = {job.job_id: job for job in jobs_by_id(open_ids)}
        except (BackendUnavailableError, SchedulerError) as error:
            logger.warning("accounting does not say how jobs ended: %s", error)
            return
        for job_id in open_ids:
            seen = self._left.get(job_id)
            job = told.get(job_id) or seen or accounted[job_id]
            if seen is not None:
                job = _with_paths(job, seen)
            self._left[job_id] = job if is_terminal(job.app_state) else replace(job, state=LOST)


def _with_paths(job: Job, seen: Job) -> Job:
    """Return what accounting says of a job, with what only the queue said."""
    return replace(
        job,
        command=job.command or seen.command,
        comment=job.comment or seen.comment,
        stdout=job.stdout or seen.stdout,
        stderr=job.stderr or seen.stderr,
        ntasks=job.ntasks or seen.ntasks,
        restarts=seen.restarts if job.restarts is None else job.restarts,
    )


def _ask_for(job_id: str) -> App | None:
    """Ask for one job by its id: the controller first, then accounting."""
    try:
        jobs: Iterable[Job] = parse_queue(ask(queue_command(job_id)))
    except BackendUnavailableError:
        raise
    except SchedulerError:
        jobs = []  # Invalid job id specified
    found = group(jobs).get(job_id)
    if found is not None:
        return found
    try:
        return group(jobs_by_id([job_id])).get(job_id)
    except SchedulerError as error:
        logger.warning("accounting does not know %s: %s", job_id, error)
        return None


def _answers_folder() -> Path:
    """Return the folder of the answers of this host and cluster: homes are shared among hosts."""
    settings = clean_environment().get("SLURM_CONF", "")
    cluster = hashlib.sha256(f"{settings}\0{os.getuid()}".encode()).hexdigest()[:12]
    return cache_folder() / "slurm" / f"{platform.node() or 'localhost'}-{cluster}"
