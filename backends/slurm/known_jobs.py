"""All known jobs: those of the queue, and those that have left it, from accounting."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...base.backoff import Backoff
from ...base.files import cache_folder
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.status import is_terminal
from ..types import Finding
from .accounting import (
    NO_ACCOUNTING,
    NoAccountingError,
    Step,
    earlier_runs,
    history_text,
    job_with_steps,
    jobs_by_id,
    parse_history,
)
from .chains import may_have_dependency
from .commands import Asking, ask, clean_environment
from .jobs import GONE, LOST, App, Job, group
from .queue import has_same_states, parse_queue, queue_text
from .shared_answer import ActionTimes, Answered, Intervals, SharedAnswer
from .waiting import clock

logger = logging.getLogger(__name__)

HISTORY_DAYS = 14.0
# Seconds between two queries of all jobs in accounting: usually, at least, and after a failure.
_HISTORY_S, _HISTORY_LEAST_S, _HISTORY_FAILED_S = 900.0, 10.0, 10.0
# The queue is shown without the answer of accounting if that takes longer (s).
_HISTORY_WAIT_S = 6.0
# Query accounting if two queries of the queue are further apart (s): with a low MinJobAge jobs may come and go unseen.
_UNSEEN_S = 60.0
# Ignore answers of other sessions that are older (s).
_KEPT_S = 86400.0
# Waits before accounting is asked again for jobs that it believes to be alive, and after it failed to answer.
_LOST_WAITS_S, _FAILURE_WAITS_S = (5.0, 3600.0), (10.0, 300.0)
# A job that neither the queue nor accounting had is asked for again after so many seconds.
_UNKNOWN_S = 10.0
# The steps of a job that runs are asked for so seldom, and only while somebody looks at it.
_STEPS_S = 30.0
_MOST_KEPT = 500
_NO_SUCH_JOB = "Bad job/step specified"
_SUBMIT_LINE = re.compile(r"^ *SubmitLine=(.*)", re.MULTILINE)


class KnownJobs:
    """The jobs of this user, or of all, asked for as seldom as `SharedAnswer` allows; others are asked for by their id.

    Args:
        intervals: how often the queue may be asked.
        history_days: how far back accounting is asked, in days.
        all_users: whether the queue of every user is asked for; accounting is asked for this user's in any case.
    """

    def __init__(self, intervals: Intervals, history_days: float = HISTORY_DAYS, *, all_users: bool = False) -> None:
        folder = _answers_folder()
        self.actions = ActionTimes(folder / "acted")
        name = "queue-of-all" if all_users else "queue"
        self.queue_answer = SharedAnswer(
            folder / name, lambda: queue_text(all_users=all_users), intervals, self.actions, has_same_states
        )
        self._departures = ActionTimes(folder / "left")
        history = Intervals(_HISTORY_S, _HISTORY_S, least=_HISTORY_LEAST_S, failed=_HISTORY_FAILED_S)
        self._history = SharedAnswer(folder / "history", lambda: history_text(history_days), history, self._departures)
        self._history_answer: Answered | None = None
        self._late_history: threading.Thread | None = None
        self._lock = threading.Lock()
        self._queued: tuple[float, dict[str, Job]] = (0.0, {})
        self._accounted: tuple[float, dict[str, Job]] = (0.0, {})
        self._submit_lines: dict[str, str] = {}
        self._records: dict[str, Job] = {}
        self._left: dict[str, Job] = {}
        self._grouped: tuple[tuple[float, float, int], dict[str, App]] = ((0.0, 0.0, 0), {})
        self._changes = 0
        self._others: dict[str, tuple[float, App | None]] = {}
        self._lost_backoff, self._failure_backoff = Backoff(*_LOST_WAITS_S), Backoff(*_FAILURE_WAITS_S)
        self._lost_at, self._accounting_at = 0.0, 0.0
        self._accounting_error = ""

    def apps(self) -> dict[str, App]:
        """Return every app by its id.

        Raises:
            BackendUnavailableError: the controller cannot be reached.
        """
        with self._lock:
            queued = self._from_queue()
            accounted = self._from_history()
            self._look_up_left(queued, accounted)
            return self._group()

    def _group(self) -> dict[str, App]:
        """Return the apps of the last answers."""
        version = (self._queued[0], self._accounted[0], self._changes)
        if self._grouped[0] != version:
            accounted = self._accounted[1]
            jobs = {**accounted, **self._left, **self._queued[1]}
            _keep_tasks(jobs, accounted)
            self._grouped = version, group(jobs.values(), self._grouped[1])
        return self._grouped[1]

    def submit_lines(self) -> dict[str, str]:
        """Return the sbatch commands with a dependency, by job id, as far as accounting told them."""
        return self._submit_lines

    def find(self, job_id: str) -> App | None:
        """Return an app of any user, None if unknown. The raw id of an array task returns that task only.

        Raises:
            BackendUnavailableError: the controller cannot be reached, and the app is not known to have ended.
        """
        try:
            known = self.apps().get(job_id)
        except BackendUnavailableError:
            known = self._find_ended(job_id)
            if known is None:
                raise
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

    def _find_ended(self, job_id: str) -> App | None:
        """Return an app that has ended according to the last answers of the queue and of accounting."""
        with self._lock:
            self._from_history()
            app = self._group().get(job_id)
        return app if app is not None and is_terminal(app.state) else None

    def missing_jobs(self) -> str:
        """Return why `apps` may lack jobs that have left the queue; empty if accounting answers."""
        answer, error = self._history_answer or Answered(), ""
        if self._is_history_late():
            error = f"no answer within {_HISTORY_WAIT_S:g} s, still waiting"
        if not (error := error or answer.error):
            return ""
        since = f" since {clock(answer.answered_at)}" if answer.answered_at else ""
        return f"jobs that have left the queue{since} may be missing: accounting does not answer: {error}"

    def _is_history_late(self) -> bool:
        return self._late_history is not None and self._late_history.is_alive()

    def _latest_history(self) -> Answered:
        """Return the answer of accounting, or the previous one while the next takes long."""
        if self._is_history_late():
            return self._history_answer or Answered()
        if fresh := self._history.fresh():
            self._history_answer = fresh
            return fresh
        if self._history_answer is None:
            self._history_answer = self._history.kept()
        query = threading.Thread(target=self._ask_history, name="ask-accounting", daemon=True)
        query.start()
        query.join(_HISTORY_WAIT_S)
        if query.is_alive():
            self._late_history = query
        return self._history_answer

    def _ask_history(self) -> None:
        self._history_answer = self._history.latest()

    def check_accounting(self) -> Iterator[Finding]:
        """Yield what is wrong with accounting."""
        if self._latest_history().text == NO_ACCOUNTING:
            what = f"{NO_ACCOUNTING}: jobs are forgotten some minutes after their end"
            yield Finding("warning", what, "ask an administrator for slurmdbd")
        elif missing := self.missing_jobs():
            yield Finding("warning", missing, "it is asked again; `sacctmgr show cluster` says whether it answers")

    def _from_queue(self) -> dict[str, Job]:
        kept = self.queue_answer.kept()
        if not self._queued[0] and time.time() - kept.answered_at < _KEPT_S:
            # Jobs of the last answer of another session may have left the queue since.
            self._take_queue(kept)
        answer = self.queue_answer.get()
        if answer.answered_at != self._queued[0]:
            self._take_queue(answer)
        return self._queued[1]

    def _take_queue(self, answer: Answered) -> None:
        looked_at, before = self._queued
        self._records = parse_queue(answer.text, self._records)
        jobs = {job.job_id: job for job in self._records.values()}
        _keep_tasks(jobs, before)
        left = {job_id: job for job_id, job in before.items() if job_id not in jobs}
        if left or answer.answered_at - looked_at > _UNSEEN_S:
            self._departures.note()
        self._left = {job_id: job for job_id, job in {**self._left, **left}.items() if job_id not in jobs}
        self._queued = answer.answered_at, jobs

    def _from_history(self) -> dict[str, Job]:
        answer = self._latest_history()
        self._note(answer.error)
        answered_at, jobs = self._accounted
        if answer.answered_at != answered_at:
            jobs = {job.job_id: job for job in parse_history(answer.text)}
            self._accounted = answer.answered_at, jobs
            for job_id in self._left.keys() & jobs.keys():
                if is_terminal(jobs[job_id].app_state):
                    self._left[job_id] = _with_paths(jobs[job_id], self._left[job_id])
            self._submit_lines = {
                job_id: job.submit_line for job_id, job in jobs.items() if may_have_dependency(job.submit_line)
            }
        return jobs

    def _look_up_left(self, queued: dict[str, Job], accounted: dict[str, Job]) -> None:
        """Ask accounting how those ended that are no longer in the queue, all in one question.

        Accounting may hear of an end late: a job that is lost is asked for again, with growing pauses.
        """
        now = time.monotonic()
        missing = {}
        for job_id in sorted((accounted.keys() | self._left.keys()) - queued.keys()):
            job = self._left.get(job_id) or accounted[job_id]
            if not is_terminal(job.app_state) and job.state != GONE:
                missing[job_id] = job
        is_lost_due = now >= self._lost_at
        due = [job_id for job_id, job in missing.items() if job.state != LOST or is_lost_due]
        if not due or now < self._accounting_at or self._is_history_late():
            return
        try:
            told = {job.job_id: job for job in jobs_by_id(due) if job.job_id not in queued}
        except SchedulerError as error:
            self._accounting_at = time.monotonic() + self._failure_backoff.next()
            if isinstance(error, NoAccountingError):
                self._end_unaccounted(due, missing)
            else:
                self._note(str(error))
            return
        self._failure_backoff.reset()
        self._note("")
        if is_lost_due:
            self._lost_at = time.monotonic() + self._lost_backoff.next()
        self._changes += 1
        for job_id in {*due, *told}:
            seen = self._left.get(job_id) or missing.get(job_id)
            job = told.get(job_id) or seen
            if job is not None:
                job = job if seen is None else _with_paths(job, seen)
                self._left[job_id] = job if is_terminal(job.app_state) else replace(job, state=LOST)

    def _end_unaccounted(self, due: Iterable[str], missing: Mapping[str, Job]) -> None:
        """Mark jobs that left the queue of a cluster without accounting as ended in an unknown way."""
        self._changes += 1
        for job_id in due:
            job = self._left.get(job_id) or missing[job_id]
            self._left[job_id] = replace(job, state=GONE, finished_at=time.time())

    def _note(self, error: str) -> None:
        if error and error != self._accounting_error:
            logger.warning("accounting does not answer: %s", error)
        self._accounting_error = error


class AccountedJobs:
    """Accounting's records of single jobs, steps and earlier runs, asked for once for each job, from any thread.

    Args:
        asking: fails at once for a while after accounting did not answer.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str, int, float | None], tuple[App, list[Step]]] = {}
        self._runs: dict[tuple[str, int], list[Job]] = {}
        self._steps: dict[str, tuple[float, list[Step]]] = {}
        self._submit_lines: dict[tuple[str, float | None], tuple[float, str]] = {}

    def earlier_runs(self, app: App) -> list[Job]:
        """Return the runs of a job before its requeues, the earliest first, as far as accounting has them."""
        if app.restarts <= 0 or app.is_array:
            return []
        key = app.app_id, app.restarts
        with self._lock:
            if key in self._runs:
                return self._runs[key]
        try:
            runs = self._asking.guard("sacct", lambda: earlier_runs(app.app_id))
        except SchedulerError as error:
            logger.info("accounting has no earlier runs of %s: %s", app.app_id, error)
            return []
        # The last one is the present one.
        found = [run for run in runs[:-1] if run.job_id == app.first.job_id]
        if len(found) >= app.restarts:
            with self._lock:
                if len(self._runs) >= _MOST_KEPT:
                    self._runs.clear()
                self._runs[key] = found
        return found

    def steps(self, app: App) -> list[Step]:
        """Return the steps of a job; of one that runs as they were up to half a minute ago, of one that waits none."""
        if is_terminal(app.state):
            return self.details(app)[1]
        if app.started_at is None:
            return []
        with self._lock:
            at, steps = self._steps.get(app.app_id, (0.0, []))
        if at and time.monotonic() - at < _STEPS_S:
            return steps
        try:
            jobs, steps = self._asking.guard("sacct", lambda: job_with_steps(app.app_id))
            self._keep_submit_line(app, jobs)
        except SchedulerError as error:
            logger.info("accounting has no steps of %s: %s", app.app_id, error)
        with self._lock:
            if len(self._steps) >= _MOST_KEPT:
                self._steps.clear()
            self._steps[app.app_id] = time.monotonic(), steps
        return steps

    def submit_line(self, app: App) -> str:
        """Return the sbatch command of a job; empty if Slurm does not have it."""
        if app.first.submit_line:
            return app.first.submit_line
        self.steps(app)
        with self._lock:
            at, line = self._submit_lines.get((app.app_id, app.submitted_at), (0.0, ""))
        if line or (at and time.monotonic() - at < _STEPS_S):
            return line
        jobs: list[Job] = []
        try:
            jobs = self._asking.guard("sacct", lambda: _with_submit_line(app))
        except SchedulerError as error:
            logger.info("the submit line of %s is not known: %s", app.app_id, error)
        return self._keep_submit_line(app, jobs)

    def _keep_submit_line(self, app: App, jobs: Iterable[Job]) -> str:
        line = next((job.submit_line for job in jobs if job.submit_line), "")
        with self._lock:
            if len(self._submit_lines) >= _MOST_KEPT:
                self._submit_lines.clear()
            self._submit_lines[app.app_id, app.submitted_at] = time.monotonic(), line
        return line

    def details(self, app: App) -> tuple[App, list[Step]]:
        """Return an app that has ended, completed by accounting, and its steps."""
        # An array and one of its tasks may have ended at the same time.
        key = app.app_id, app.first.tasks, len(app.jobs), app.finished_at
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        try:
            jobs, steps = self._asking.guard("sacct", lambda: job_with_steps(app.app_id))
        except SchedulerError as error:
            logger.info("accounting has no steps of %s: %s", app.app_id, error)
            return app, []
        self._keep_submit_line(app, jobs)
        told = {job.job_id: job for job in jobs}
        found = App(app.app_id, [_with_account(job, told.get(job.job_id)) for job in app.jobs]), steps
        if all(job.job_id in told and is_terminal(told[job.job_id].app_state) for job in app.jobs):
            with self._lock:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = found
        return found


