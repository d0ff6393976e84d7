"""Why a job ended: Slurm's state, exit code and signal, and the messages of srun and slurmstepd."""

from __future__ import annotations

import pwd
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...base.files import is_missing, read_tail
from ...logs.text.sanitize import plain
from ...specs.status import is_terminal
from ..shared.exit_reasons import format_cancelled, format_exit
from .jobs import Job
from .log_files import log_files
from .replicas import Replica
from .submit_line import submit_options
from .values import format_duration, format_size, parse_size, parse_tasks, parse_tres

_TAIL_BYTES = 1 << 16
# srun(1) on its standard error: `srun: error: n1: task 0: Exited with exit code 4`, `tasks 1-3: Killed`.
_ENDED = re.compile(
    r"^srun: error: (?P<node>[^:]+): tasks? (?P<tasks>[\d,-]+): "
    r"(?:Exited with exit code (?P<code>\d+)|(?P<word>[A-Z][\w ()]*))"
    # Where that ends the other tasks, the same srun names the step next; before 23.02 with a prefix.
    r"(?:\nsrun: (?:[\w/]+: \w+: )?Terminating StepId=[\d+]+\.(?P<step>\d+)$)?",
    re.MULTILINE,
)
_SIGNALS = {
    "Killed": 9, "Terminated": 15, "Aborted": 6, "Segmentation fault": 11, "Bus error": 7, "Interrupt": 2, "Hangup": 1,
    "Floating point exception": 8, "Illegal instruction": 4,
}  # fmt: skip
# Of slurmstepd: `slurmstepd: error: `, `slurmstepd-n1: error: `, and `[2026-11-26T14:31:12.090] error: ` by its build.
_DAEMON = r"^(?:slurmstepd(?:-[^\s:]+)?: |\[[\dT:.+-]+\] )error: "
_KILLED_FOR_MEMORY = re.compile(_DAEMON + r"Detected \d+ oom[-_]kill event", re.MULTILINE)
_NOT_STARTED = re.compile(_DAEMON + r"execve\(\): (?P<what>.*)$", re.MULTILINE)
# Of shells: `train.sh: line 4: torchrun: command not found`, `/var/spool/.../slurm_script: 4: torchrun: not found`.
_NOT_FOUND = re.compile(r"^[^:\n]+: (?:line )?\d+: (?P<program>[^:\n]+): (?:command )?not found$", re.MULTILINE)
_MESSAGES = (
    re.compile(_DAEMON + r"(?!\*\*\*)(?P<text>.*)$", re.MULTILINE),
    re.compile(r"^srun: error: (?P<text>(?!.*: tasks? [\d,-]+: )(?!Unable to create step).*)$", re.MULTILINE),
)
# The signal in the records of a job or step whose processes were killed since they had too much memory.
_OUT_OF_MEMORY = 125
# What Slurm says of a job whose output or folder cannot be used on its node, or whose script died of a signal.
_LAUNCH_FAILED = 53
# What a shell exits with where there is no such command.
_NO_COMMAND = 127


class TaskEnd(NamedTuple):
    """How a replica ended: an exit code, or the number of a signal, which may have been sent for its memory."""

    exit_code: int | None
    signal: int
    out_of_memory: bool = False

    @classmethod
    def of(cls, exit_code: int | None, signal: int) -> TaskEnd:
        """Return the end by what a record of squeue or sacct has of it."""
        return cls(None, 9, True) if signal == _OUT_OF_MEMORY else cls(exit_code, signal)

    def __str__(self) -> str:
        if self.out_of_memory:
            return "out of memory"
        return format_exit(-self.signal if self.signal else self.exit_code)


UNKNOWN_END = TaskEnd(None, 0)


class _TaskMessage(NamedTuple):
    node: str
    task: int
    end: TaskEnd
    step: str


def batch_output_end(path: Path | None) -> str:
    """Return the end of a batch script's output; nothing where it cannot be read."""
    return "" if path is None else read_tail(path, _TAIL_BYTES).decode("utf-8", "replace")


