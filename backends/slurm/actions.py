"""Actions on a job: hold, release, requeue, a time limit, a signal, tasks of an array, a shell and a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...specs.errors import NotAllowedError, SchedulerError
from ...specs.status import AppState
from ..shared.bounded_command import RUN_BESIDE_BYTES, CommandOutput, run_command
from ..types import JobAction
from . import commands
from .jobs import App
from .reasons import code_of
from .replicas import Replica
from .values import expand_nodes

_HOLD = JobAction("hold", "It does not start until it is released.")
_RELEASE = JobAction("release", "It may start.")
_REQUEUE = JobAction("requeue", "It is ended and requeued under the same id.", ends_job=True)
_TIME_LIMIT = JobAction(
    "limit", "It gets another time limit; most sites only let you shorten it.", value="a time, such as 1:30:00 or +30"
)
_SIGNAL = JobAction("signal", "Its processes and its batch script get a signal.", value="a signal, such as USR1")
_END_TASKS = JobAction(
    "end tasks", "Some tasks of the array are cancelled.", value="numbers, such as 3 or 5-8,12", ends_job=True
)
_THROTTLE = JobAction("at once", "Another number of its tasks runs at once.", value="a number; 0 for all")
# The values of actions, with the error for any other one and the command.
_VALUES = {
    _TIME_LIMIT.name: (
        re.compile(r"[+-]?(?:\d{1,4}-)?\d{1,6}(?::\d{1,2}){0,2}|UNLIMITED", re.IGNORECASE),
        "is not a time: write it as 30, 1:30:00, 1-12:00:00 or +30",
        "scontrol update JobId={id} TimeLimit={value}",
    ),
    _SIGNAL.name: (
        re.compile(r"(?:SIG)?[A-Z]{1,6}[0-9]{0,2}|[1-9]\d?", re.IGNORECASE),
        "is not a signal: write it as USR1 or 10",
        "scancel --full --signal={value} {id}",
    ),
    _END_TASKS.name: (
        re.compile(r"\d{1,8}(?:-\d{1,8})?(?:,\d{1,8}(?:-\d{1,8})?){0,99}"),
        "are no numbers of tasks: write them as 3 or 5-8,12",
        "scancel {id}_[{value}]",
    ),
    _THROTTLE.name: (
        re.compile(r"\d{1,6}"),
        "is not a number of tasks: write it as 4, or 0 for all at once",
        "scontrol update JobId={id} ArrayTaskThrottle={value}",
    ),
}
# Messages of srun when it did not start the command.
_NOT_STARTED = ("execve()", "Unable to create step", "Unable to confirm allocation", "Job step creation")
_DENIED = ("Access/permission denied", "Invalid user id")


def job_actions(app: App) -> list[JobAction]:
    """List the actions that are possible in a job's present state."""
    of_array = [_END_TASKS, _THROTTLE] if app.is_array else []
    if app.state is AppState.PENDING:
        is_held = code_of(app.first.reason).startswith("JobHeld")
        return [_RELEASE if is_held else _HOLD, _TIME_LIMIT, *of_array]
    return [_REQUEUE, _TIME_LIMIT, _SIGNAL, *of_array] if app.state is AppState.RUNNING else []


def act(job_id: str, action: str, value: str = "") -> None:
    """Do one of `job_actions`.

    Raises:
        NotAllowedError: it is somebody else's job, or the site does not allow it.
        SchedulerError: the value is malformed, or Slurm refused it; the message is Slurm's.
    """
    command = ["scontrol", action, job_id]
    if action in _VALUES:
        pattern, fault, template = _VALUES[action]
        if pattern.fullmatch(value) is None:
            raise SchedulerError(f"{value!r} {fault}")
        # No value has a blank.
        command = template.format(id=job_id, value=value.upper()).split(" ")
    _run(command, f"{action} {job_id}")


def cancel(job_id: str) -> None:
    """End a job; raises as `act` does."""
    _run(["scancel", job_id], f"cancel {job_id}")


def shell_command(replica: Replica) -> list[str]:
    """Return the srun command that opens a shell beside a replica: it takes no CPUs from it."""
    shell = 'exec "${SHELL:-/bin/sh}"'
    return [*_in_allocation(replica), "--pty", "/bin/sh", "-c", shell]


def run_beside(replica: Replica, argv: Sequence[str], timeout_s: float) -> CommandOutput:
    """Run a command in a step of its own on a replica's node, see `RunsCommands`.

    Raises:
        SchedulerError: Slurm did not begin it, the program is not there, or it printed too much.
    """
    # Without --quiet srun reports on stderr how the command ended.
    nodes = [] if replica.node else expand_nodes(replica.job.node_list)
    # Replicas whose nodes are not known are spread over all nodes, so that none is left out.
    node = [f"--nodelist={nodes[replica.number % len(nodes)]}"] if nodes else []
    command = [*_in_allocation(replica), *node, "--input=none", *argv]
    try:
        ended = run_command(command, timeout_s=timeout_s, max_bytes=RUN_BESIDE_BYTES, env=commands.clean_environment())
    except OSError as error:
        raise SchedulerError(f"srun cannot be run: {error}: put Slurm's commands on the PATH") from error
    except OverflowError as error:
        raise SchedulerError(f"{argv[0]} printed more than {RUN_BESIDE_BYTES >> 20} MB and was stopped") from error
    err = ended.err.decode("utf-8", "replace")
    if ended.code and any(text in err for text in _NOT_STARTED):
        raise commands.failure("srun", commands.Answer(ended.code, "", err))
    return ended


def _in_allocation(replica: Replica) -> list[str]:
    job = replica.job
    part = ["--jobid", job.job_id] if not job.het_id else ["--jobid", job.het_id, f"--het-group={job.het_offset}"]
    node = [f"--nodelist={replica.node}"] if replica.node else []
    return ["srun", *part, "--overlap", "--nodes=1", "--ntasks=1", *node]


def _run(command: list[str], what: str) -> None:
    answer = commands.run(command)
    if answer.code == 0:
        return
    if any(text in answer.err for text in _DENIED):
        raise NotAllowedError(f"Slurm does not allow you to {what}: {commands.error_text(command[0], answer)}")
    raise commands.failure(command[0], answer)
