"""Tells whoever wants to know that something changed: a thread listens while there is a subscriber."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ...base.backoff import Backoff

_log = logging.getLogger(__name__)

QUIET_S = 0.1
"""Seconds between two calls at least: starting 64 replicas makes some hundred changes."""
FIRST_RETRY_S, LONGEST_RETRY_S = 0.25, 5.0
"""Seconds until a backend that went away is asked again, doubled each time, and the most of them."""


def retry_backoff() -> Backoff:
    """Return the waits before a backend that cannot be reached is asked again."""
    return Backoff(FIRST_RETRY_S, LONGEST_RETRY_S)


class Listener(Protocol):
    """Listens in a thread of its own."""

    def listen(self) -> None:
        """Listen until `close`."""
        ...

    def close(self) -> None:
        """End it, from any thread, a blocked read too."""
        ...


class Subscribers:
    """Those who want to know of changes; every method may be called from any thread.

    Args:
        name: of the threads.
        listener: makes what listens, given what it calls at a change; made anew when the first subscriber comes.
    """

    def __init__(self, name: str, listener: Callable[[Callable[[], None]], Listener]) -> None:
        self._name = name
        self._make = listener
        self._subscribers: dict[object, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._running: tuple[Listener, _Debouncer] | None = None
        self._closed = False

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes from now on.

        Args:
            on_change: called from a thread of this object, one call for what changes within a tenth of a second.

        Returns:
            what ends it.
        """
        key = object()
        with self._lock:
            if not self._closed:
                self._subscribers[key] = on_change
                if self._running is None:
                    self._start()

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.pop(key, None)
                if not self._subscribers:
                    self._end()

        return unsubscribe

    def close(self) -> None:
        """End it at once; may be called again."""
        with self._lock:
            self._closed = True
            self._subscribers.clear()
            self._end()

    def _start(self) -> None:
        debouncer = _Debouncer(self._tell)
        listener = self._make(debouncer.changed.set)
        self._running = listener, debouncer
        threading.Thread(target=self._listen, args=(listener, debouncer), name=self._name, daemon=True).start()
        threading.Thread(target=debouncer.run, name=f"{self._name}-told", daemon=True).start()

    def _listen(self, listener: Listener, debouncer: _Debouncer) -> None:
        """Listen, and again where an error ends that: rows that nobody keeps any more look like good ones."""
        backoff = retry_backoff()
        while not debouncer.stopped.is_set():
            began = time.monotonic()
            try:
                listener.listen()
            except Exception:
                _log.exception("%s ended, and is begun again", self._name)
                debouncer.changed.set()
            else:
                return
            if time.monotonic() - began > LONGEST_RETRY_S:
                backoff.reset()
            backoff.wait(debouncer.stopped)

    def _end(self) -> None:
        if self._running is not None:
            listener, debouncer = self._running
            self._running = None
            debouncer.close()
            listener.close()

    def _tell(self) -> None:
        with self._lock:
            subscribers = list(self._subscribers.values())
        for on_change in subscribers:
            try:
                on_change()
            except Exception:
                _log.exception("a change could not be told")


class _Debouncer:
    """Tells in a thread of its own, so that a burst is told once."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.stopped = threading.Event()
        self.changed = threading.Event()

    def run(self) -> None:
        while True:
            self.changed.wait()
            if self.stopped.is_set():
                return
            self.changed.clear()
            self._tell()
            self.stopped.wait(QUIET_S)

    def close(self) -> None:
        self.stopped.set()
        self.changed.set()
