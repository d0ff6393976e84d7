"""The namespaces whose jobs are listed: the one that was chosen, and those that jobs were launched in since."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ...logs.text.sanitize import plain
from ...specs import SchedulerError
from ..types import ListAppResponse
from .api_server import ApiError, ApiServer
from .contexts import read_contexts
from .jobs import split_app_id
from .shapes import KubernetesObject
from .watching import JobRows

# Where the objects are that an option names; more than so many are no help to choose from.
_PLACES = {
    "namespace": "/api/v1/namespaces",
    "queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "service_account": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "priority_class": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_MOST = 200


def known_values(server: ApiServer) -> dict[str, list[str]]:
    """List the values that run options can have; none of what cannot be listed.

    Args:
        server: the server.
    """
    values: dict[str, list[str]] = {}
    try:
        values["context"] = list(read_contexts().names)
        for option, path in _PLACES.items():
            if names := _names(server, path.format(namespace=server.namespace)):
                values[option] = names
    except (SchedulerError, ValueError):
        return values
    return values


def _names(server: ApiServer, path: str) -> list[str]:
    try:
        items = server.request("GET", path, params={"limit": _MOST}).get("items") or []
    except ApiError:
        return []
    return [name for item in items if plain(name := str(item["metadata"]["name"])) == name]


_log = logging.getLogger(__name__)


class WatchedNamespaces:
    """The rows of several namespaces; every method may be called from any thread.

    Args:
        server: the server.
        namespace: the first one; all of them where empty.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._all = not namespace
        self._rows = {namespace: JobRows(server, namespace)}
        self._subscribers: dict[object, tuple[Callable[[], object], list[Callable[[], object]]]] = {}
        # Those that the server refused to list, which is logged once.
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def add(self, namespace: str) -> None:
        """List the jobs of this namespace as well."""
        with self._lock:
            if self._all or namespace in self._rows:
                return
            self._rows[namespace] = added = JobRows(self._server, namespace)
            for on_change, ends in self._subscribers.values():
                ends.append(added.subscribe(on_change))

    def rows(self) -> list[ListAppResponse]:
        """Return every job, the latest first; a namespace that may not be listed hides no other; see `JobRows.rows`.

        Raises:
            ApiError, BackendUnavailableError: the server is not there, or no namespace may be listed.
        """
        with self._lock:
            watched = list(self._rows.items())
        rows: list[ListAppResponse] = []
        refused: list[ApiError] = []
        for namespace, jobs in watched:
            try:
                rows += jobs.rows()
            except ApiError as error:
                refused.append(error)
                if namespace not in self._refused:
                    self._refused.add(namespace)
                    _log.warning("the jobs of %s are not listed: %s", namespace or "all namespaces", error)
            else:
                self._refused.discard(namespace)
        if len(refused) == len(watched):
            raise refused[0]
        return sorted(rows, key=lambda row: row.submitted_at or 0.0, reverse=True)

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes; see `JobRows.subscribe`."""
        key = object()
        with self._lock:
            self._subscribers[key] = on_change, [rows.subscribe(on_change) for rows in self._rows.values()]

        def unsubscribe() -> None:
            with self._lock:
                _, ends = self._subscribers.pop(key, (None, []))
            for end in ends:
                end()

        return unsubscribe

    def learn(self, app_id: str, job: KubernetesObject, reason: str, finished_at: float | None = None) -> None:
        """Take note of a job that was looked at; see `JobRows.learn`."""
        self._of(app_id).learn(job, reason, finished_at)

    def version(self, app_id: str) -> str:
        """Return the version of a job that a watch keeps; see `JobRows.version`."""
        return self._of(app_id).version(app_id)

    def uid(self, app_id: str) -> str:
        """Return the uid of the job that was listed; see `JobRows.uid`."""
        return self._of(app_id).uid(app_id)

    def close(self) -> None:
        """End every watch."""
        with self._lock:
            watched = list(self._rows.values())
        for rows in watched:
            rows.close()

    def _of(self, app_id: str) -> JobRows:
        namespace, _ = split_app_id(app_id)
        with self._lock:
            return self._rows.get(namespace) or next(iter(self._rows.values()))
