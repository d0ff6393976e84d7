"""Back-off: waits that double up to a limit, with jitter, so that what failed together does not retry together."""

from __future__ import annotations

import random
import threading

# A generator of its own: waits do not change what others draw from the shared one.
_RANDOM = random.Random()  # noqa: S311


def jittered(seconds: float) -> float:
    """Return a time that is up to a fifth longer or shorter, in seconds."""
    return seconds * _RANDOM.uniform(0.8, 1.2)


class Backoff:
    """Waits before retries: the first is given, each is twice the wait before, none is longer than a limit.

    Each wait is jittered by up to a fifth, also the longest one. Not safe for use in several threads.

    Args:
        first: the first wait in seconds.
        longest: the longest wait in seconds, before its jitter.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = min(first, longest)
        self._longest = longest
        self._wait = self._first

    def next(self) -> float:
        """Return the next wait in seconds, and double the wait after it."""
        seconds = self._wait
        self._wait = min(2 * seconds, self._longest)
        return jittered(seconds)

    def reset(self) -> None:
        """Begin again with the first wait, after a success."""
        self._wait = self._first

    def wait(self, stop_event: threading.Event, limit: float | None = None) -> bool:
        """Sleep for the next wait, or until an event is set; return whether it is set.

        Args:
            stop_event: ends the wait.
            limit: the most seconds to sleep this time, such as those until a deadline; None for no limit.
        """
        seconds = self.next()
        return stop_event.wait(seconds if limit is None else max(0.0, min(seconds, limit)))
