"""Answers of a Docker engine that come bit by bit: logs, events, pulls, builds, a program's output."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..shared.streaming_response import StreamingResponse

if TYPE_CHECKING:
    import docker

# Seconds in which an engine takes a connection and begins to answer.
_TIMEOUT_S = 30.0


def ask(
    client: docker.DockerClient,
    method: str,
    path: str,
    params: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    body: Iterator[bytes] | None = None,
    timeout: float | None = _TIMEOUT_S,
) -> StreamingResponse:
    """Ask an engine something whose answer comes bit by bit.

    Args:
        client: a client that nobody else uses while the answer comes.
        method: ``GET`` or ``POST``.
        path: the path below the version, such as ``/events``.
        params: the query.
        headers: what the engine is told besides.
        body: what is sent along, as it comes.
        timeout: seconds in which the answer has to begin; as long as it likes where None.

    Raises:
        docker.errors.APIError, OSError: the engine refused, or cannot be reached.
    """
    import docker.errors
    import requests

    api: Any = client.api
    url = f"{api.base_url}/v{api.api_version}{path}"
    response = api.request(
        method, url, params=dict(params), headers=dict(headers or {}), data=body, stream=True, timeout=timeout
    )
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        try:
            raise docker.errors.create_api_error_from_http_exception(error) from error
        finally:
            response.close()
    return StreamingResponse(response.raw)


def start_exec(api: Any, exec_id: str, *, tty: bool = False) -> tuple[Any, bytes]:
    """Start a program in a container; return the connection with it, and what it has printed already.

    The SDK reads the head of the answer through a buffer, gives the socket below it, and drops what came with the head.

    Args:
        api: the SDK's `APIClient`, of a client that nobody else uses meanwhile.
        exec_id: what ``exec_create`` returned.
        tty: whether the program has a terminal.
    """
    answer = api.exec_start(exec_id, tty=tty, socket=True)
    connection = getattr(answer, "_sock", answer)
    buffer = answer._response.raw._fp.fp
    # Of the buffer that ssh's output is read through nothing is lost.
    if not isinstance(getattr(buffer, "raw", None), socket.SocketIO):
        return connection, b""
    timeout = connection.gettimeout()
    connection.settimeout(0)  # where the buffer is empty, what it reads now counts as well, and is not waited for
    try:
        printed = bytes(buffer.peek())
        # A record of TLS may be longer than the buffer; nobody who waits for the socket would see the rest.
        if isinstance(connection, ssl.SSLSocket) and (left := connection.pending()):
            printed += connection.recv(left)
        return connection, printed
    except ssl.SSLWantReadError:
        return connection, b""
    finally:
        connection.settimeout(timeout)
