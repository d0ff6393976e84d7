"""The list of all apps, by one request."""

from __future__ import annotations

import threading
import time

from ...specs.status import AppState, is_terminal
from ..docker_engine.client import Engine
from ..types import ListAppResponse
from . import labels
from .containers import ContainerSummary, all_containers, sort_by_role
from .states import AppSummary, seconds_since_exit, summarize, why


class KnownTimes:
    """When containers ended, in seconds since the epoch: exact for those that were inspected.

    The list only says "Exited (0) 3 hours ago": the first, most exact estimate is kept.
    """

    def __init__(self) -> None:
        self._finished: dict[str, float] = {}
        self._lock = threading.Lock()

    def learn(self, container_id: str, finished_at: float) -> None:
        """Store the exact time of a container's end."""
        with self._lock:
            self._finished[container_id] = finished_at

    def finished_at(self, container: ContainerSummary, now: float) -> float | None:
        """Return when a container ended; None if it runs or the time is unknown."""
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
        """Forget all other containers."""
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
