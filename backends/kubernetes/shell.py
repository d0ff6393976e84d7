"""A shell in a running replica, on the terminal of who asks."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from ...specs import SchedulerError
from .containers import main_container, run_of
from .jobs import Object
from .pod_exec import NoSuchProgramError, output_of
from .replica_pods import find_pod_name, replica_pods

if TYPE_CHECKING:
    from .api_server import ApiServer

# What a shell is looked for with; its answer is the shell to use, with its path or without.
_LOOK = "command -v bash || command -v sh"
# The protocol has no environment: the shell that was found sets TERM and becomes the one that is used.
_START = 'TERM="$0" exec "$1"'


def shell_command(server: ApiServer, app_id: str, role: str, k: int) -> list[str]:
    """Return the argument list of a program that opens a shell in a replica on its own terminal.

    It is a module of this package: kubectl is not needed.

    Raises:
        JobNotFoundError, ValueError: there is no such app, role or replica.
        SchedulerError: the replica does not run, or its image has no shell, or the server does not allow it.
        BackendUnavailableError: the server cannot be reached.
    """
    look = replica_pods(server).look(server, app_id, time.monotonic())
    name = find_pod_name(look, app_id, role, k)
    pod = look.pods.get(name)
    if pod is None:
        raise SchedulerError(f"the pod of {role}/{k} of {app_id} is not there: a shell needs a replica that runs")
    container = main_container(pod)
    if not run_of(pod, container).is_running:
        phase = str((pod.get("status") or {}).get("phase") or "unknown").lower()
        raise SchedulerError(f"{role}/{k} of {app_id} is {phase}: a shell needs a replica that runs")
    shell = _find_shell(server, pod, container, f"{role}/{k}")
    program = [sys.executable, "-m", "torchx_tui.backends.kubernetes.exec_terminal"]
    where = [server.context, pod["metadata"]["namespace"], name, container]
    return [*program, *where, shell, "-c", _START, os.environ.get("TERM", "xterm"), shell]


def _find_shell(server: ApiServer, pod: Object, container: str, name: str) -> str:
    """Return the path of the best shell that a container has."""
    metadata = pod["metadata"]
    try:
        code, printed = output_of(server, metadata["namespace"], metadata["name"], container, ["sh", "-c", _LOOK])
    except NoSuchProgramError:
        code, printed = 127, b""
    found = printed.decode("utf-8", "replace").split()
    if code or not found:
        images = {one["name"]: one.get("image", "") for one in pod["spec"]["containers"]}
        raise SchedulerError(
            f"the image of {name}, {images.get(container, '')}, has no shell (neither bash nor sh): nothing to open"
        )
    return found[0]
