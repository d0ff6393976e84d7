"""CPU and memory of running replicas by sstat(1): per step, so that tasks of one step share its average."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cachetools import LRUCache

from ...specs.status import AppState
from ..types import ReplicaUsage
from .accounting import Accounting
from .client import Client
from .commands import failure
from .ends import asked_memory
from .jobs import BATCH, TASK, App
from .replicas import Replica
from .values import parse_count, parse_duration, parse_size

KEPT_S = 30.0
"""Seconds between two questions of sstat(1), which asks the node of every task: seldom enough for jobs of thousands."""
# sstat(1), --format: averages are of the step's tasks, the time is their CPU time since the start.
_FIELDS = ("JobID", "NTasks", "AveCPU", "AveRSS")
_TIMEOUT_S = 10.0
_MAX_APPS, _MAX_JOBS = 16, 100


class StepUsage(NamedTuple):
    """The average use of a step's tasks.

    Attributes:
        tasks: number of tasks.
        cpu_seconds: CPU time of a task since its start.
        memory: memory of a task, in bytes; None if it was not measured yet.
    """

    tasks: int
    cpu_seconds: float
    memory: int | None


class _Sample(NamedTuple):
    """The steps at one time, by raw job id and name."""

    at: float = 0.0
    steps: Mapping[str, Mapping[str, StepUsage]] = {}


class UsageSampler:
    """Measures the replicas of apps. Every method may be called from any thread.

    Args:
        client: runs sstat.
        accounting: knows the names of steps.
    """

    def __init__(self, client: Client, accounting: Accounting) -> None:
        self._client, self._accounting = client, accounting
        self._lock = threading.Lock()
        # The last two samples of each app: cores in use are known by the difference.
        self._samples: LRUCache[str, tuple[_Sample, _Sample]] = LRUCache(_MAX_APPS)

    def measure(self, app: App, replicas: Sequence[Replica]) -> list[ReplicaUsage]:
        """Return the usage of each running replica, at most `KEPT_S` old; of large arrays only the first tasks.

        Raises:
            SchedulerError: Slurm did not answer.
        """
        running = [replica for replica in replicas if replica.job.app_state is AppState.RUNNING]
        if not running:
            return []
        before, now = self._sample(app.app_id, running)
        names: dict[tuple[str, str], str] = {}
        if len({replica.role for replica in running}) > len({replica.job.job_id for replica in running}):
            # Accounting has the names of steps while they run.
            names = {(step.job_id, step.step): step.name for step in self._accounting.details(app)[1]}
        found = []
        for replica in running:
            used, earlier = _of_replica(replica, now, names), _of_replica(replica, before, names)
            if used is None:
                continue
            spent = max(0.0, used.cpu_seconds - earlier.cpu_seconds) if earlier is not None else None
            memory, tasks = asked_memory(replica.job), max(1, sum(other.job is replica.job for other in running))
            found.append(
                ReplicaUsage(
                    replica.role,
                    replica.number,
                    cpu=None if spent is None else spent / (now.at - before.at),
                    cpu_total=replica.job.cpus / tasks if replica.job.cpus else None,
                    memory=used.memory,
                    memory_total=memory // tasks if memory else None,
                )
            )
        return found

    def _sample(self, app_id: str, running: Sequence[Replica]) -> tuple[_Sample, _Sample]:
        """Return the last two samples of an app; the first one is empty at first."""
        ids = ",".join([*dict.fromkeys(replica.job.job_id for replica in running)][:_MAX_JOBS])
        command = ["sstat", "--allsteps", "--noheader", "--parsable2", "--jobs", ids, "--format", ",".join(_FIELDS)]
        answer = self._client.run(command, keep_s=KEPT_S, timeout=_TIMEOUT_S)
        if answer.code != 0:
            raise failure("sstat", answer)
        with self._lock:
            before, now = self._samples.get(app_id, (_Sample(), _Sample()))
            if now.at != answer.asked_at:
                before, now = now, _Sample(answer.asked_at, parse_usage(answer.out))
                self._samples[app_id] = before, now
            return before, now


def parse_usage(text: str) -> dict[str, dict[str, StepUsage]]:
    """Parse the output of sstat to steps by raw job id and name; an incomplete row is left out."""
    steps: dict[str, dict[str, StepUsage]] = {}
    for line in text.splitlines():
        values = line.split("|")
        job_id, point, name = values[0].partition(".")
        if len(values) == len(_FIELDS) and point:
            used = StepUsage(max(1, parse_count(values[1])), parse_duration(values[2]) or 0, parse_size(values[3]))
            steps.setdefault(job_id, {})[name] = used
    return steps


def _of_replica(replica: Replica, sample: _Sample, names: Mapping[tuple[str, str], str]) -> StepUsage | None:
    steps = sample.steps.get(replica.job.job_id, {})
    if replica.role in (BATCH, TASK):
        # All of it, whatever the script starts.
        memory = sum((used.memory or 0) * used.tasks for used in steps.values())
        cpu_seconds = sum(used.cpu_seconds * used.tasks for used in steps.values())
        return StepUsage(1, cpu_seconds, memory or None) if steps else None
    # A shell that somebody opens is a later step.
    numbers = sorted((name for name in steps if name.isdecimal()), key=int)
    if names:
        numbers = [name for name in numbers if names.get((replica.job.job_id, name)) == replica.role]
    return steps[numbers[0]] if numbers else None
