"""Answers over HTTP that come bit by bit, and that another thread can end: logs, events, watches, pulls, builds.

The generators of the SDKs take an answer apart piece by piece, at some ten thousand lines a second, and cannot be
closed while another thread waits in them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ...base.files import SOURCE

_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")
# Bytes that are asked for at once; less comes as soon as there is any.
_READ = 1 << 18
# Maximum size of one object in a stream, and of the line before a chunk (bytes): a server may never end a line.
_LONGEST_OBJECT, _LONGEST_HEAD = SOURCE, 1 << 16
# Seconds of silence after which the other machine is asked whether it is there, how often, and how many times.
_KEEP_ALIVE = ((getattr(socket, "TCP_KEEPIDLE", None), 30), (getattr(socket, "TCP_KEEPINTVL", None), 10),
               (getattr(socket, "TCP_KEEPCNT", None), 3))  # fmt: skip


class StreamingResponse:
    """The bytes of an answer.

    Args:
        response: urllib3's response, unread.
    """

    def __init__(self, response: Any) -> None:
        self._response = response
        self._http: Any = response._fp
        self._chunks = ChunkedBody() if self._http.chunked else None
        file: Any = self._http.fp
        # What comes through ssh has no read1; every chunk ends with a line's end.
        self._read: Callable[[int], bytes] = self._http.read1
        if self._chunks is not None:
            self._read = getattr(file, "read1", None) or file.readline
        self._socket = _socket_of(file)
        _remove_read_timeout(self._socket)
        self._shut = False

    def read(self) -> bytes:
        """Wait for more and return what came; nothing at the end of the answer.

        Raises:
            ConnectionError: the answer broke off.
            OSError: the connection failed.
        """
        while self._chunks is None or not self._chunks.ended:
            data = b"" if self._shut else self._read(_READ)
            if not data:
                if self._chunks is None or self._shut:
                    return b""
                raise ConnectionResetError("the connection broke during an answer")
            if self._chunks is not None:
                data = self._chunks.feed(data)
            if data:
                return data
        return b""

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects that the answer is made of, as they come, one a line."""
        rest = b""
        while data := self.read():
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_OBJECT:
                raise ConnectionResetError(f"a line of an answer has more than {_LONGEST_OBJECT >> 20} MB")
            yield from (json.loads(line) for line in lines if line.strip())
        if rest.strip() and not self._shut:
            yield json.loads(rest)

    def shut(self) -> None:
        """End the answer at once, a blocked `read` too; may be called from any thread. `close` is still needed."""
        self._shut = True
        with suppress(OSError, AttributeError):
            if isinstance(self._socket, socket.socket):
                # Below TLS: a thread may be reading above it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            else:
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the connection; called where nobody reads."""
        self.shut()
        with suppress(Exception):
            self._response.close()


class ChunkedBody:
    """Takes away what HTTP puts around the chunks of a body."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the last chunk came."""
        self._left = 0
        self._head = b""
        self._is_first = True

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes, and return those that are of the body.

        Raises:
            ConnectionResetError: this is no chunk.
        """
        if self._head:
            data, self._head = self._head + data, b""
        pieces = []
        at, size = 0, len(data)
        while at < size and not self.ended:
            if self._left:
                stop = min(size, at + self._left)
                pieces.append(data[at:stop])
                self._left -= stop - at
                at = stop
                continue
            # A chunk's length stands in a line of its own; what follows a chunk begins with the end of a line.
            end = data.find(b"\r\n", at if self._is_first else at + 2)
            if end < 0:
                self._head = data[at:]
                if len(self._head) > _LONGEST_HEAD:
                    raise ConnectionResetError("the line before a chunk of an answer has no end")
                break
            self._is_first = False
            length = data[at:end].partition(b";")[0].strip()
            if not length or not set(length) <= _HEXADECIMAL:
                raise ConnectionResetError(f"no chunk of an answer begins with {data[at:end]!r:.40}")
            self._left = int(length, 16)
            self.ended = not self._left
            at = end + 2
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _socket_of(file: Any) -> Any:
    """Return the socket, or the ssh channel, that an answer's file reads."""
    raw = getattr(file, "raw", None)
    return getattr(raw, "_sock", None) or getattr(file, "channel", None)


def _remove_read_timeout(connection: Any) -> None:
    """Let reads wait as long as nothing comes, while the other side is there."""
    with suppress(OSError, AttributeError):
        connection.settimeout(None)
    if getattr(connection, "family", None) in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEP_ALIVE:
                if option is not None:
                    connection.setsockopt(socket.IPPROTO_TCP, option, value)
