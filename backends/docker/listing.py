"""The list of all apps, by one request whatever their number; and the engine's events that change it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ...specs.errors import SchedulerError
from ...specs.status import AppState, is_terminal
from ..docker_engine.client import Engine
from ..docker_engine.streams import ask
from ..shared.changes import Subscribers, retry_backoff
from ..shared.streaming_response import StreamingResponse
from ..types import ListAppResponse
from . import labels
from .containers import ContainerSummary, all_containers, sort_by_role
from .states import AppSummary, seconds_since_exit, summarize, why

if TYPE_CHECKING:
    import docker


# Actions that change a row; a shell in a container does not.
_ACTIONS = (
    "create", "start", "die", "oom", "pause", "unpause", "stop", "restart", "destroy", "rename", "health_status",
)  # fmt: skip
# A connection that held for so many seconds worked.
_WORKED_S = 5.0


class KnownTimes:
    """When containers ended, in seconds since the epoch: exactly where one was looked at, else as first heard of.

    The list says "Exited (0) 3 hours ago" only; what was heard of while it was new stays.
    """

    def __init__(self) -> None:
        self._finished: dict[str, float] = {}
        self._lock = threading.Lock()

    def learn(self, container_id: str, finished_at: float) -> None:
        """Keep the exact time of a container's end."""
        with self._lock:
            self._finished[container_id] = finished_at

    def finished_at(self, container: ContainerSummary, now: float) -> float | None:
        """Return when a container ended, None while it runs or where it is not known."""
        if container.get("State") != "exited":
            with self._lock:
                self._finished.pop(container["Id"], None)
            return None
        with self._lock:
            known = self._finished.get(container["Id"])
            if known is None and (ago := seconds_since_exit(container)) is not None:
                known = self._finished[container["Id"]] = max(now - ago, float(container.get("Created") or 0))
        return known

    def keep_only(self, containers: list[ContainerSummary]) -> None:
        """Forget the containers that are no more."""
        with self._lock:
            ids = {container["Id"] for container in containers}
            self._finished = {container: at for container, at in self._finished.items() if container in ids}


def list_rows(engine: Engine, times: KnownTimes, host: str) -> list[ListAppResponse]:
    """Return a row for every app, the latest first.

    Args:
        engine: the engine.
        times: what is known of when containers ended.
        host: the machine of the engine.

    Raises:
        SchedulerError: the engine did not answer.
    """
    listed = all_containers(engine)
    now = time.time()
    apps: dict[str, list[ContainerSummary]] = {}
    for container in listed:
        apps.setdefault(container["Labels"][labels.APP_ID], []).append(container)
    times.keep_only(listed)
    rows = [_row(summarize(app_id, sort_by_role(containers)), times, now, host) for app_id, containers in apps.items()]
    return sorted(rows, key=lambda row: row.submitted_at or 0.0, reverse=True)


def _row(app: AppSummary, times: KnownTimes, now: float, host: str) -> ListAppResponse:
    states = [container.state for container in app.replicas]
    ends = [times.finished_at(container, now) for container in app.containers]
    known_ends = [at for at in ends if at is not None]
    ended = is_terminal(app.state) or app.state is AppState.UNKNOWN
    started = any(state is not AppState.SUBMITTED for state in states)
    failed = [place for place, state in enumerate(states) if state is AppState.FAILED]
    return ListAppResponse(
        app_id=app.app_id,
        state=app.state,
        name=app.name,
        submitted_at=app.submitted_at,
        # A container is started right after it was created.
        started_at=max(app.submitted_at, float(app.containers[0].get("Created") or 0)) if started else None,
        finished_at=max(known_ends, default=None) if ended else None,
        replicas_running=states.count(AppState.RUNNING),
        replicas_wanted=len(states) + app.missing,
        replicas_succeeded=states.count(AppState.SUCCEEDED),
        user=app.labels.get(labels.USER, ""),
        image=str(app.containers[0].get("Image") or ""),
        msg=why(app, failed=min(failed, key=lambda place: ends[place] or now, default=None)),
        host=host,
    )


_log = logging.getLogger(__name__)


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
            if time.monotonic() - began > _WORKED_S:
                backoff.reset()
            backoff.wait(self._stop)

    def _read(self, answer: StreamingResponse) -> None:
        # It may have been closed while it was asked for.
        while not self._stop.is_set() and answer.read():
            self._on_change()


def _filters() -> dict[str, list[str]]:
    return {"type": ["container"], "label": [labels.APP_ID], "event": list(_ACTIONS)}
