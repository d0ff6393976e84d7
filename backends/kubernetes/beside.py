"""A command beside a replica: in its container, as ``kubectl exec`` runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...specs.errors import SchedulerError
from ..shared.bounded_command import CommandOutput
from .api_server import ApiServer
from .shell import NoSuchProgramError, find_running_container, image_of, run_in_pod


def run_beside(
    server: ApiServer, app_id: str, role: str, k: int, argv: Sequence[str], timeout_s: float
) -> CommandOutput:
    """Run a command in the main container of a replica's pod, see `RunsCommands`.

    The server cannot end a command: one that takes too long is left alone, and goes on.
    """
    pod, container = find_running_container(server, app_id, role, k)
    metadata = pod["metadata"]
    deadline = time.monotonic() + timeout_s
    with run_in_pod(server, metadata["namespace"], metadata["name"], container, argv) as running:
        out, err, is_whole = running.output(deadline)
        try:
            code = running.exit_code() if is_whole else None
        except NoSuchProgramError as error:
            raise SchedulerError(f"the image of {role}/{k}, {image_of(pod, container)}, has no {argv[0]}") from error
    return CommandOutput(code, out, err)
