"""A way to a server that can be cut: connections end at once, and none are taken until it is mended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CutProxy:
    """Carries bytes between whoever connects and a server, untouched.

    Args:
        host: the server's.
        port: the server's.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self.taken = 0
        """Connections so far."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def count(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._open) // 2

    def cut(self) -> None:
        """End all connections, and every one that comes from now on."""
        with self._lock:
            self._is_cut = True
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Take connections again."""
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        # A listener that is only closed goes on waiting in its thread.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                if self._is_cut:
                    near.close()
                    far.close()
                    continue
                self.taken += 1
                self._open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            known = one in self._open and other in self._open
            self._open -= {one, other}
        if known:
            return
        one.close()
        other.close()


@contextmanager
def cut_proxy(host: str, port: int) -> Iterator[CutProxy]:
    proxy = CutProxy(host, port)
    try:
        yield proxy
    finally:
        proxy.close()
