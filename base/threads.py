"""A thread that reports changes, and a hook for exceptions that end threads, also threads of libraries."""

from __future__ import annotations

import abc
import logging
import threading
from collections.abc import Callable

from .errors import describe_error

_log = logging.getLogger(__name__)


class BackgroundThread(abc.ABC):
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


def report_thread_failures(show: Callable[[str], object]) -> Callable[[], None]:
    """Install a hook that logs and shows every exception that ends a thread.

    Args:
        show: called in the failed thread with a sentence; never called twice with the same one.

    Returns:
        a function that restores the previous hook.
    """
    before = threading.excepthook
    shown: set[str] = set()

    def report(failure: threading.ExceptHookArgs) -> None:
        name = failure.thread.name if failure.thread is not None else "a thread"
        error = failure.exc_value or failure.exc_type()
        _log.error("the thread %s ended", name, exc_info=error)
        sentence = f"{name} stopped: {describe_error(error)}; see the log file"
        if sentence not in shown:
            shown.add(sentence)
            show(sentence)

    def restore() -> None:
        threading.excepthook = before

    threading.excepthook = report
    return restore
