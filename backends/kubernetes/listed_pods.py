"""The pods of listed Jobs: their own counts do not say whether pods that are not ready run, or why they wait."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ...specs.errors import SchedulerError
from ...specs.status import AppState
from ..kube.api_server import ApiError, ApiServer
from ..kube.causes import LOOKED_AT_S, together
from ..kube.objects import checked_pod, name_of, owners_of, pods_path
from ..kube.pods import first_start, pod_state, seconds_of
from ..kube.reflector import Reflector
from ..types import ListAppResponse
from .kinds.batch import BATCH
from .kinds.observed import joined_pods

_log = logging.getLogger(__name__)
# Those that have not ended. Pods without this label belong to kinds that have states of their own.
_SELECTED = {"labelSelector": "job-name", "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


class ListedPod(NamedTuple):
    """What is kept of a pod.

    Attributes:
        name: its name.
        owners: the uids of the objects that own it.
        state: its state; None while it is deleted.
        started_at: when its main container first started, in seconds since the epoch.
        created_at: when it was created, in seconds since the epoch; 0 if that is unknown.
        reason: why it is in its state.
        late_reason: why, once controllers and schedulers have had their time to look at it.
    """

    name: str
    owners: frozenset[str]
    state: AppState | None
    started_at: float | None
    created_at: float
    reason: str
    late_reason: str


def _read(item: Any) -> ListedPod | None:
    pod = checked_pod(item)
    if pod is None:
        return None
    return ListedPod(
        name_of(pod),
        frozenset(owners_of(pod)) - {""},
        None if pod["metadata"].get("deletionTimestamp") else pod_state(pod),
        first_start([pod]),
        seconds_of(pod["metadata"].get("creationTimestamp")) or 0.0,
        BATCH.pod_reason(pod),
        BATCH.pod_reason(pod, (), math.inf),
    )


def row_with_pods(row: ListAppResponse, pods: Iterable[ListedPod]) -> ListAppResponse:
    """Return the row of a job that has not ended with what its pods tell."""
    known, now = [pod for pod in pods if pod.state is not None], time.time()
    states = [pod.state for pod in known if pod.state is not None]
    starts = [pod.started_at for pod in known if pod.started_at is not None]
    reasons = [(pod.late_reason if now - pod.created_at > LOOKED_AT_S else pod.reason, pod.name) for pod in known]
    return replace(
        row,
        state=joined_pods(set(states)) or row.state,
        started_at=row.started_at or min(starts, default=None),
        replicas_running=max(row.replicas_running or 0, states.count(AppState.RUNNING)),
        msg=row.msg or together(sorted(one for one in reasons if one[0])),
    )


class ListedPods:
    """Pods by namespace, watched from the first question on; every method may be called from any thread.

    Args:
        on_change: called when a pod changed.
    """

    def __init__(self, on_change: Callable[[], object]) -> None:
        self._on_change = on_change
        self._reflectors: dict[str, Reflector[ListedPod]] = {}
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def of(self, server: ApiServer, namespace: str, is_watched: bool) -> Iterable[ListedPod]:
        """Return the pods of a namespace, of all if it is empty; none where they are not known, or not yet.

        Args:
            server: the server.
            namespace: the namespace.
            is_watched: whether a watch keeps them from now on; without one they are listed.
        """
        with self._lock:
            if namespace in self._refused:
                return ()
            reflector = self._reflectors.get(namespace)
            if reflector is None:
                reflector = Reflector(server, pods_path(namespace), _read, _SELECTED, self._on_change)
                if is_watched:
                    self._reflectors[namespace] = reflector
                    reflector.start("kubernetes-listed-pods")
        error = reflector.error
        try:
            pods = reflector.known() if is_watched else reflector.items()
        except SchedulerError as refusal:
            error, pods = refusal, {}
        if isinstance(error, ApiError):
            _log.warning("the pods of %s are not listed: %s", namespace or "all namespaces", error)
            with self._lock:
                self._refused.add(namespace)
            reflector.close()
        return pods.values()

    def close(self) -> None:
        """End the watches."""
        with self._lock:
            for reflector in self._reflectors.values():
                reflector.close()
            self._reflectors = {}
