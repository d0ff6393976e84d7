"""Slurm's job records, and how they fold into apps: arrays and heterogeneous jobs are one app each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ...specs.status import AppState, is_terminal
from .values import parse_tasks

BATCH, TASK = "batch", "task"
"""The roles of a job that was not launched as an app: its batch script, and the tasks of its array."""
MOST_AHEAD_S = 360 * 86400.0
"""Estimates of a start further ahead mean never: Slurm takes a year for a job without a time limit."""

LOST = "LOST"
"""The state of a job that accounting believes to be alive and that the controller does not know."""
GONE = "GONE"
"""The state of a job that has left the queue of a cluster without accounting: nobody knows how it ended."""
# The job states of squeue(1) and sacct(1). A flag, such as COMPLETING, stands in the place of the state while it lasts.
_STATES = {
    **dict.fromkeys(
        (
            "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD",
            "SUSPENDED", "STOPPED", "POWER_UP_NODE", "EXPEDITING",
        ),
        AppState.PENDING,
    ),
    **dict.fromkeys(("RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT"), AppState.RUNNING),
    "COMPLETED": AppState.SUCCEEDED,
    "CANCELLED": AppState.CANCELLED,
    **dict.fromkeys(
        (
            "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE", "BOOT_FAIL", "LAUNCH_FAILED",
            "RECONFIG_FAIL",
        ),
        AppState.FAILED,
    ),
}  # fmt: skip
_ID = re.compile(r"(?P<job>\d{1,18})(?:_(?P<task>\d{1,9}))?(?:\.(?:\d{1,9}|batch))?")


# Not frozen: that takes three times as long to make, and there may be ten thousands. Records are never changed.
@dataclass(slots=True)
class Job:
    """One record of squeue or sacct: a job, an array's task, the rest of an array, a component of a het job, or a step.

    Args:
        job_id: the raw id, which every record has for itself.
        array_id: the array's id, empty where it is in none.
        tasks: the number of an array's task, or those of the rest, such as ``8-19%2``.
        het_id: the id of the heterogeneous job, empty where it is of none.
        het_offset: the component's number in it.
        state: Slurm's word.
        reason: why it waits: a code, or a text where Slurm has one.
        limit: the time limit in seconds, None for none.
        exit_code: what the script exited with; None where it was killed, or has not ended.
        signal: the number of the signal that ended it, 0 for none.
        memory: what was asked for, as Slurm prints it.
        cancelled_by: the number or name of the user who cancelled it.
        failed_node: the node that failed, if accounting has it.
        elapsed: how long it ran, in seconds, if accounting has it.
        accounted: whether this is of sacct.
        is_batch: whether it has a batch script; False for what `srun` and `salloc` started, which writes no log.
        step_signal: the signal that ended one of its steps, 125 if that ran out of memory; 0 for none.
        sluid: the id that Slurm gives each run, empty before 24.11.
        step: the name of a step: ``batch``, ``extern``, or a number; empty for a job. A step's `name` is that of its
            program or its ``--job-name``, its `exit_code` the highest of its tasks.
        ntasks: how many tasks a step had.
        cpu_seconds: the CPU time of a step's processes.
        max_rss: the peak memory of a task, in bytes; None if it was not measured.
        usage: what a step used of trackable resources, as Slurm prints it. Sites may gather ``gres/gpuutil``, in
            percent, and ``gres/gpumem`` (slurm.conf(5): AccountingStorageTRES), both summed over tasks.
    """

    job_id: str
    array_id: str = ""
    tasks: str = ""
    het_id: str = ""
    het_offset: int = 0
    name: str = ""
    user: str = ""
    state: str = ""
    reason: str = ""
    submitted_at: float | None = None
    eligible_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    limit: int | None = None
    partition: str = ""
    qos: str = ""
    account: str = ""
    nodes: int = 0
    cpus: int = 0
    node_list: str = ""
    scheduled_nodes: str = ""
    priority: str = ""
    dependency: str = ""
    work_dir: str = ""
    command: str = ""
    submit_line: str = ""
    comment: str = ""
    stdout: str = ""
    stderr: str = ""
    restarts: int | None = None
    exit_code: int | None = None
    signal: int = 0
    memory: str = ""
    tres: str = ""
    tres_per_node: str = ""
    licenses: str = ""
    features: str = ""
    reservation: str = ""
    cancelled_by: str = ""
    failed_node: str = ""
    elapsed: float | None = None
    accounted: bool = False
    is_batch: bool = True
    step_signal: int = 0
    sluid: str = ""
    step: str = ""
    ntasks: int = 0
    cpu_seconds: int | None = None
    max_rss: int | None = None
    usage: str = ""

    @property
    def app_id(self) -> str:
        """The id of the app that it belongs to."""
        return self.het_id or self.array_id or self.job_id

    @property
    def app_state(self) -> AppState:
        """Its state in the words of every backend."""
        return app_state(self.state)

    @property
    def start(self) -> float | None:
        """When it began to run; the start of one that waits is an estimate, of one cancelled then its end."""
        return self.started_at if self.app_state is not AppState.PENDING and self.has_run else None

    @property
    def has_run(self) -> bool:
        """Whether it had nodes, or may have had: False for one that was cancelled while it waited."""
        return bool(self.node_list) or self.app_state is not AppState.CANCELLED

    @property
    def end(self) -> float | None:
        """When it ended, as far as that is known; the record of one that has not may have an estimate."""
        return self.finished_at if is_terminal(self.app_state) or self.state == GONE else None

    def task_numbers(self) -> list[int]:
        """Return the numbers of its array tasks; empty if it is not part of an array."""
        return parse_tasks(self.tasks)


@dataclass
class App:
    """The records of one app.

    Args:
        app_id: the id of the job, the array, or the first component.
        jobs: its records, in the order of components and tasks.
    """

    app_id: str
    jobs: list[Job]

    @property
    def first(self) -> Job:
        """The record with what all of them share: the first component, any task."""
        return self.jobs[0]

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return bool(self.first.array_id)

    @property
    def state(self) -> AppState:
        """RUNNING while any part runs, PENDING while any waits, then FAILED and CANCELLED before SUCCEEDED."""
        if len(self.jobs) == 1:
            return self.jobs[0].app_state
        states = {job.app_state for job in self.jobs}
        order = (AppState.RUNNING, AppState.PENDING, AppState.UNKNOWN, AppState.FAILED, AppState.CANCELLED)
        return next((state for state in order if state in states), AppState.SUCCEEDED)

    @cached_property
    def submitted_at(self) -> float | None:
        """When the first of it was submitted, in seconds since the epoch."""
        return min(filter(None, (job.submitted_at for job in self.jobs)), default=None)

    @property
    def started_at(self) -> float | None:
        """When the first of it started."""
        return min(filter(None, (job.start for job in self.jobs)), default=None)

    @property
    def finished_at(self) -> float | None:
        """When the last of it ended; None while any has not."""
        if not is_terminal(self.state) and any(job.end is None for job in self.jobs):
            return None
        return max(filter(None, (job.end for job in self.jobs)), default=None)

    @property
    def restarts(self) -> int:
        """How often it was requeued, -1 if unknown."""
        return max(-1 if job.restarts is None else job.restarts for job in self.jobs)

    def with_task(self, number: int) -> App | None:
        """Return an array with one of its tasks alone; None where it has no such task."""
        job = self.tasks.get(number)
        return None if job is None else App(self.app_id, [replace(job, tasks=str(number))])

    @cached_property
    def tasks(self) -> dict[int, Job]:
        """The record of each task of an array, by number."""
        return {number: job for job in self.jobs for number in job.task_numbers()}


def group(jobs: Iterable[Job], known: Mapping[str, App] = MappingProxyType({})) -> dict[str, App]:
    """Return the apps that records belong to, by id.

    Args:
        jobs: the records.
        known: what was returned before: an app of the same records is taken from there.
    """

    def app_of(app_id: str, jobs: list[Job]) -> App:
        app = known.get(app_id)
        return app if app is not None and app.jobs == jobs else App(app_id, jobs)

    apps: dict[str, App] = {}
    parts: dict[str, list[Job]] = {}
    for job in jobs:
        if job.het_id or job.array_id:
            parts.setdefault(job.app_id, []).append(job)
        else:
            apps[job.job_id] = app_of(job.job_id, [job])
    for app_id, found in parts.items():
        found.sort(key=lambda job: (job.het_offset, min(job.task_numbers(), default=0)))
        apps[app_id] = app_of(app_id, [*_each_task_once(found)])
    return apps


def _each_task_once(jobs: list[Job]) -> Iterator[Job]:
    """Leave out of the rest of an array that has ended the tasks with a record of their own: accounting keeps them."""
    own = {job.tasks for job in jobs}
    for job in jobs:
        if job.array_id and not job.tasks.isdecimal() and is_terminal(job.app_state):
            left = [number for number in map(str, job.task_numbers()) if number not in own]
            if left:
                yield replace(job, tasks=",".join(left))
        else:
            yield job


def app_state(word: str) -> AppState:
    """Translate a state of Slurm to an AppState; UNKNOWN for a word that is no state."""
    return _STATES.get(word, AppState.UNKNOWN)


def fill(job: Job, other: Job, *names: str) -> Job:
    """Return a record with the attributes of another one of the same job where it has none."""
    return replace(job, **{name: getattr(job, name) or getattr(other, name) for name in names})


def parse_fields(row: Mapping[str, str], names: Mapping[Any, Mapping[str, str]]) -> dict[str, Any]:
    """Return the attributes of a job from a record, by parser and attribute with the name of the field."""
    return {
        attribute: parse(row.get(field, "")) for parse, fields in names.items() for attribute, field in fields.items()
    }


def parse_id(text: str) -> tuple[str, int | None] | None:
    """Return the job and the array's task of an id; None for any other text.

    ``41`` is a job, ``41_7`` a task of an array; ``41.0`` and ``41.batch`` are steps.
    """
    found = _ID.fullmatch(text)
    if found is None:
        return None
    return found["job"], None if found["task"] is None else int(found["task"])
