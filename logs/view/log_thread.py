"""The base of the threads that read a log for a widget."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable


class LogThread(abc.ABC):
    """A daemon thread that can be woken and ended, and notifies of one change at a time.

    Args:
        name: the thread's name.
        on_change: called in the thread when something changed; not again before `acknowledge`.
    """

    def __init__(self, name: str, on_change: Callable[[], object]) -> None:
        self._on_change = on_change
        self._unacknowledged = threading.Event()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def acknowledge(self) -> None:
        """Allow the next notification: the last change is shown."""
        self._unacknowledged.clear()

    def poll_now(self) -> None:
        """Poll at once; without it, changes are noticed a little later."""
        self._wake.set()

    def close(self) -> None:
        """End the thread without waiting for it."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the thread's end; return whether it ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @abc.abstractmethod
    def _run(self) -> None: ...

    def _notify(self) -> bool:
        """Notify of a change, unless the last notification is not acknowledged; return whether it did."""
        if self._unacknowledged.is_set() or self._stop.is_set():
            return False
        self._unacknowledged.set()
        self._on_change()
        return True
