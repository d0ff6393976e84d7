"""The steps of a batch script that is not ours as replicas: what each ``srun`` in it started, a replica a task."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from ...specs.sbatch_options import take_options
from .jobs import App, Job
from .log_files import UNKNOWN, find_file
from .replicas import Replica, node_of
from .values import expand_nodes

# A job of thousands of short steps shows the last ones.
_MAX_STEPS, _MAX_TASKS = 50, 4096
_SRUN = re.compile(r"^\s*(?:exec\s+|time\s+)?srun\s+(?P<words>.*)$", re.MULTILINE)


def step_replicas(app: App, steps: Sequence[Job], script: str) -> list[Replica]:
    """Return a replica for each task of each step; none where there is a single task, which is the batch itself.

    Args:
        app: a job that is neither an array nor heterogeneous, and was not launched here.
        steps: its steps, as accounting has them.
        script: its batch script, empty if unknown: its ``srun`` lines name the files of logs.
    """
    numbered = sorted((step for step in steps if step.step.isdecimal()), key=lambda step: int(step.step))
    if sum(max(1, step.ntasks) for step in numbered) < 2:
        return []
    commands = [*_commands(script)]
    found: list[Replica] = []
    for step in numbered[-_MAX_STEPS:]:
        found += _tasks(app.first, step, _options_of(step, commands, len(numbered)))
    return found[:_MAX_TASKS]


def _tasks(job: Job, step: Job, options: Mapping[str, str]) -> Iterator[Replica]:
    nodes = expand_nodes(step.node_list or job.node_list)
    for rank in range(max(1, step.ntasks)):
        index = node_of(rank, step.ntasks, nodes)
        node = nodes[index] if index is not None else ""
        symbols = {
            "t": str(rank),
            "s": step.step,
            "J": f"{job.job_id}.{step.step}",
            "n": UNKNOWN if index is None else str(index),
            "N": node.partition(".")[0] or UNKNOWN,
        }
        stdout = _file(job, step.stdout or options.get("output", ""), symbols)
        stderr = _file(job, step.stderr or options.get("error", ""), symbols)
        yield Replica(f"step{step.step}", rank, job, node, stdout, None if stderr == stdout else stderr, step)


def _file(job: Job, pattern: str, symbols: Mapping[str, str]) -> Path | None:
    """Return the file of a pattern; None for none, which means the batch script's own output, and for a variable's."""
    if pattern in ("", "none", "all") or pattern.isdecimal():
        return None
    for name, value in (("SLURM_JOB_ID", job.job_id), ("SLURM_JOBID", job.job_id), ("SLURM_JOB_NAME", job.name)):
        pattern = pattern.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return None if "$" in pattern else find_file(job, pattern, symbols=symbols)


def _options_of(step: Job, commands: Sequence[tuple[str, dict[str, str]]], steps: int) -> dict[str, str]:
    """Return the options of the command that started a step: the only one of its program, else that of its index."""
    named = [options for program, options in commands if program == step.name]
    if len(named) == 1:
        return named[0]
    number = int(step.step)
    if len(commands) == steps > number and (not named or commands[number][0] == step.name):
        return commands[number][1]
    return {}


def _commands(script: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield program and options of a script's ``srun`` commands in order; those in loops and functions count once."""
    for found in _SRUN.finditer(re.sub(r"\\\n\s*", " ", script)):
        with suppress(ValueError):
            # Most options of srun are those of sbatch.
            options, words = take_options(shlex.split(found["words"], comments=True))
            yield PurePath(words[0]).name if words else "", options
