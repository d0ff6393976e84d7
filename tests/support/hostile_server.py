"""A server on loopback that sends bytes without a limit: answers that no real engine or API server gives."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

# What is sent over a connection: pieces, each sent when the one before was taken.
Script = Callable[[bytes], Iterator[bytes]]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def repeat(piece: bytes, pause_s: float = 0.0) -> Iterator[bytes]:
    """Yield a piece again and again."""
    while True:
        yield piece
        time.sleep(pause_s)


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def then(*pieces: bytes, last: Iterable[bytes] = ()) -> Iterator[bytes]:
    """Yield pieces, then those of an iterator."""
    yield from pieces
    yield from last


@contextmanager
def hostile_server(script: Script) -> Iterator[str]:
    """Serve a script, which gets the head of a request; give the address, ``host:port``."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while head := connection.recv(65536):
                    for piece in script(head):
                        connection.sendall(piece)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
