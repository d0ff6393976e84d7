"""Changes of an engine's containers: one connection for all subscribers."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ...specs import SchedulerError
from ..docker_engine.client import Engine
from ..docker_engine.streams import ask
from ..shared.changes import Subscribers, retry_backoff
from ..shared.streaming_response import StreamingResponse
from . import labels

if TYPE_CHECKING:
    import docker

_log = logging.getLogger(__name__)

# Actions that change a row; a shell in a container does not.
_ACTIONS = (
    "create", "start", "die", "oom", "pause", "unpause", "stop", "restart", "destroy", "rename", "health_status",
)  # fmt: skip
# A connection that held for so many seconds worked.
_WORKED = 5.0


def engine_events(engine: Engine) -> Subscribers:
    """Return the subscription to changes of an engine's apps."""
    return Subscribers("docker-events", lambda on_change: EngineListener(engine, on_change))


class EngineListener:
    """Calls at every change of an engine's containers, when the engine goes, and when it is back.

    Args:
        engine: the engine.
        on_change: called in the thread that listens.
    """

    def __init__(self, engine: Engine, on_change: Callable[[], None]) -> None:
        self._engine = engine
        self._on_change = on_change
        self._stop = threading.Event()
        self._answer: StreamingResponse | None = None

    def close(self) -> None:
        """End it; not waited for."""
        self._stop.set()
        answer = self._answer
        if answer is not None:
            answer.shut()

    def listen(self) -> None:
        """Listen until `close`."""
        backoff = retry_backoff()
        was_there = True
        while not self._stop.is_set():
            client: docker.DockerClient | None = None
            began = time.monotonic()
            try:
                with self._engine.translate_errors():
                    client = self._engine.new_client(None)
                    self._answer = ask(client, "GET", "/events", {"filters": json.dumps(_filters())})
                    if not was_there:
                        self._on_change()
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
                self._on_change()
            if time.monotonic() - began > _WORKED:
                backoff.reset()
            backoff.wait(self._stop)

    def _read(self, answer: StreamingResponse) -> None:
        # It may have been closed while it was asked for.
        while not self._stop.is_set() and answer.read():
            self._on_change()


def _filters() -> dict[str, list[str]]:
    return {"type": ["container"], "label": [labels.APP_ID], "event": list(_ACTIONS)}
