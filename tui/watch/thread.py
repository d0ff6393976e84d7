"""A thread that asks a backend about something, again and again."""

from __future__ import annotations

import threading


class WatchingThread(threading.Thread):
    """A daemon thread that sleeps between two looks, and can be woken and ended.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._wake = threading.Event()
        self._ended = threading.Event()

    def refresh(self) -> None:
        """Look now."""
        self._wake.set()

    def end(self) -> None:
        """End the thread; a question under way is not waited for."""
        self._ended.set()
        self._wake.set()


class JobWatchingThread(WatchingThread):
    """Looks at one job at a time."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._job: str | None = None

    def watch(self, handle: str | None) -> None:
        """Look at this job from now on, or at none."""
        self._job = handle
        self._wake.set()

    def unwatch(self, handle: str) -> None:
        """Look at this job no longer."""
        if self._job == handle:
            self.watch(None)
