"""Slurm's commands: without a shell, bounded in time and output, in an environment that changes no answer."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...base.files import path_exists
from ...logs.text.sanitize import plain
from ...specs.errors import BackendUnavailableError, SchedulerError
from ..shared.bounded_command import run_command
from ..shared.secrets import mask_text

TIMEOUT_S = 25.0
"""Seconds after which a command is killed; clients give up on a controller that is down after 9 to 18 s."""
MAX_BYTES = 256 << 20
"""The most bytes of an answer: a job takes some 400, and few clusters hold 100,000."""
FIELD, RECORD = "\x1f", "\x1e"
"""What ends a field and a record in the answers that are asked for: names may have any other character."""

# Variables that change what the commands ask, print or signal, and those of a job that this program runs in.
_FOREIGN = ("SLURM_", "SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_", "SPRIO_", "SSHARE_", "SSTAT_", "SLURMD_")
# These choose the cluster and the user.
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_SACK_SOCKET")
# These would make sbatch wait for the job's end, launch an array, or submit to another cluster.
_UNSUBMITTED = ("SBATCH_WAIT", "SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
_UNREACHABLE = (
    "Unable to contact slurm controller",
    "Unable to connect to database",
    "Unable to establish configuration source",
    "Could not establish a configuration source",
    "Problem talking to the database",
    "Communication connection failure",
    "Communication shutdown failure",
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Broken pipe",
    "No route to host",
    "Network is unreachable",
    "Socket timed out",
    "missing socket error",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "Slurm temporarily unable to accept job",
    "backup controller responding",
)


@dataclass(frozen=True)
class Answer:
    """The exit code and the output of a command.

    Args:
        asked_at: the monotonic time at its start, set by `Client`.
        keep_s: seconds to keep it, set by `Client`.
    """

    code: int
    out: str
    err: str
    asked_at: float = 0.0
    keep_s: float = 0.0


class CommandError(SchedulerError):
    """A command of Slurm failed.

    Args:
        message: its own message, for people.
        stderr: all that it wrote to stderr.
    """

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


def is_set_up() -> bool:
    """Return whether sbatch is on the PATH, and the file of SLURM_CONF exists if that is set."""
    settings = os.environ.get("SLURM_CONF")
    return shutil.which("sbatch") is not None and (not settings or path_exists(settings))


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what changes the answers of Slurm's commands; times are epochs."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith(_FOREIGN)}
    # Lists of array tasks are not cut.
    return {**kept, "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}


def submit_environment() -> dict[str, str]:
    """Return the environment that a job gets: this process's, without the variables of a job that it runs in."""
    return {name: value for name, value in clean_environment().items() if name not in _UNSUBMITTED}


def run(
    command: Sequence[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_S,
) -> Answer:
    """Run a command and return its answer, whatever its exit code.

    Args:
        command: the argument list.
        stdin: what it reads; nothing if None.
        env: its environment; `clean_environment` if None.
        timeout: seconds after which it is killed, with its children.

    Raises:
        BackendUnavailableError: it is not on the PATH, did not end in time, or printed too much.
    """
    program = command[0]
    try:
        ended = run_command(
            command,
            timeout_s=timeout,
            max_bytes=MAX_BYTES,
            stdin=(stdin or "").encode("utf-8", "surrogateescape"),
            env=clean_environment() if env is None else env,
        )
    except (OSError, ValueError) as error:
        raise BackendUnavailableError(f"{program} cannot be run: {error}: put Slurm's commands on the PATH") from error
    except OverflowError as error:
        raise BackendUnavailableError(f"{program} printed more than {MAX_BYTES >> 20} MB and was stopped") from error
    if ended.code is None:
        raise BackendUnavailableError(f"{program} did not answer within {timeout:g} s: the controller is busy or down")
    return Answer(ended.code, ended.out.decode("utf-8", "replace"), ended.err.decode("utf-8", "replace"))


def ask(command: Sequence[str], *, timeout: float = TIMEOUT_S) -> str:
    """Run a command that only asks, and return what it printed.

    Raises:
        BackendUnavailableError: it cannot be run, or Slurm cannot be reached.
        CommandError: it failed; the message is its own.
    """
    answer = run(command, timeout=timeout)
    if answer.code != 0:
        raise failure(command[0], answer)
    return answer.out


def failure(program: str, answer: Answer) -> SchedulerError:
    """Return the error for the answer of a command that failed."""
    text = error_text(program, answer)
    if any(outage in answer.err for outage in _UNREACHABLE):
        return BackendUnavailableError(f"Slurm does not answer: {text}")
    return CommandError(f"{program} failed: {text}", answer.err)


def error_text(program: str, answer: Answer) -> str:
    """Return a command's error messages in one line, without its own name, secrets masked."""
    lines = (plain(line).strip() for line in (answer.err.strip() or answer.out.strip()).splitlines())
    messages = (re.sub(rf"^{re.escape(program)}: (?:error: |fatal: )?", "", line) for line in lines)
    text = "; ".join(dict.fromkeys(filter(None, messages))) or f"exit {answer.code}"
    return mask_text("", text if len(text) <= 600 else f"{text[:599]}…")
