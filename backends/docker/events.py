"""Tells of changes as the engine does: one connection for all who want to know."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ...specs import SchedulerError
from ..long_answer import LongAnswer
from ..workspace.engine_answer import ask
from . import labels
from .engine import Engine

if TYPE_CHECKING:
    import docker

_log = logging.getLogger(__name__)

# What changes a row; a shell in a container, for one, does not.
_ACTIONS = (
    "create", "start", "die", "oom", "pause", "unpause", "stop", "restart", "destroy", "rename", "health_status",
)  # fmt: skip
# At most one call in so many seconds: starting 64 replicas makes some hundred events.
_QUIET = 0.1
# An engine that went away is asked again after so many seconds, twice as many each time.
_FIRST_RETRY, _LAST_RETRY = 0.25, 5.0


class EngineEvents:
    """Listens to an engine while there is a subscriber.

    Every method may be called from any thread.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._subscribers: dict[object, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._listener: _Listener | None = None
        self._closed = False

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` whenever containers of apps change, when the engine goes, and when it is back.

        Args:
            on_change: called from a thread of this object, one call for what changes within a tenth of a second.

        Returns:
            what ends it.
        """
        key = object()
        with self._lock:
            if not self._closed:
                self._subscribers[key] = on_change
                if self._listener is None:
                    self._listener = _Listener(self._engine, self._tell)
                    self._listener.start()

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.pop(key, None)
                if not self._subscribers:
                    self._end_listener()

        return unsubscribe

    def close(self) -> None:
        """End it at once; may be called again."""
        with self._lock:
            self._closed = True
            self._subscribers.clear()
            self._end_listener()

    def _end_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _tell(self) -> None:
        with self._lock:
            subscribers = list(self._subscribers.values())
        for on_change in subscribers:
            try:
                on_change()
            except Exception:
                _log.exception("a change could not be told")


class _Listener:
    """The connection, the thread that reads it, and the thread that tells, so that a burst is told once."""

    def __init__(self, engine: Engine, tell: Callable[[], object]) -> None:
        self._engine = engine
        self._tell = tell
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._answer: LongAnswer | None = None

    def start(self) -> None:
        for name, run in (("docker-events", self._listen), ("docker-changes", self._tell_changes)):
            threading.Thread(target=run, name=name, daemon=True).start()

    def close(self) -> None:
        """End both threads; neither is waited for."""
        self._stop.set()
        self._changed.set()
        answer = self._answer
        if answer is not None:
            answer.shut()

    def _tell_changes(self) -> None:
        while True:
            self._changed.wait()
            if self._stop.is_set():
                return
            self._changed.clear()
            self._tell()
            self._stop.wait(_QUIET)

    def _listen(self) -> None:
        retry = _FIRST_RETRY
        was_there = True
        while not self._stop.is_set():
            client: docker.DockerClient | None = None
            began = time.monotonic()
            try:
                with self._engine.in_words():
                    client = self._engine.new_client(None)
                    self._answer = ask(client, "GET", "/events", {"filters": json.dumps(_filters())})
                    if not was_there:
                        self._changed.set()
                    was_there = True
                    self._read(self._answer)
            except (SchedulerError, OSError, ValueError) as error:
                _log.debug("the engine's events broke off: %s", error)
            finally:
                if self._answer is not None:
                    self._answer.close()
                    self._answer = None
                with suppress(Exception):
                    if client is not None:
                        client.close()
            if was_there and not self._stop.is_set():
                # Whoever asks now learns that the engine is away.
                was_there = False
                self._changed.set()
            if time.monotonic() - began > _LAST_RETRY:
                retry = _FIRST_RETRY
            self._stop.wait(retry * random.uniform(0.8, 1.2))  # noqa: S311
            retry = min(2 * retry, _LAST_RETRY)

    def _read(self, answer: LongAnswer) -> None:
        # It may have been closed while it was asked for.
        while not self._stop.is_set() and answer.read():
            self._changed.set()


def _filters() -> dict[str, list[str]]:
    return {"type": ["container"], "label": [labels.APP_ID], "event": list(_ACTIONS)}
