"""A command beside a replica: in its container, as ``kubectl exec`` runs it."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence

from ...specs import SchedulerError
from ..shared.bounded_command import RUN_BESIDE_BYTES, CommandOutput
from .api_server import ApiServer
from .shell import ERRORS, SCREEN, NoSuchProgramError, PodExec, find_running_container, image_of, run_in_pod


def run_beside(
    server: ApiServer, app_id: str, role: str, k: int, argv: Sequence[str], timeout_s: float
) -> CommandOutput:
    """Run a command in the main container of a replica's pod, see `Scheduler.run_beside`.

    The server cannot end a command: one that takes too long is left alone, and goes on.
    """
    pod, container = find_running_container(server, app_id, role, k)
    metadata = pod["metadata"]
    deadline = time.monotonic() + timeout_s
    with run_in_pod(server, metadata["namespace"], metadata["name"], container, argv) as running:
        out, err, is_whole = _read_all(running, deadline)
        try:
            code = running.exit_code() if is_whole else None
        except NoSuchProgramError as error:
            raise SchedulerError(f"the image of {role}/{k}, {image_of(pod, container)}, has no {argv[0]}") from error
    return CommandOutput(code, out, err)


def _read_all(running: PodExec, deadline: float) -> tuple[bytes, bytes, bool]:
    """Read until the program has ended; tell whether that was in time."""
    from websocket import WebSocketException

    streams: dict[int, list[bytes]] = {SCREEN: [], ERRORS: []}
    size, is_whole = 0, False
    try:
        while (left := deadline - time.monotonic()) > 0:
            if not running.has_more and not select.select([running.fileno()], [], [], left)[0]:
                break
            frame = running.read()
            if frame is None:
                is_whole = True
                break
            streams.setdefault(frame[0], []).append(frame[1])
            size += len(frame[1])
            if size > RUN_BESIDE_BYTES:
                raise SchedulerError(f"the command printed more than {RUN_BESIDE_BYTES >> 20} MB")
    except (OSError, WebSocketException) as error:
        raise SchedulerError(f"the connection to the pod broke off: {error}") from error
    return b"".join(streams[SCREEN]), b"".join(streams[ERRORS]), is_whole
