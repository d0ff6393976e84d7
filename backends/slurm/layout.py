"""What replicas an app has, and in which files their logs are."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ...base.files import path_exists
from ...specs.sbatch_options import script_options
from ..shared.replicas import pick_replica
from .accounting import Step
from .jobs import BATCH, TASK, App, Job
from .launches import RecordedLaunch
from .submit_line import submit_options
from .values import expand_nodes
from .versions import name_rules

_TORCHX_NAME = re.compile(r"(?P<role>.+)-(?P<number>\d{1,9})", re.DOTALL)
_TORCHX_SCRIPT = "torchx-sbatch.sh"
_SYMBOL = re.compile(r"%(?P<width>\d*)(?P<letter>[A-Za-z%])")
UNKNOWN = "\0"
"""Stands in a name for what only the node knew."""
# What stands for the number of a task outside arrays (slurm.h: NO_VAL).
_NO_TASK = 4294967294
_MOST_WIDTH = 10


@dataclass(frozen=True)
class Replica:
    """One replica.

    Args:
        role: the role's name.
        number: its number in the role.
        job: the record of its component or task.
        node: the node that it runs on, empty where that is not known.
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
    step: Step | None = None


def is_torchx(app: App) -> bool:
    """Tell whether TorchX launched an app: its components are named ``ROLE-K``, and its script has TorchX's name."""
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
        launch: what is known of its launch, where it is ours.
        task: the only task of an array that is asked about, if there is such a task; None for all.
    """
    if launch is not None and not launch.is_script:
        return [*(_array_replicas(app, launch, task) if launch.is_array else _own_replicas(app, launch))]
    if is_torchx(app):
        return [*_torchx_replicas(app)]
    if app.is_array:
        return [Replica(TASK, number, job, job.node_list, *log_files(job, number)) for job, number in _tasks(app, task)]
    return [Replica(BATCH, 0, app.first, _one_node(app.first), *log_files(app.first))]


def find_replica(app_id: str, replicas: list[Replica], app: App, role: str, number: int) -> Replica:
    """Return a replica; the role `BATCH` is there for every app, for the words of srun and slurmstepd are there.

    Raises:
        ValueError: there is no such role or replica; the message lists the valid ones.
    """
    roles: dict[str, dict[int, Replica]] = {}
    for replica in replicas:
        roles.setdefault(replica.role, {})[replica.number] = replica
    if role == BATCH and role not in roles and number == 0 and not app.is_array:
        return Replica(BATCH, 0, app.first, "", *log_files(app.first))
    return pick_replica(app_id, roles, role, number)


def log_files(job: Job, task: int | None = None) -> tuple[Path | None, Path | None]:
    """Return the files of a batch script's output and of its errors; None where these go to the same one.

    Older versions of accounting keep the command alone. What it says of files counts only where such a file exists:
    the script may say something else, and words of the command are not quoted there.

    Args:
        job: the job, or a task of an array.
        task: the task's number.
    """
    if not job.is_batch:
        return None, None
    if job.stdout or not job.accounted:
        stdout = _log_file(job, job.stdout or _default(task), task)
        stderr = _log_file(job, job.stderr, task) if job.stderr else None
    else:
        options = submit_options(job.submit_line)
        stdout = _existing(_log_file(job, options.get("output") or _default(task), task))
        stderr = _existing(_log_file(job, options["error"], task)) if options.get("error") else None
    return stdout, None if stderr == stdout else stderr


def with_files(app: App, script: str) -> App:
    """Return an app of accounting's records with the names of its log files, as far as its script tells them.

    Args:
        app: the app.
        script: its batch script, empty where that is not known.
    """
    return App(app.app_id, [_with_files(job, script) for job in app.jobs])


def _with_files(job: Job, script: str) -> Job:
    if job.stdout or not job.accounted or not job.is_batch:
        return job
    given = submit_options(job.submit_line)
    if not script or "output" in given:
        return job
    in_script = script_options(script)
    task = 0 if job.array_id else None
    error = given.get("error") or in_script.get("error", "")
    return replace(job, stdout=in_script.get("output") or _default(task), stderr=error)


def _default(task: int | None) -> str:
    return "slurm-%j.out" if task is None else "slurm-%A_%a.out"


def _existing(path: Path | None) -> Path | None:
    return path if path is not None and path_exists(path) else None


def expand(pattern: str, job: Job, task: int | None = None, symbols: Mapping[str, str] = MappingProxyType({})) -> str:
    """Replace the symbols of a file name as this version's sbatch(1) documents them, ``%5j`` with leading zeros.

    A backslash turns the symbols off. What only the node knows, such as its short host name, becomes a null byte.

    Args:
        pattern: the name.
        job: the job, or a task of an array.
        task: the array task's number.
        symbols: what is known better, of a step's task: ``t``, ``s``, ``n``, ``N``, ``J``.
    """
    rules = name_rules()
    if "\\" in pattern:
        return re.sub(r"\\(\\?)", r"\1" if rules.escapes else "", pattern)
    number = _NO_TASK if task is None else task
    values = {
        "j": job.job_id,
        "A": job.array_id or job.job_id,
        "a": str(number),
        "b": str(number % 10),
        "J": job.job_id,
        "n": "0",
        "t": "0",
        "u": job.user,
        "x": job.name,
        "N": UNKNOWN,
        "s": "batch",
        "r": str(job.restarts) if job.restarts is not None else UNKNOWN,
        "S": job.sluid or UNKNOWN,
        **symbols,
    }

    def value(found: re.Match[str]) -> str:
        width, letter = found["width"], found["letter"]
        if letter == "%":
            return "%" if not width else found[0]
        if letter not in rules.symbols:
            return width[-1] + letter if width and rules.strips_padding else found[0]
        text = values[letter]
        # A name made of digits is no number.
        return (
            text.zfill(min(int(width[:3]), _MOST_WIDTH))
            if width and letter not in "uxNS" and text.isdecimal()
            else text
        )

    return _SYMBOL.sub(value, pattern)


def find_file(folder: str, name: str) -> Path | None:
    """Return the file of an expanded name; of several that fit a name with unknown parts the first, None for none."""
    if UNKNOWN not in name:
        return Path(folder, name)
    whole = "*".join(glob.escape(part) for part in str(Path(folder, name)).split(UNKNOWN))
    # Path.glob raises for names that are too long, before Python 3.13.
    found = glob.glob(whole)  # noqa: PTH207
    return Path(min(found)) if found else None


def _own_replicas(app: App, launch: RecordedLaunch) -> Iterator[Replica]:
    for role, count, component in launch.roles:
        job = app.jobs[component] if component < len(app.jobs) else app.first
        nodes = expand_nodes(job.node_list)
        alone = sum(other[2] == component for other in launch.roles) == 1
        for number in range(count):
            # Where each node has one replica, they are in the nodes' order.
            is_known = len(nodes) == 1 or (alone and len(nodes) == count)
            node = nodes[min(number, len(nodes) - 1)] if nodes and is_known else ""
            yield Replica(role, number, job, node, *_named_files(Path(launch.folder), app.app_id, role, number))


def _array_replicas(app: App, launch: RecordedLaunch, task: int | None) -> Iterator[Replica]:
    role = launch.roles[0][0]
    for job, number in _tasks(app, task):
        files = _named_files(Path(launch.folder), app.app_id, role, number)
        yield Replica(role, number, job, job.node_list, *files)


def _tasks(app: App, task: int | None) -> Iterator[tuple[Job, int]]:
    """Yield the tasks of an array in their order, or the only one that is asked about; all if there is no such task."""
    job = app.task(task) if task is not None else None
    if task is not None and job is not None:
        yield job, task
        return
    yield from sorted(((job, number) for job in app.jobs for number in job.task_numbers()), key=lambda each: each[1])


def _torchx_replicas(app: App) -> Iterator[Replica]:
    for job in app.jobs:
        found = _TORCHX_NAME.fullmatch(job.name)
        if found is not None:
            role, number = found["role"], int(found["number"])
            files = _named_files(Path(app.first.work_dir), app.app_id, role, number)
            yield Replica(role, number, job, _one_node(job), *files)


def _named_files(folder: Path, app_id: str, role: str, number: int) -> tuple[Path, Path]:
    """Return the files of a replica, as TorchX names them and our launches do."""
    name = f"slurm-{app_id}-{role}-{number}".replace("/", "_")
    return folder / f"{name}.out", folder / f"{name}.err"


def _one_node(job: Job) -> str:
    return job.node_list if "[" not in job.node_list and "," not in job.node_list else ""


def _log_file(job: Job, pattern: str, task: int | None) -> Path | None:
    if task is not None and Path(pattern).name in (f"slurm-{job.job_id}.out", f"slurm-{job.array_id}.out"):
        # squeue before 24.05 shows this for the default, of which an array has another one.
        pattern = _default(task)
    if "\0" in pattern + job.name or not (job.work_dir or pattern.startswith("/")):
        return None
    return find_file(job.work_dir, expand(pattern, job, task))
