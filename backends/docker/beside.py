"""A command beside a replica: in its container, as ``docker exec`` runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ...specs.errors import SchedulerError
from ..docker_engine.client import Engine, exec_exit_code
from ..docker_engine.streams import start_exec
from ..shared.bounded_command import RUN_BESIDE_BYTES, CommandOutput
from ..shared.terminal_relay import wait_readable
from .containers import find_replica

_READ = 1 << 18
# The head of each piece: which stream, three zeros, the size as four bytes, the first the highest.
# https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Container/operation/ContainerAttach
_HEAD = 8
_STDOUT, _STDERR = 1, 2
# How a runtime says, in the place of the command, that it was not started.
_NOT_RUN = (126, 127)
_NOT_STARTED = b"OCI runtime exec failed"


def run_beside(engine: Engine, app_id: str, role: str, k: int, argv: Sequence[str], timeout_s: float) -> CommandOutput:
    """Run a command in the container of a replica, see `RunsCommands`.

    The engine cannot end a command: one that takes too long is left alone, and goes on.
    """
    container = find_replica(engine, app_id, role, k)
    state = container.get("State", "unknown")
    if state != "running":
        raise SchedulerError(f"{role}/{k} of {app_id} is {state}, not running")
    with engine.translate_errors(app_id):
        done = run_in_container(engine, container["Id"], argv, timeout_s)
    if done.code in _NOT_RUN and _NOT_STARTED in done.out + done.err:
        raise SchedulerError(f"the image of {role}/{k}, {container.get('Image', '')}, has no {argv[0]}")
    return done


def run_in_container(engine: Engine, container: str, argv: Sequence[str], timeout_s: float) -> CommandOutput:
    """Run a command in a container with limits on time and output; call within `Engine.translate_errors`.

    Raises:
        SchedulerError: it printed too much.
        docker.errors.DockerException, OSError: the engine refused the command, or cannot be reached.
    """
    deadline = time.monotonic() + timeout_s
    api = engine.client().api
    asked = api.exec_create(container, list(argv))["Id"]
    # A separate connection, since it may be closed before the response ends.
    client = engine.new_client(timeout_s)
    try:
        connection, first = start_exec(client.api, asked)
        data, is_whole = _read_all(connection, first, deadline)
    finally:
        client.close()
    return CommandOutput(exec_exit_code(api, asked) if is_whole else None, *split_streams(data))


def _read_all(connection: Any, first: bytes, deadline: float) -> tuple[bytes, bool]:
    """Read until the peer closes the connection or the deadline passes; return the data and whether it is complete."""
    parts, size = [first], len(first)
    while (left := deadline - time.monotonic()) > 0:
        if not wait_readable([connection], left):
            break
        data = connection.recv(_READ)
        if not data:
            return b"".join(parts), True
        parts.append(data)
        size += len(data)
        if size > RUN_BESIDE_BYTES:
            raise SchedulerError(f"the command printed more than {RUN_BESIDE_BYTES >> 20} MB")
    return b"".join(parts), False


def split_streams(data: bytes) -> tuple[bytes, bytes]:
    """Return stdout and stderr of what an engine sent; a piece that is not whole is kept as far as it came."""
    streams: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
    at = 0
    while at + _HEAD <= len(data):
        size = int.from_bytes(data[at + 4 : at + _HEAD], "big")
        streams.setdefault(data[at], []).append(data[at + _HEAD : at + _HEAD + size])
        at += _HEAD + size
    return b"".join(streams[_STDOUT]), b"".join(streams[_STDERR])