def task_ends(batch_output: str) -> dict[int, TaskEnd]:
    """Return how the tasks of a step ended by srun's messages, by number; the first message on a task counts."""
    ends: dict[int, TaskEnd] = {}
    for message in _task_messages(batch_output):
        ends.setdefault(message.task, message.end)
    return ends


def replica_ends(
    batch_output: str, replicas: Sequence[Replica], steps: Sequence[Job]
) -> dict[tuple[str, int], TaskEnd]:
    """Return how replicas ended by srun's messages and accounting's steps, by role and number.

    srun names the node and the task, and seldom the step. A message counts where the replicas, their nodes and how
    each step ended leave one role for it.

    Args:
        batch_output: the end of the batch script's output.
        replicas: all replicas of a job.
        steps: its steps; that of a role has its name.
    """
    of_role = {step.name: step for step in steps}
    of_steps = [replica for replica in replicas if replica.step is not None]
    asked = {(each.role, each.number): each for each in of_steps or replicas}
    step_of = {
        key: step
        for key, each in asked.items()
        if (step := each.step or of_role.get(each.role)) is not None and is_terminal(step.app_state)
    }
    ends = {
        key: TaskEnd.of(step.exit_code, step.signal)
        for key, step in step_of.items()
        if step.exit_code == 0 or step.ntasks == 1
    }
    roles = dict.fromkeys(role for role, _ in asked)
    for message in _task_messages(batch_output):
        keys = [(role, message.task) for role in roles if (role, message.task) in asked]
        if len(keys) > 1:
            keys = [key for key in keys if _is_of(message, asked[key], step_of.get(key))]
        if any(ends.get(key) == message.end for key in keys):
            continue
        keys = [key for key in keys if key not in ends]
        if len(keys) == 1:
            ends[keys[0]] = message.end
    return ends


def _is_of(message: _TaskMessage, replica: Replica, step: Job | None) -> bool:
    """Return whether srun's message may be of a replica, by its node, its step, and how that ended."""
    if replica.node and replica.node != message.node:
        return False
    if step is None:
        return True
    if message.step:
        return step.step == message.step
    # A step that exited has the highest code of its tasks.
    return step.exit_code is None or message.end.exit_code is None or message.end.exit_code <= step.exit_code


def _task_messages(batch_output: str) -> Iterator[_TaskMessage]:
    """Yield srun's messages on tasks that ended, task by task."""
    for found in _ENDED.finditer(batch_output):
        word = found["word"] or ""
        if found["code"]:
            end = TaskEnd(int(found["code"][:6]), 0)
        elif word.startswith("Out Of Memory"):
            end = TaskEnd.of(None, _OUT_OF_MEMORY)
        elif number := next((number for name, number in _SIGNALS.items() if word.startswith(name)), 0):
            end = TaskEnd(None, number)
        else:
            continue
        for task in parse_tasks(found["tasks"]):
            yield _TaskMessage(found["node"], task, end, found["step"] or "")


def why_ended(job: Job, batch_output: str, steps: Sequence[Job]) -> str:
    """Return why a job ended, empty for one that succeeded or has not ended.

    Args:
        job: its record.
        batch_output: the end of its batch script's output.
        steps: its steps, if accounting has them.
    """
    nodes = f" (it ran on {plain(job.node_list)})" if job.node_list else ""
    match job.state:
        case "CANCELLED":
            return _cancelled(job)
        case "TIMEOUT":
            limit = f" of {format_duration(job.limit)}" if job.limit else ""
            return f"its time limit{limit} was reached: ask for more time, or resume from a checkpoint"
        case "OUT_OF_MEMORY":
            return _out_of_memory(job, steps)
        case "NODE_FAIL":
            node = f"the node {plain(job.failed_node)} failed" if job.failed_node else f"a node failed{nodes}"
            return f"{node}: launch it again and exclude that node"
        case "PREEMPTED":
            return "a job of higher priority took its nodes"
        case "DEADLINE":
            return "it could not end before its deadline"
        case "BOOT_FAIL":
            return f"a node did not boot{nodes}: launch it again"
        case "FAILED" | "LAUNCH_FAILED":
            return _failed(job, batch_output, steps)
    return ""


