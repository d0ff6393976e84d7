"""A thread that reads a log for somebody who looks at it."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable


class LogThread(abc.ABC):
    """A daemon thread that can be woken and ended, and tells of one change at a time.

    Args:
        name: of the thread.
        on_change: called in the thread when something is another; not again before `seen`.
    """

    def __init__(self, name: str, on_change: Callable[[], object]) -> None:
        self._on_change = on_change
        self._told = threading.Event()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def seen(self) -> None:
        """Say that the last change is shown: the next one may be told."""
        self._told.clear()

    def look(self) -> None:
        """Look at once at what may have come; without it, that is seen a little later."""
        self._wake.set()

    def close(self) -> None:
        """End the thread; it is not waited for."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the thread's end; return whether it ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @abc.abstractmethod
    def _run(self) -> None: ...

    def _tell_change(self) -> bool:
        """Tell of a change unless one is told and not seen yet."""
        if self._told.is_set() or self._stop.is_set():
            return False
        self._told.set()
        self._on_change()
        return True
