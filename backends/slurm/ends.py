"""Why a job ended: Slurm's state, exit code and signal, and the messages of srun and slurmstepd."""

from __future__ import annotations

import pwd
import re
from pathlib import Path
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs.files import is_missing, read_tail
from ..shared.exit_reasons import format_cancelled, format_exit
from .accounting import parse_size
from .jobs import Job, format_duration, parse_tasks, parse_tres
from .layout import log_files

_TAIL_BYTES = 1 << 16
# srun(1) on its standard error: `srun: error: n1: task 0: Exited with exit code 4`, `tasks 1-3: Killed`.
_ENDED = re.compile(
    r"^srun: error: [^:]+: tasks? (?P<tasks>[\d,-]+): (?:Exited with exit code (?P<code>\d+)|(?P<word>[A-Z][\w ()]*))",
    re.MULTILINE,
)
_SIGNALS = {
    "Killed": 9, "Terminated": 15, "Aborted": 6, "Segmentation fault": 11, "Bus error": 7, "Interrupt": 2, "Hangup": 1,
    "Floating point exception": 8, "Illegal instruction": 4, "Out Of Memory": 9,
}  # fmt: skip
_SAID = (
    re.compile(r"^slurmstepd: error: (?!\*\*\*)(?P<said>.*)$", re.MULTILINE),
    re.compile(r"^srun: error: (?P<said>(?!.*: tasks? [\d,-]+: )(?!Unable to create step).*)$", re.MULTILINE),
)
# What Slurm says of a job whose output or folder cannot be used on its node, or whose script died of a signal.
_LAUNCH_FAILED = 53


class TaskEnd(NamedTuple):
    """How a replica ended: an exit code, or the number of a signal."""

    exit_code: int | None
    signal: int


def batch_output_end(path: Path | None) -> str:
    """Return the end of a batch script's output; nothing where it cannot be read."""
    return "" if path is None else read_tail(path, _TAIL_BYTES).decode("utf-8", "replace")


def task_ends(batch_output: str) -> dict[int, TaskEnd]:
    """Return how the tasks of a step ended by srun's messages, by number; the first message on a task counts."""
    ends: dict[int, TaskEnd] = {}
    for found in _ENDED.finditer(batch_output):
        if found["code"]:
            end = TaskEnd(int(found["code"][:6]), 0)
        elif number := next((number for word, number in _SIGNALS.items() if found["word"].startswith(word)), 0):
            end = TaskEnd(None, number)
        else:
            continue
        for task in parse_tasks(found["tasks"]):
            ends.setdefault(task, end)
    return ends


def why_ended(job: Job, batch_output: str = "", peak: int | None = None) -> str:
    """Return why a job ended, empty for one that succeeded or has not ended.

    Args:
        job: its record.
        batch_output: the end of its batch script's output.
        peak: the most memory that one of its tasks had, in bytes, where accounting has it.
    """
    state = job.state
    if state == "CANCELLED":
        ran = job.finished_at - job.started_at if job.finished_at and job.started_at else None
        return format_cancelled(user_name(job.cancelled_by), ran)
    if state == "TIMEOUT":
        limit = f" of {format_duration(job.limit)}" if job.limit else ""
        return f"its time limit{limit} was reached: ask for more time, or resume from a checkpoint"
    if state == "OUT_OF_MEMORY":
        return _out_of_memory(job, peak)
    if state == "NODE_FAIL":
        node = f"the node {plain(job.failed_node)} failed" if job.failed_node else f"a node failed{_of_nodes(job)}"
        return f"{node}: launch it again and exclude that node"
    if state == "PREEMPTED":
        return "a job of higher priority took its nodes"
    if state == "DEADLINE":
        return "it could not end before its deadline"
    if state == "BOOT_FAIL":
        return f"a node did not boot{_of_nodes(job)}: launch it again"
    if state in ("FAILED", "LAUNCH_FAILED"):
        return _failed(job, batch_output)
    return ""


def user_name(user: str) -> str:
    """Return the login name of a user whose number accounting has."""
    if not user.isdecimal():
        return user
    try:
        return pwd.getpwuid(int(user)).pw_name
    except (KeyError, OverflowError):
        return f"user {user}"


def _failed(job: Job, batch_output: str) -> str:
    said = next((found["said"] for pattern in _SAID if (found := pattern.search(batch_output))), "")
    if job.reason == "BadConstraints":
        return "no node has what it asked for: change its constraint or resources"
    if (job.signal == _LAUNCH_FAILED and not job.exit_code) or job.state == "LAUNCH_FAILED":
        return f"it could not be launched: {_unusable_folder(job)}"
    ended = format_exit(-job.signal if job.signal else job.exit_code)
    ends = task_ends(batch_output)
    if ends and len({*ends.values()}) > 1:
        # The script exits with the highest code of all tasks; srun reports the task that ended first.
        number, first = next(iter(ends.items()))
        ended = f"task {number}: {format_exit(-first.signal if first.signal else first.exit_code)}"
    return f"{ended}: {plain(said)[:300]}" if said and ended else ended or plain(said)[:300]


def _out_of_memory(job: Job, peak: int | None) -> str:
    """Say what was asked for, and the peak where it was measured: Slurm looks at it only now and then."""
    asked = asked_memory(job)
    told = f"of the {format_size(asked)} that it asked for" if asked else ""
    if peak:
        told = f"{format_size(peak)} was measured in one task, {told or 'its limit is lower'}"
    else:
        told = f"it used more than {told.removeprefix('of ')}" if told else "it used more than its limit"
    return f"out of memory: {told}: ask for more memory"


def _unusable_folder(job: Job) -> str:
    """Name the folder that cannot be used, by what is seen here: Slurm does not say which."""
    folders = [Path(job.work_dir or "/"), *(path.parent for path in log_files(job) if path is not None)]
    missing = next((folder for folder in folders if is_missing(folder)), None)
    if missing is not None:
        return f"the folder {plain(str(missing))} does not exist: create it, or choose another one"
    on = f" on the node {plain(job.node_list)}" if job.node_list else ""
    return f"its folder {plain(job.work_dir)}, or that of its output, cannot be used{on}"


def asked_memory(job: Job) -> int | None:
    """Return the total memory that a job asked for, in bytes; None if unknown."""
    allocated = parse_size(parse_tres(job.tres).get("mem", ""))
    if allocated:
        return allocated
    # Older versions end it with n for each node, c for each CPU.
    asked = parse_size(job.memory)
    if not asked:
        return None
    return asked * (job.cpus if job.memory.endswith("c") else max(1, job.nodes) if job.memory.endswith("n") else 1)


def format_size(size: float) -> str:
    """Return a size in bytes as Slurm's users write it, such as ``1.5G``."""
    for unit, factor in (("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + unit
    return f"{max(1, round(size / 1024))}K"


def _of_nodes(job: Job) -> str:
    return f" (it ran on {plain(job.node_list)})" if job.node_list else ""
