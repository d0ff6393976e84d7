"""HTTP responses that are read as they arrive and that any thread can end: logs, events, watches, pulls, builds."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ...base.files import SOURCE

_READ_BYTES = 1 << 18
# More than the bytes around a chunk, and around a record of TLS with the end of a chunk.
_CHUNK_OVERHEAD = 64
# The maximum size of one object in a stream: a server may never end a line.
_MAX_OBJECT_BYTES = SOURCE
# A silent peer is probed after 30 s, every 10 s, 3 times.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class StreamingResponse:
    """The body of a response.

    Args:
        response: urllib3's response, unread.
    """

    def __init__(self, response: Any) -> None:
        # Importing it takes 30 ms; urllib3 has done so by now.
        from http.client import HTTPException

        self._errors = (HTTPException, OSError, ValueError, EOFError)
        self._response = response
        # After `Connection: close` a response has no other reference to its socket, or to the channel of ssh.
        self._socket: Any = getattr(response._sock_shutdown, "__self__", None)
        self._error: ConnectionError | None = None
        self._shut = False
        _remove_read_timeout(self._socket)

    def read(self) -> bytes:
        """Wait for data and return it; empty at the end of the response, and after `shut`.

        Raises:
            ConnectionError: the response is incomplete, or the connection failed.
        """
        if self._error is not None:
            raise self._error
        data = self._read_chunk()
        chunks, size, arrived = [data], len(data), 0
        # One read returns one chunk, for an engine one line: each costs its reader more than the bytes in it.
        while data and size < _READ_BYTES:
            if arrived <= _CHUNK_OVERHEAD and (arrived := self._arrived()) <= _CHUNK_OVERHEAD:
                break
            try:
                data = self._read_chunk()
            except ConnectionError as error:
                self._error = error
                break
            chunks.append(data)
            size += len(data)
            arrived -= len(data) + _CHUNK_OVERHEAD
        return b"".join(chunks)

    def _read_chunk(self) -> bytes:
        if self._shut:
            return b""
        try:
            # Beneath urllib3, whose `read1` takes four times as long for a chunk.
            data = self._response._fp.read1(_READ_BYTES)
            if not data and not self._shut and self._response._fp.length:
                raise EOFError("the answer is shorter than its length")
            return data
        except self._errors as error:
            if self._shut:
                return b""
            raise ConnectionResetError("the connection broke during an answer") from error

    def _arrived(self) -> int:
        """Return how many bytes are known to be readable without waiting, from Python's buffer or else the socket."""
        try:
            self._socket.settimeout(0)
            try:
                return len(self._response._fp.fp.peek())
            finally:
                self._socket.settimeout(None)
        except (AttributeError, OSError, ValueError):  # the answer has ended, or comes through ssh
            return 0

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of the response, one a line, as they arrive."""
        parts: list[bytes] = []
        while data := self.read():
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = b"".join([*parts, lines[0]])
                parts.clear()
            parts.append(rest)
            if sum(map(len, parts)) > _MAX_OBJECT_BYTES:
                raise ConnectionResetError(f"a line of an answer has more than {_MAX_OBJECT_BYTES >> 20} MB")
            yield from (json.loads(line) for line in lines if line.strip())
        rest = b"".join(parts)
        if rest.strip() and not self._shut:
            yield json.loads(rest)

    def shut(self) -> None:
        """End the response at once, from any thread, a blocked `read` too. `close` is still needed."""
        self._shut = True
        process = getattr(self._socket, "proc", None)
        with suppress(OSError, RuntimeError, ValueError):
            if process is not None:  # ssh
                process.terminate()
            else:
                self._response.shutdown()

    def close(self) -> None:
        """Release the connection; nobody may be reading."""
        self.shut()
        with suppress(Exception):
            self._response.close()


def _remove_read_timeout(connection: Any) -> None:
    """Let reads wait while nothing arrives and the peer is alive."""
    with suppress(OSError, AttributeError):
        connection.settimeout(None)
    if getattr(connection, "family", None) in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEP_ALIVE.items():
                if hasattr(socket, name):
                    connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
