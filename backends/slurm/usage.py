"""CPU and memory of running replicas by sstat(1): per step, so that tasks of one step share its average."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...specs.errors import SchedulerError
from ...specs.status import AppState
from ..types import ReplicaUsage
from .accounting import job_with_steps, parse_clock, parse_size
from .commands import ask
from .ends import asked_memory
from .jobs import BATCH, TASK, parse_count
from .layout import Replica

# sstat(1), --format: averages are of the step's tasks, the time is what they had of processors since their start.
_FIELD = "|"
_FIELDS = ("JobID", "NTasks", "AveCPU", "AveRSS")
KEPT_S = 30.0
"""Seconds between two questions of sstat(1), which asks the node of every task: seldom enough for jobs of thousands."""
_TIMEOUT_S = 10.0
_MOST_APPS, _MOST_JOBS = 16, 100


class StepUsage(NamedTuple):
    """The average use of a step's tasks.

    Attributes:
        tasks: how many tasks the step has.
        cpu_seconds: what a task had of processors since its start.
        memory: what a task has in memory, in bytes; None where that was not measured yet.
    """

    tasks: int
    cpu_seconds: float
    memory: int | None


@dataclass
class _Measured:
    """What came of the last measurement of an app.

    Args:
        at: when that was, by the monotonic clock.
        told: the usage.
        cpu_seconds: what each replica had of processors.
        error: why there is none.
    """

    at: float = 0.0
    told: list[ReplicaUsage] = field(default_factory=list)
    cpu_seconds: dict[tuple[str, int], float] = field(default_factory=dict)
    error: SchedulerError | None = None


class UsageSampler:
    """Measures the replicas of apps; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._apps: dict[str, _Measured] = {}

    def measure(self, app_id: str, replicas: Sequence[Replica]) -> list[ReplicaUsage]:
        """Return the usage of each running replica; a measurement is kept for half a minute, and so is its failure.

        Of an array with many tasks that run, the first are measured.

        Raises:
            SchedulerError: Slurm did not answer.
        """
        with self._lock:
            before, now = self._apps.pop(app_id, None), time.monotonic()
            if before is None or now - before.at >= KEPT_S:
                measured = _Measured(now)
                try:
                    self._measure(app_id, replicas, measured, before)
                except SchedulerError as error:
                    measured.error = error
            else:
                measured = before
            while len(self._apps) >= _MOST_APPS:
                del self._apps[next(iter(self._apps))]
            self._apps[app_id] = measured
            if measured.error is not None:
                raise measured.error
            return measured.told

    def _measure(self, app_id: str, replicas: Sequence[Replica], measured: _Measured, before: _Measured | None) -> None:
        running = [replica for replica in replicas if replica.job.app_state is AppState.RUNNING]
        steps = _steps_of(running) if running else {}
        names = _step_names(app_id) if _has_several_roles(running) else {}
        for replica in running:
            used = _of_replica(replica, steps.get(replica.job.job_id, {}), names)
            if used is None:
                continue
            key = replica.role, replica.number
            measured.cpu_seconds[key] = used.cpu_seconds
            cpu = None
            if before is not None and key in before.cpu_seconds:
                cpu = max(0.0, used.cpu_seconds - before.cpu_seconds[key]) / (measured.at - before.at)
            asked = asked_memory(replica.job)
            tasks = max(1, sum(other.job is replica.job for other in running))
            measured.told.append(
                ReplicaUsage(
                    replica.role,
                    replica.number,
                    cpu=cpu,
                    cpu_total=replica.job.cpus / tasks if replica.job.cpus else None,
                    memory=used.memory,
                    memory_total=asked // tasks if asked else None,
                )
            )


def parse_usage(text: str) -> dict[str, dict[str, StepUsage]]:
    """Return the rows of sstat by raw job id and step; an incomplete row is left out."""
    steps: dict[str, dict[str, StepUsage]] = {}
    for line in text.splitlines():
        values = line.split(_FIELD)
        job_id, point, name = values[0].partition(".")
        if len(values) > len(_FIELDS) - 1 and point:
            used = StepUsage(parse_count(values[1]), parse_clock(values[2]), parse_size(values[3]))
            steps.setdefault(job_id, {})[name] = used
    return steps


def _steps_of(replicas: Sequence[Replica]) -> dict[str, dict[str, StepUsage]]:
    ids = ",".join([*dict.fromkeys(replica.job.job_id for replica in replicas)][:_MOST_JOBS])
    command = ["sstat", "--allsteps", "--noheader", "--parsable2", "--jobs", ids]
    return parse_usage(ask([*command, "--format", ",".join(_FIELDS)], timeout=_TIMEOUT_S))


def _has_several_roles(replicas: Sequence[Replica]) -> bool:
    return len({replica.role for replica in replicas}) > len({replica.job.job_id for replica in replicas})


def _step_names(app_id: str) -> dict[tuple[str, str], str]:
    """Return the names of steps by raw job id and number; accounting has them while they run."""
    _, steps = job_with_steps(app_id)
    return {(step.job_id, step.name): step.label for step in steps}


def _of_replica(
    replica: Replica, steps: Mapping[str, StepUsage], names: Mapping[tuple[str, str], str]
) -> StepUsage | None:
    if replica.role in (BATCH, TASK):
        # All of it, whatever the script starts.
        memory = sum((used.memory or 0) * max(1, used.tasks) for used in steps.values())
        cpu_seconds = sum(used.cpu_seconds * max(1, used.tasks) for used in steps.values())
        return StepUsage(1, cpu_seconds, memory or None) if steps else None
    # A shell that somebody opens is a later step.
    numbers = sorted((name for name in steps if name.isdecimal()), key=int)
    if names:
        numbers = [name for name in numbers if names.get((replica.job.job_id, name)) == replica.role]
    return steps[numbers[0]] if numbers else None
