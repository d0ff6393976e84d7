"""The apps that this process launched, and their end when this process is told to end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class OwnApps:
    """Ids of the apps that were launched here and not detached.

    Args:
        end: called for each of them when a signal says so.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._ids: dict[str, None] = {}
        # A signal may come while this thread holds it.
        self._lock = threading.RLock()
        self._end = end
        self._before: dict[int, Any] = {}

    def add(self, app_id: str) -> None:
        """Take an app in."""
        with self._lock:
            self._ids[app_id] = None

    def discard(self, app_id: str) -> None:
        """Let an app go on by itself."""
        with self._lock:
            self._ids.pop(app_id, None)

    def ids(self) -> list[str]:
        """Return the ids, in the order of launches."""
        with self._lock:
            return list(self._ids)

    def handle_signals(self) -> None:
        """End the apps on SIGTERM and SIGINT, then do what was done before; possible on the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before not in (None, signal.SIG_IGN):
                self._before[number] = before
                signal.signal(number, self._on_signal)

    def restore_signals(self) -> None:
        """Put back what was done on signals before, unless someone else changed it since."""
        if threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                if signal.getsignal(number) == self._on_signal:
                    signal.signal(number, before)
            self._before.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._end()
        before = self._before.get(number, signal.SIG_DFL)
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
