"""The apps that end with the process that launched them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class LaunchedApps:
    """Ids of the apps that were launched here and not detached.

    Args:
        end: ends all of them; called on SIGTERM and SIGINT.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._ids: dict[str, None] = {}
        self._end = end
        self._previous: dict[int, Any] = {}

    def add(self, app_id: str) -> None:
        self._ids[app_id] = None

    def discard(self, app_id: str) -> None:
        self._ids.pop(app_id, None)

    def ids(self) -> list[str]:
        """Return the ids, in the order of launches."""
        return list(self._ids)

    def handle_signals(self) -> None:
        """End the apps on a signal, then call the previous handler; only the main thread can set handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if previous not in (None, signal.SIG_IGN):
                self._previous[number] = previous
                signal.signal(number, self._on_signal)

    def restore_signals(self) -> None:
        """Restore the previous handlers, except where someone else has replaced ours."""
        if threading.current_thread() is threading.main_thread():
            for number, previous in self._previous.items():
                if signal.getsignal(number) == self._on_signal:
                    signal.signal(number, previous)
            self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._end()
        previous = self._previous.get(number, signal.SIG_DFL)
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