def user_name(user: str) -> str:
    """Return the login name of a user whose number accounting has."""
    if not user.isdecimal():
        return user
    try:
        return pwd.getpwuid(int(user)).pw_name
    except (KeyError, OverflowError):
        return f"user {user}"


def _cancelled(job: Job) -> str:
    if job.has_run:
        ran = job.finished_at - job.started_at if job.finished_at and job.started_at else None
        return format_cancelled(user_name(job.cancelled_by), ran)
    # Accounting does not keep the reason. A user who cancels such a job is named there.
    is_hopeless = not job.cancelled_by and "--kill-on-invalid-dep" in job.submit_line
    if job.reason == "DependencyNeverSatisfied" or is_hopeless:
        depends = job.dependency or submit_options(job.submit_line).get("dependency", "")
        named = f" {plain(depends)}" if depends else ""
        return f"Slurm cancelled it: its dependency{named} can no longer be satisfied: launch it again without it"
    return f"{format_cancelled(user_name(job.cancelled_by), None)} while it waited"


def _failed(job: Job, batch_output: str, steps: Sequence[Job]) -> str:
    if job.reason == "BadConstraints":
        return "no node has what it asked for: change its constraint or resources"
    if (job.signal == _LAUNCH_FAILED and not job.exit_code) or job.state == "LAUNCH_FAILED":
        return f"it could not be launched: {_unusable_folder(job)}"
    ended = str(TaskEnd.of(job.exit_code, job.signal))
    if job.step_signal == _OUT_OF_MEMORY or _KILLED_FOR_MEMORY.search(batch_output):
        why = _out_of_memory(job, steps)
        # srun exits with 1, a shell with 137; another code may have another cause.
        return why if job.signal or job.exit_code in (1, 137) else f"{ended}: {why}"
    if job.exit_code == _NO_COMMAND and (missing := _NOT_FOUND.findall(batch_output)):
        program = plain(missing[-1])[:100]
        return f"{ended}: no command {program}: load its module or activate its environment in the script"
    if found := _NOT_STARTED.search(batch_output):
        return f"{ended}: it could not be started: {plain(found['what'])[:300]}: check the path on the node"
    text = next((found["text"] for pattern in _MESSAGES if (found := pattern.search(batch_output))), "")
    ends = task_ends(batch_output)
    if len({*ends.values()}) > 1 and any(_is_code(end, job) for end in ends.values()):
        # The script exits with the highest code of all tasks; srun reports the task that ended first.
        number, first = next(iter(ends.items()))
        ended = f"task {number}: {first}"
    return f"{ended}: {plain(text)[:300]}" if text and ended else ended or plain(text)[:300]


def _is_code(end: TaskEnd, job: Job) -> bool:
    """Return whether a script that exits as its step did would have ended as the job."""
    if end.signal:
        return end.signal == job.signal or job.exit_code == 128 + end.signal
    return end.exit_code == job.exit_code


def _out_of_memory(job: Job, steps: Sequence[Job]) -> str:
    """Say what was asked for, and the peak where it was measured: Slurm looks at it only now and then."""
    killed = next((step for step in steps if step.signal == _OUT_OF_MEMORY and step.step.isdecimal()), None)
    peak = killed.max_rss if killed is not None else max((step.max_rss or 0 for step in steps), default=0)
    where = f" in step {killed.step} ({plain(killed.name)[:100]})" if killed is not None else ""
    asked = asked_memory(job)
    limit = f"the {format_size(asked)} that it asked for" if asked else ""
    if peak:
        used = f"{format_size(peak)} was measured in one task, {f'of {limit}' if limit else 'its limit is lower'}"
    else:
        used = f"it used more than {limit or 'its limit'}"
    return f"out of memory{where}: {used}: ask for more memory"


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
