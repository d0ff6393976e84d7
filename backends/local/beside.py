"""A command beside a replica of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.processes import is_running
from ...specs.errors import SchedulerError
from ..shared.bounded_command import REPLICA_PID, RUN_BESIDE_BYTES, CommandOutput, run_command
from ..shared.replicas import pick_replica
from .environment import launcher_environment
from .record import Run


def run_beside_replica(run: Run, role_name: str, k: int, argv: Sequence[str], timeout_s: float) -> CommandOutput:
    """Run a command on this machine for a replica that runs here, see `RunsCommands`."""
    roles: dict[str, dict[int, dict]] = {}
    for entry in run.replicas:
        roles.setdefault(entry["role"], {})[entry["id"]] = entry
    entry = pick_replica(run.app_id, roles, role_name, k)
    if not run.here:
        raise SchedulerError(f"{role_name}/{k} of {run.app_id} runs on {run.document.get('host')}: run it there")
    if entry["exit_code"] is not None or not is_running(entry["pid"], entry["pid_started"]):
        raise SchedulerError(f"{role_name}/{k} of {run.app_id} is not running")
    env = {**launcher_environment(), REPLICA_PID: str(entry["pid"])}
    try:
        return run_command(argv, timeout_s=timeout_s, max_bytes=RUN_BESIDE_BYTES, env=env, cwd="/")
    except OSError as error:
        raise SchedulerError(f"{argv[0]} cannot be run: {error.strerror}") from error
    except OverflowError as error:
        raise SchedulerError(f"{argv[0]} printed more than {RUN_BESIDE_BYTES >> 20} MB and was stopped") from error
