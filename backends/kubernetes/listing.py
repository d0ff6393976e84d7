"""The rows of all jobs: listed once, then kept by a watch, which costs no requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ...specs.status import AppState, is_terminal
from ..kube.api_server import ApiError
from ..kube.objects import KubernetesObject, dig, name_of, uid_of
from ..kube.reflector import Reflector
from ..shared.changes import Subscribers
from ..types import ListAppResponse
from . import labels
from .job_kind import JobKind
from .jobs import Jobs, make_app_id, split_app_id
from .times import submitted_at

_log = logging.getLogger(__name__)


class Known(NamedTuple):
    """What a description of a job found out and a list does not say.

    Attributes:
        state: the state that the job was in; the rest holds in this state only.
        reason: why it is in it.
        finished_at: when it ended, in seconds since the epoch; None if that is unknown.
    """

    state: AppState
    reason: str = ""
    finished_at: float | None = None

    def put_into(self, row: ListAppResponse) -> ListAppResponse:
        """Return the row of the job with what is known."""
        if row.state is not self.state:
            return row
        return replace(row, msg=self.reason or row.msg, finished_at=row.finished_at or self.finished_at)


class ListedJob(NamedTuple):
    """What is kept of a listed job."""

    row: ListAppResponse
    uid: str
    version: str


def row_of(kind: JobKind, job: KubernetesObject) -> ListAppResponse:
    """Return the row of a job, as far as a list says it."""
    status = kind.status(job)
    state = status.state
    template = first_template(kind, job)
    return ListAppResponse(
        app_id=make_app_id(job),
        state=state,
        name=launched_name(job, template),
        submitted_at=submitted_at(job) or None,
        started_at=status.started_at,
        finished_at=status.finished_at,
        # Counts are dropped when a job has ended, and while its pods end.
        replicas_running=0 if is_terminal(state) else status.running,
        replicas_wanted=status.wanted,
        replicas_succeeded=status.wanted if state is AppState.SUCCEEDED else status.succeeded,
        user=dig(job, "metadata", "annotations", labels.USER) or "",
        image=image_of(template),
        msg=status.message,
        foreign=dig(template, "metadata", "labels", labels.MANAGED_BY) != labels.TORCHX,
    )


def first_template(kind: JobKind, job: KubernetesObject) -> KubernetesObject:
    """Return the pod template of a job's first replica; empty if it has none."""
    return next((template for _, template in kind.replicas(job)), {})


def launched_name(job: KubernetesObject, template: KubernetesObject) -> str:
    """Return the name that a job was launched under; the job's own if TorchX did not launch it."""
    named = dig(template, "metadata", "labels") or {}
    return named.get(labels.APP_NAME) or named.get(labels.KUBERNETES_NAME) or name_of(job)


def image_of(template: KubernetesObject) -> str:
    """Return the image of a pod template."""
    containers = dig(template, "spec", "containers") or [{}]
    return str(containers[0].get("image") or "")


