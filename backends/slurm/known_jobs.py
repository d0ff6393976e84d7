"""All known jobs: those of the queue, and those that have left it, from accounting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from cachetools import TTLCache

from ...base.timeouts import AwaitedCall
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.status import is_terminal
from ..types import Finding
from .accounting import NO_ACCOUNTING, Accounting, NoAccountingError, parse_history
from .client import Client
from .commands import CommandError
from .jobs import GONE, LOST, App, Job, fill, group
from .queue import has_same_states, parse_queue, queue_text
from .shared_answer import ActionTimes, Answered, Intervals, SharedAnswer, answers_folder
from .waiting import clock

HISTORY_DAYS = 14.0
_DAY_S = 86400.0
# Accounting is asked soon after a job has left the queue, and again as long as it may lag behind (s).
_HISTORY = Intervals(usual=900.0, quick=900.0, least=2.0)
_LAG_S = 60.0
# The queue is shown without the answer of accounting if that takes longer (s).
_HISTORY_WAIT_S = 6.0
# Ask accounting if two answers of the queue are further apart (s): with a low MinJobAge jobs may come and go unseen.
_UNSEEN_S = 60.0
# A job that neither the queue nor accounting had is asked for again after this time (s).
_UNKNOWN_S = 10.0
MAX_LEFT = 10_000
"""The most jobs that are remembered after they have left the queue."""


class KnownJobs:
    """The jobs of this user, or of all, asked for as seldom as `SharedAnswer` allows; others are asked for by their id.

    Args:
        client: asks for single jobs.
        accounting: knows the jobs that have left the queue.
        intervals: how often the queue may be asked.
        history_days: how far back accounting is asked, in days.
        all_users: whether the queue of every user is asked for; accounting is asked for this user's in any case.
    """

    def __init__(
        self,
        client: Client,
        accounting: Accounting,
        intervals: Intervals,
        history_days: float,
        *,
        all_users: bool,
    ) -> None:
        folder = answers_folder()
        self._client, self._accounting = client, accounting
        self.actions, self._departures = ActionTimes(folder / "acted"), ActionTimes(folder / "left")
        self._queue_answer = SharedAnswer(
            folder / ("queue-of-all" if all_users else "queue"),
            lambda: queue_text(all_users=all_users),
            intervals,
            self.actions,
            has_same_states,
        )
        self._history = SharedAnswer(
            folder / "history", lambda: accounting.history(history_days), _HISTORY, self._departures
        )
        self._history_answer = Answered()
        self._history_call: AwaitedCall[Answered] | None = None
        self._is_history_late = False
        self._lock = threading.Lock()
        # The jobs of the last answers, with the times of these.
        self._queued: tuple[float, dict[str, Job]] = (0.0, {})
        self._accounted: tuple[float, dict[str, Job]] = (0.0, {})
        self._records: dict[str, Job] = {}
        # The last records of jobs that have left the queue.
        self._left: TTLCache[str, Job] = TTLCache(MAX_LEFT, history_days * _DAY_S)
        self._grouped: tuple[tuple[float, float], dict[str, App]] = ((0.0, 0.0), {})

    def apps(self) -> dict[str, App]:
        """Return every app by its id.

        Raises:
            BackendUnavailableError: the controller cannot be reached.
        """
        with self._lock:
            self._update_queue()
            self._update_history()
            return self._group()

    def find(self, job_id: str) -> App | None:
        """Return an app of any user, None if unknown. The raw id of an array task returns that task only.

        Raises:
            BackendUnavailableError: the controller cannot be reached, and the app is not known to have ended.
        """
        try:
            known = self.apps().get(job_id)
        except BackendUnavailableError:
            with self._lock:
                self._update_history()
                known = self._group().get(job_id)
            if known is None or not is_terminal(known.state):
                raise
        if known is None:
            return self._ask_for(job_id)
        if known.first.state == LOST:
            # Accounting may lag behind the queue.
            with suppress(SchedulerError):
                found = self._ask_for(job_id)
                if found is not None and is_terminal(found.state):
                    return found
        return known

    def find_queued(self, job_id: str) -> App | None:
        """Return the part of an app that is in the queue; raise as `apps` does."""
        with self._lock:
            self._update_queue()
            jobs = [job for job in self._queued[1].values() if job_id in (job.app_id, job.job_id)]
        return _with_job(group(jobs), job_id)

    def accounted(self) -> Mapping[str, Job]:
        """Return accounting's records of the last `apps`, by raw job id."""
        return self._accounted[1]

    def missing_jobs(self) -> str:
        """Return why `apps` may lack jobs that have left the queue; empty if accounting answers."""
        answer = self._history_answer
        error = f"no answer within {_HISTORY_WAIT_S:g} s, still waiting" if self._is_history_late else answer.error
        if not error:
            return ""
        since = f" since {clock(answer.answered_at)}" if answer.answered_at else ""
        return f"jobs that have left the queue{since} may be missing: accounting does not answer: {error}"

    def check_accounting(self) -> Iterator[Finding]:
        """Yield the faults of accounting."""
        with self._lock:
            self._update_history()
        if self._history_answer.text == NO_ACCOUNTING:
            what = f"{NO_ACCOUNTING}: jobs are forgotten some minutes after their end"
            yield Finding("warning", what, "ask an administrator for slurmdbd")
        elif missing := self.missing_jobs():
            yield Finding("warning", missing, "it is asked again; `sacctmgr show cluster` says whether it answers")

    def _update_queue(self) -> None:
        kept = self._queue_answer.kept()
        if not self._queued[0] and time.time() - kept.answered_at < _DAY_S:
            # Jobs of the last answer of another session may have left the queue since.
            self._take_queue(kept)
        self._take_queue(self._queue_answer.get())

    def _take_queue(self, answer: Answered) -> None:
        asked_at, before = self._queued
        if answer.answered_at == asked_at:
            return
        self._records = parse_queue(answer.text, self._records)
        jobs = {job.job_id: job for job in self._records.values()}
        _keep_tasks(jobs, before)
        left = {
            job_id: job if is_terminal(job.app_state) else replace(job, finished_at=answer.answered_at)
            for job_id, job in before.items()
            if job_id not in jobs
        }
        self._left.update(left)
        for job_id in self._left.keys() & jobs.keys():
            del self._left[job_id]
        is_unknown = any(
            not is_terminal(job.app_state) and answer.answered_at - (job.finished_at or 0.0) < _LAG_S
            for job in self._left.values()
        )
        if left or is_unknown or answer.answered_at - asked_at > _UNSEEN_S:
            self._departures.note()
        self._queued = answer.answered_at, jobs

    def _update_history(self) -> None:
        """Take accounting's answer, or the previous one while a query takes longer than `_HISTORY_WAIT_S`."""
        wait_s = 0.0
        if self._history_call is None:
            if not self._history_answer.asked_at:
                self._history_answer = self._history.kept()
            wait_s, self._history_call = _HISTORY_WAIT_S, AwaitedCall(self._history.latest, "ask-accounting")
        self._is_history_late = not self._history_call.wait(wait_s)
        if not self._is_history_late:
            self._history_answer, self._history_call = self._history_call.result(), None
        answer = self._history_answer
        if answer.answered_at != self._accounted[0]:
            self._accounted = answer.answered_at, {job.job_id: job for job in parse_history(answer.text)}

    def _group(self) -> dict[str, App]:
        """Return the apps of the last answers."""
        version = self._queued[0], self._accounted[0]
        if self._grouped[0] != version:
            accounted, jobs = self._accounted[1], dict(self._queued[1])
            for job_id in {*accounted, *self._left} - jobs.keys():
                if job := self._departed(job_id):
                    jobs[job_id] = job
            _keep_tasks(jobs, accounted)
            self._grouped = version, group(jobs.values(), self._grouped[1])
        return self._grouped[1]

    def _departed(self, job_id: str) -> Job | None:
        """Return a job that is not in the queue, by its records of accounting and of the last queue it was in."""
        record, seen = self._accounted[1].get(job_id), self._left.get(job_id)
        if seen is None:
            # Accounting knows a new job before the next answer of the queue has it.
            if record is None or is_terminal(record.app_state) or self._accounted[0] > self._queued[0]:
                return record
            return replace(record, state=LOST)
        if record is not None and is_terminal(record.app_state) and not seen.accounted:
            names = ("command", "comment", "stdout", "stderr", "restarts")
            seen = self._left[job_id] = fill(record, seen, *names)
        if is_terminal(seen.app_state):
            return seen
        return replace(seen, state=GONE if self._history_answer.text == NO_ACCOUNTING else LOST)

    def _ask_for(self, job_id: str) -> App | None:
        """Ask for one job by its id: the controller first, then accounting."""
        with suppress(CommandError):  # Invalid job id specified
            text = queue_text(job_id, ask=partial(self._client.ask, keep_s=_UNKNOWN_S))
            if found := _with_job(group(parse_queue(text).values()), job_id):
                return found
        try:
            return _with_job(group(self._accounting.job(job_id, _UNKNOWN_S)), job_id)
        except NoAccountingError as error:
            raise SchedulerError(
                f"{job_id} is not in the queue, and {NO_ACCOUNTING}: jobs are forgotten some minutes after their end"
            ) from error
        except SchedulerError as error:
            raise SchedulerError(f"{job_id} is not in the queue, and accounting does not answer: {error}") from error


def _keep_tasks(jobs: dict[str, Job], before: Mapping[str, Job]) -> None:
    """Give the tasks of arrays that ended without a start their numbers: squeue no longer prints them."""
    for job_id, seen in before.items():
        job = jobs.get(job_id) if seen.array_id else None
        if job is not None and not job.array_id and is_terminal(job.app_state):
            jobs[job_id] = replace(job, array_id=seen.array_id, tasks=seen.tasks)


def _with_job(apps: Mapping[str, App], job_id: str) -> App | None:
    """Return the app with an id, or the array task with a raw id."""
    tasks = (App(app.app_id, [job]) for app in apps.values() for job in app.jobs if job.job_id == job_id)
    return apps.get(job_id) or next(tasks, None)
