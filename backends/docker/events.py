"""Changes of an engine's apps, from the engine's events."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ...specs.errors import SchedulerError
from ..docker_engine.client import Engine
from ..docker_engine.streams import ask
from ..shared.changes import Subscribers, retry_backoff
from ..shared.streaming_response import StreamingResponse
from . import labels

if TYPE_CHECKING:
    import docker

# Actions that change a row; a shell in a container does not.
_ACTIONS = (
    "create", "start", "die", "oom", "pause", "unpause", "stop", "restart", "destroy", "rename", "health_status",
)  # fmt: skip
# After a connection that held for this long, the next one is tried without delay.
_WORKED_S = 5.0

_log = logging.getLogger(__name__)


def engine_events(engine: Engine) -> Subscribers:
    """Return the subscription to changes of an engine's apps."""
    return Subscribers("docker-events", lambda on_change: EngineListener(engine, on_change))


class EngineListener:
    """Listens to an engine's events.

    Args:
        engine: the engine.
        on_change: called in the listening thread when a container changes, and when the engine goes away or is back.
    """

    def __init__(self, engine: Engine, on_change: Callable[[], None]) -> None:
        self._engine = engine
        self._on_change = on_change
        self._stop = threading.Event()
        self._answer: StreamingResponse | None = None

    def close(self) -> None:
        """End `listen`, without waiting for it."""
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
                # Rows are asked for again, and show that the engine is away.
                was_there = False
                self._on_change()
            if time.monotonic() - began > _WORKED_S:
                backoff.reset()
            backoff.wait(self._stop)

    def _read(self, answer: StreamingResponse) -> None:
        while not self._stop.is_set() and answer.read():
            self._on_change()


def _filters() -> dict[str, list[str]]:
    return {"type": ["container"], "label": [labels.APP_ID], "event": list(_ACTIONS)}