class ListedJobs:
    """The jobs of several namespaces; every method may be called from any thread.

    Args:
        jobs: the server and the kind of the jobs.
        namespace: the first namespace; all of them if empty.
    """

    def __init__(self, jobs: Jobs, namespace: str) -> None:
        self._jobs = jobs
        self._known: dict[str, Known] = {}
        self._lock = threading.RLock()
        self._on_change: Callable[[], None] | None = None
        self._reflectors = {namespace: self._reflector(namespace)}
        # Namespaces that the server refused to list, which is logged once.
        self._refused: set[str] = set()
        self._subscribers = Subscribers("kubernetes-watch", self._start)

    @property
    def is_watched(self) -> bool:
        """Whether somebody subscribed."""
        return self._on_change is not None

    @property
    def is_current(self) -> bool:
        """Whether watches keep the rows of all namespaces."""
        with self._lock:
            return all(reflector.is_current for reflector in self._reflectors.values())

    def add(self, namespace: str) -> None:
        """List the jobs of this namespace as well."""
        with self._lock:
            if "" in self._reflectors or namespace in self._reflectors:
                return
            self._reflectors[namespace] = added = self._reflector(namespace)
            if self.is_watched:
                added.start("kubernetes-jobs")

    def rows(self) -> list[ListAppResponse]:
        """Return every job, the latest first, without a request while a watch holds.

        Raises:
            ApiError, BackendUnavailableError: the server is away, or no namespace may be listed.
        """
        with self._lock:
            reflectors = list(self._reflectors.items())
        rows: list[ListAppResponse] = []
        refused: list[ApiError] = []
        for namespace, reflector in reflectors:
            try:
                rows += [self._known_row(listed) for listed in reflector.items().values()]
            except ApiError as error:
                refused.append(error)
                if namespace not in self._refused:
                    self._refused.add(namespace)
                    _log.warning("the jobs of %s are not listed: %s", namespace or "all namespaces", error)
            else:
                self._refused.discard(namespace)
        if len(refused) == len(reflectors):
            raise refused[0]
        return sorted(rows, key=lambda row: row.submitted_at or 0.0, reverse=True)

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes, see `Subscribers.subscribe`; from then on watches keep the rows."""
        return self._subscribers.subscribe(on_change)

    def learn(self, job: KubernetesObject, reason: str, finished_at: float | None = None) -> None:
        """Put what a description found out into the row of its job."""
        self._known[uid_of(job)] = Known(self._jobs.kind.state(job), reason, finished_at)

    def _known_row(self, listed: ListedJob) -> ListAppResponse:
        known = self._known.get(listed.uid)
        return known.put_into(listed.row) if known else listed.row

    def version(self, app_id: str) -> str:
        """Return the version of a job that a watch keeps; empty if no watch holds, or there is no such job."""
        return self._listed(app_id).version if self._reflector_of(app_id).is_current else ""

    def uid(self, app_id: str) -> str:
        """Return the uid of the job that was listed; empty if there was none."""
        return self._listed(app_id).uid

    def close(self) -> None:
        """End every watch."""
        self._subscribers.close()

    def _start(self, on_change: Callable[[], None]) -> _Watch:
        with self._lock:
            self._on_change = on_change
            for reflector in self._reflectors.values():
                reflector.start("kubernetes-jobs")
        return _Watch(self._stop)

    def _stop(self) -> None:
        """End the watches; the rows are listed from now on."""
        with self._lock:
            self._on_change = None
            for namespace, reflector in list(self._reflectors.items()):
                reflector.close()
                self._reflectors[namespace] = self._reflector(namespace)

    def _reflector(self, namespace: str) -> Reflector[ListedJob]:
        return Reflector(
            self._jobs.server, self._jobs.kind.path(namespace), self._read, on_change=lambda: (self._on_change or int)()
        )

    def _read(self, item: Any) -> ListedJob | None:
        job = self._jobs.kind.checked(item)
        if job is None:
            _log.warning("a job without a usable name is not shown: %.300r", item)
            return None
        return ListedJob(row_of(self._jobs.kind, job), uid_of(job), _version_of(job))

    def _listed(self, app_id: str) -> ListedJob:
        known = self._reflector_of(app_id).known().values()
        return next((listed for listed in known if listed.row.app_id == app_id), ListedJob(_NO_ROW, "", ""))

    def _reflector_of(self, app_id: str) -> Reflector[ListedJob]:
        namespace, _ = split_app_id(app_id)
        with self._lock:
            return self._reflectors.get(namespace) or next(iter(self._reflectors.values()))


_NO_ROW = ListAppResponse("", AppState.UNKNOWN)


class _Watch:
    """What `Subscribers` ends; the reflectors have threads of their own."""

    def __init__(self, close: Callable[[], None]) -> None:
        self.close = close

    def listen(self) -> None:
        """Return at once."""


def _version_of(job: KubernetesObject) -> str:
    return job["metadata"].get("resourceVersion", "")
