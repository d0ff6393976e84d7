"""CPU and memory of running replicas by sstat(1): per step, so that tasks of one step share its average."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...specs import AppState
from ..types import ReplicaUsage
from .accounting import job_with_steps, parse_clock, parse_size
from .commands import ask
from .ends import asked_memory
from .jobs import BATCH, TASK, parse_count
from .layout import Replica

# sstat(1), --format: averages are of the step's tasks, the time is what they had of processors since their start.
_FIELD = "|"
_FIELDS = ("JobID", "NTasks", "AveCPU", "AveRSS")
# It asks the node of every task: seldom enough for jobs of thousands.
_KEPT_S = 30.0


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


class UsageSampler:
    """Measures the replicas of one app after the other; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._app_id, self._at = "", 0.0
        self._before: dict[tuple[str, int], float] = {}
        self._told: list[ReplicaUsage] = []

    def measure(self, app_id: str, replicas: Sequence[Replica]) -> list[ReplicaUsage]:
        """Return the usage of each running replica; a measurement is kept for half a minute.

        Raises:
            SchedulerError: Slurm did not answer.
        """
        with self._lock:
            now = time.monotonic()
            is_same = app_id == self._app_id
            if is_same and now - self._at < _KEPT_S:
                return self._told
            running = [replica for replica in replicas if replica.job.app_state is AppState.RUNNING]
            steps = _steps_of(running) if running else {}
            names = _step_names(app_id) if _has_several_roles(running) else {}
            before, self._before = (self._before if is_same else {}), {}
            told = []
            for replica in running:
                used = _of_replica(replica, steps.get(replica.job.job_id, {}), names)
                if used is None:
                    continue
                key = replica.role, replica.number
                self._before[key] = used.cpu_seconds
                cpu = max(0.0, used.cpu_seconds - before[key]) / (now - self._at) if key in before else None
                asked = asked_memory(replica.job)
                tasks = max(1, sum(other.job is replica.job for other in running))
                told.append(
                    ReplicaUsage(
                        replica.role,
                        replica.number,
                        cpu=cpu,
                        cpu_total=replica.job.cpus / tasks if replica.job.cpus else None,
                        memory=used.memory,
                        memory_total=asked // tasks if asked else None,
                    )
                )
            self._app_id, self._at, self._told = app_id, now, told
            return told


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
    ids = ",".join(dict.fromkeys(replica.job.job_id for replica in replicas))
    command = ["sstat", "--allsteps", "--noheader", "--parsable2", "--jobs", ids]
    return parse_usage(ask([*command, "--format", ",".join(_FIELDS)]))


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
