"""A shell in a running replica, on the terminal of who asks."""

from __future__ import annotations

import shutil
import sys

from ...specs import SchedulerError
from ..docker_engine.client import Engine
from .containers import Summary, find_replica

# What a shell is looked for with; its answer is the shell to use, with its path or without.
_LOOK = "command -v bash || command -v sh"
# Docker's own keys for leaving a terminal begin with ctrl-p, which shells want for themselves.
_DETACH_KEYS = "ctrl-^,ctrl-q"
_CANNOT_RUN = (126, 127)


def shell_command(engine: Engine, app_id: str, role: str, k: int) -> list[str]:
    """Return the argument list of a program that opens a shell in a replica on its own terminal.

    That is ``docker exec`` where Docker's client is installed, else a module of this package.

    Raises:
        JobNotFoundError, ValueError: there is no such app, role or replica.
        SchedulerError: the replica does not run, or its image has no shell.
        BackendUnavailableError: the engine cannot be reached.
    """
    container = find_replica(engine, app_id, role, k)
    state = container.get("State", "")
    if state != "running":
        raise SchedulerError(f"{role}/{k} of {app_id} is {state}: a shell needs a replica that runs")
    shell = _find_shell(engine, container, f"{role}/{k}")
    client = shutil.which("docker")
    if client is None:
        return [sys.executable, "-m", "torchx_tui.backends.docker.exec_terminal", container["Id"], shell]
    return [client, "exec", "--interactive", "--tty", "--detach-keys", _DETACH_KEYS, container["Id"], shell]


def _find_shell(engine: Engine, container: Summary, name: str) -> str:
    """Return the path of the best shell that a container has."""
    import docker.errors

    with engine.in_words():
        api = engine.client().api
        asked = api.exec_create(container["Id"], ["sh", "-c", _LOOK])["Id"]
        try:
            answer = api.exec_start(asked)
            code = api.exec_inspect(asked)["ExitCode"]
        except docker.errors.APIError as error:
            if "executable file not found" not in str(error) and "no such file" not in str(error):
                raise
            answer, code = b"", _CANNOT_RUN[-1]
    found = answer.decode("utf-8", "replace").split()
    if code in _CANNOT_RUN or not found:
        raise SchedulerError(
            f"the image of {name}, {container.get('Image', '')}, has no shell (neither bash nor sh): nothing to open"
        )
    return found[0]
