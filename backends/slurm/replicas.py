"""The replicas of an app, with their nodes and log files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..shared.replicas import pick_replica
from .jobs import BATCH, TASK, App, Job
from .launches import RecordedLaunch
from .log_files import log_files
from .values import expand_nodes

_TORCHX_NAME = re.compile(r"(?P<role>.+)-(?P<number>\d{1,9})", re.DOTALL)
_TORCHX_SCRIPT = "torchx-sbatch.sh"


@dataclass(frozen=True)
class Replica:
    """One replica.

    Args:
        role: the role's name.
        number: its number in the role.
        job: the record of its component or task.
        node: the node that it runs on, empty if unknown.
        stdout: the file of its output, None where it is not known.
        stderr: the file of its errors; None where both go to one file.
        step: the step whose task it is; None where it is that of a whole job or component.
    """

    role: str
    number: int
    job: Job
    node: str = ""
    stdout: Path | None = None
    stderr: Path | None = None
    step: Job | None = None


def is_torchx(app: App) -> bool:
    """Return whether TorchX launched an app: its components are named ``ROLE-K``, and its script has TorchX's name."""
    names = [_TORCHX_NAME.fullmatch(job.name) for job in app.jobs]
    if app.is_array or not all(names):
        return False
    job = app.first
    if _TORCHX_SCRIPT in job.command or _TORCHX_SCRIPT in job.submit_line:
        return True
    # Accounting before 21.08 keeps no command; one replica alone can be named so by anybody.
    return job.accounted and not job.submit_line and len(app.jobs) > 1


def replicas_of(app: App, launch: RecordedLaunch | None, task: int | None = None) -> list[Replica]:
    """Return the replicas of an app, in order.

    Args:
        app: the app.
        launch: what is known of its launch, if it was launched here.
        task: the only task of an array that is asked about, if there is such a task; None for all.
    """
    if launch is not None and not launch.is_script:
        if not launch.is_array:
            return [*_own_replicas(app, launch)]
        role, folder = launch.roles[0][0], launch.folder
        return [
            Replica(role, number, job, job.node_list, *_named_files(folder, app, role, number))
            for job, number in _tasks(app, task)
        ]
    if is_torchx(app):
        return [*_torchx_replicas(app)]
    if app.is_array:
        return [Replica(TASK, number, job, job.node_list, *log_files(job, number)) for job, number in _tasks(app, task)]
    return [Replica(BATCH, 0, app.first, _one_node(app.first), *log_files(app.first))]


def find_replica(app: App, replicas: list[Replica], role: str, number: int) -> Replica:
    """Return a replica; the role `BATCH` is there for every app, for the words of srun and slurmstepd are there.

    Raises:
        ValueError: there is no such role or replica; the message lists the valid ones.
    """
    roles: dict[str, dict[int, Replica]] = {}
    for replica in replicas:
        roles.setdefault(replica.role, {})[replica.number] = replica
    if role == BATCH and role not in roles and number == 0 and not app.is_array:
        return Replica(BATCH, 0, app.first, "", *log_files(app.first))
    return pick_replica(app.app_id, roles, role, number)


def node_of(number: int, count: int, nodes: Sequence[str]) -> int | None:
    """Return the index of a task's node; None unless there is one node, or one for each task, in their order."""
    if len(nodes) == 1:
        return 0
    return number if len(nodes) == count else None


def _own_replicas(app: App, launch: RecordedLaunch) -> Iterator[Replica]:
    for role, count, component in launch.roles:
        job = app.jobs[component] if component < len(app.jobs) else app.first
        nodes = expand_nodes(job.node_list)
        is_alone = sum(other[2] == component for other in launch.roles) == 1
        for number in range(count):
            index = node_of(number, count if is_alone else -1, nodes)
            node = "" if index is None else nodes[index]
            yield Replica(role, number, job, node, *_named_files(launch.folder, app, role, number))


def _tasks(app: App, task: int | None) -> Iterator[tuple[Job, int]]:
    """Yield the tasks of an array in their order, or the only one that is asked about; all if there is no such task."""
    tasks = app.tasks
    for number in [task] if task is not None and task in tasks else sorted(tasks):
        yield tasks[number], number


def _torchx_replicas(app: App) -> Iterator[Replica]:
    for job in app.jobs:
        found = _TORCHX_NAME.fullmatch(job.name)
        if found is not None:
            role, number = found["role"], int(found["number"])
            yield Replica(role, number, job, _one_node(job), *_named_files(app.first.work_dir, app, role, number))


def _named_files(folder: str, app: App, role: str, number: int) -> tuple[Path, Path]:
    """Return the files of a replica, as TorchX names them and our launches do."""
    name = f"slurm-{app.app_id}-{role}-{number}".replace("/", "_")
    return Path(folder, f"{name}.out"), Path(folder, f"{name}.err")


def _one_node(job: Job) -> str:
    return job.node_list if "[" not in job.node_list and "," not in job.node_list else ""