def _keep_tasks(jobs: dict[str, Job], before: Mapping[str, Job]) -> None:
    """Give those tasks of arrays that ended without a start their numbers: squeue no longer tells them."""
    for job_id, seen in before.items():
        job = jobs.get(job_id) if seen.array_id else None
        if job is not None and not job.array_id and is_terminal(job.app_state):
            jobs[job_id] = replace(job, array_id=seen.array_id, tasks=seen.tasks)


def _with_account(job: Job, told: Job | None) -> Job:
    """Complete a record of the queue by that of accounting."""
    if told is None or not is_terminal(told.app_state):
        return job
    return replace(
        job,
        cancelled_by=told.cancelled_by,
        failed_node=told.failed_node,
        elapsed=told.elapsed,
        tres=told.tres or job.tres,
        cpus=told.cpus or job.cpus,
        submit_line=told.submit_line,
    )


def _with_paths(job: Job, seen: Job) -> Job:
    """Complete a record of accounting by the last one of the queue."""
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
        jobs: Iterable[Job] = parse_queue(queue_text(job_id)).values()
    except BackendUnavailableError:
        raise
    except SchedulerError:
        jobs = []  # Invalid job id specified
    found = _with_job(group(jobs), job_id)
    if found is not None:
        return found
    try:
        return _with_job(group(jobs_by_id([job_id])), job_id)
    except NoAccountingError as error:
        raise SchedulerError(
            f"{job_id} is not in the queue, and {NO_ACCOUNTING}: jobs are forgotten some minutes after their end"
        ) from error
    except SchedulerError as error:
        if _NO_SUCH_JOB in str(error):
            return None
        raise SchedulerError(f"{job_id} is not in the queue, and accounting does not answer: {error}") from error


def _with_job(apps: Mapping[str, App], job_id: str) -> App | None:
    """Return the app with an id, or the array task with a raw id."""
    tasks = (App(app.app_id, [job]) for app in apps.values() for job in app.jobs if job.job_id == job_id)
    return apps.get(job_id) or next(tasks, None)


def _with_submit_line(app: App) -> list[Job]:
    """Return the records of a job that have its sbatch command, from accounting or the controller."""
    with suppress(NoAccountingError):
        if jobs := [job for job in jobs_by_id([app.app_id]) if job.submit_line]:
            return jobs
    # The controller has it from 26.05 on.
    found = _SUBMIT_LINE.search(ask(["scontrol", "show", "job", app.app_id]))
    return [replace(app.first, submit_line=found[1])] if found else []


def _answers_folder() -> Path:
    """Return the folder of the answers of this host and cluster: homes are shared among hosts."""
    settings = clean_environment().get("SLURM_CONF", "")
    cluster = hashlib.sha256(f"{settings}\0{os.getuid()}".encode()).hexdigest()[:12]
    return cache_folder() / "slurm" / f"{platform.node() or 'localhost'}-{cluster}"
