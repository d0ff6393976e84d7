"""The rows of all jobs: listed once, then kept by a watch, which costs no requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...specs.errors import SchedulerError
from ...specs.status import NONE, AppState, is_terminal
from ..kube.api_server import ApiError
from ..kube.causes import LOOKED_AT_S
from ..kube.objects import KubernetesObject, dig, name_of, owners_of, uid_of
from ..kube.reflector import Reflector
from ..shared.changes import Subscribers
from ..types import DescribeAppResponse, ListAppResponse
from . import labels
from .job_kind import JobKind, joined_state
from .jobs import Jobs
from .listed_pods import ListedPod, ListedPods, row_with_pods
from .times import submitted_at

_log = logging.getLogger(__name__)

# First starts that are kept of jobs that are gone.
_MAX_GONE = 1_000
# A pod is owned by a Job, that by a JobSet, that by a TrainJob; owners may form a circle.
_MAX_OWNERS = 4


class Known(NamedTuple):
    """What the description of a job adds to its row.

    Attributes:
        state: the state that the job was in; the rest holds in this state only.
        reason: why it is in it.
        finished_at: when it ended, in seconds since the epoch; None if that is unknown.
        started_at: when its first pod started, in seconds since the epoch; None if that is unknown.
        seen: the state that its pods tell, and the job's version then.
    """

    state: AppState
    reason: str = ""
    finished_at: float | None = None
    started_at: float | None = None
    seen: tuple[AppState | None, str] = (None, "")

    def put_into(self, row: ListAppResponse, version: str = "") -> ListAppResponse:
        """Return the row of the job, which has this version, with what is known."""
        if row.state not in (self.state, self.seen[0]):
            return row
        state = self.seen[0] if self.seen[1] == version else None
        return replace(
            row,
            state=row.state if state is None else state,
            msg=self.reason or row.msg,
            started_at=self.started_at or row.started_at,
            finished_at=row.finished_at or self.finished_at,
        )


class ListedJob(NamedTuple):
    """What is kept of a listed job.

    Attributes:
        needs_pods: whether only its pods tell if it runs.
        late: the same, with who should look at it and has not in the message; None once somebody has.
    """

    row: ListAppResponse
    uid: str
    version: str
    owners: frozenset[str] = frozenset()
    kind: JobKind | None = None
    needs_pods: bool = False
    late: ListedJob | None = None


def row_of(kind: JobKind, job: KubernetesObject) -> ListAppResponse:
    """Return the row of a job, as far as a list says it."""
    status = kind.status(job)
    state = status.state
    template = first_template(kind, job)
    return ListAppResponse(
        app_id=kind.app_id(job),
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
        kind=kind.word,
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
    """The jobs of several kinds and namespaces; every method may be called from any thread.

    Args:
        find_kinds: asks the server which kinds of jobs it has.
        namespace: the first namespace; all of them if empty.
    """

    def __init__(self, find_kinds: Callable[[], Sequence[Jobs]], namespace: str) -> None:
        self._find_kinds = find_kinds
        self._known: dict[str, Known] = {}
        self._started: dict[str, float] = {}
        self._lock = threading.RLock()
        self._on_change: Callable[[], None] | None = None
        self._namespaces = [namespace]
        # By namespace and prefix of the kind.
        self._reflectors: dict[tuple[str, str], Reflector[ListedJob]] = {}
        # What the server refused to list, which is logged once.
        self._refused: set[tuple[str, str]] = set()
        self._pods = ListedPods(lambda: (self._on_change or int)())
        self._subscribers = Subscribers("kubernetes-watch", self._start)

    @property
    def is_watched(self) -> bool:
        """Whether somebody subscribed."""
        return self._on_change is not None

    @property
    def is_current(self) -> bool:
        """Whether watches keep the rows of all namespaces and kinds."""
        with self._lock:
            return bool(self._reflectors) and all(one.is_current for one in self._reflectors.values())

    def add(self, namespace: str) -> None:
        """List the jobs of this namespace as well."""
        with self._lock:
            if "" not in self._namespaces and namespace not in self._namespaces:
                self._namespaces.append(namespace)
                if self._reflectors:
                    self._open_reflectors()

    def rows(self) -> list[ListAppResponse]:
        """Return every job, the latest first, without a request while a watch holds.

        A job that another listed job made has no row.

        Raises:
            ApiError, BackendUnavailableError: the server is away, or no namespace may be listed.
        """
        found: dict[str, ListedJob] = {}
        waiting: set[str] = set()
        refused: list[ApiError] = []
        reflectors = self._open_reflectors()
        for key, reflector in reflectors.items():
            try:
                items = reflector.items()
            except ApiError as error:
                refused.append(error)
                if key not in self._refused:
                    self._refused.add(key)
                    _log.warning("the %ss of %s are not listed: %s", key[1] or "job", key[0] or "all namespaces", error)
            else:
                self._refused.discard(key)
                found |= items
                if any(one.needs_pods for one in items.values()):
                    waiting.add(key[0])
        if len(refused) == len(reflectors):
            raise refused[0]
        if len(self._started) > len(found) + _MAX_GONE:
            self._started = {uid: at for uid, at in self._started.items() if uid in found}
        self._drop_refused({namespace for namespace, _ in reflectors.keys() - self._refused})
        self._add_pods(found, waiting)
        return sorted(self._fold(found), key=lambda row: row.submitted_at or 0.0, reverse=True)

    def _add_pods(self, found: dict[str, ListedJob], namespaces: Collection[str]) -> None:
        """Add to jobs what the pods of these namespaces tell, and who has not looked at them in time."""
        made: dict[str, list[ListedPod]] = {}
        for namespace in namespaces:
            for pod in self._pods.of(self._find_kinds()[0].server, namespace, self.is_watched):
                owners: Collection[str] = pod.owners
                for _ in range(_MAX_OWNERS):
                    owners = [uid for uid in owners if uid in found]
                    for uid in owners:
                        made.setdefault(uid, []).append(pod)
                    owners = {uid for owner in owners for uid in found[owner].owners}
        created_before = time.time() - LOOKED_AT_S
        for uid, listed in found.items():
            if listed.needs_pods and uid in made:
                found[uid] = listed._replace(row=row_with_pods(listed.row, made[uid]))
            elif listed.late is not None and (listed.row.submitted_at or created_before) < created_before:
                found[uid] = listed.late

    def _fold(self, found: Mapping[str, ListedJob]) -> Iterator[ListAppResponse]:
        """Yield the rows of the jobs that no other job made, some with the state of the newest job that they made."""
        newest: dict[str, ListedJob] = {}
        made: dict[str, list[ListAppResponse]] = {}
        tops = []
        for listed in found.values():
            makers = [uid for uid in listed.owners if uid in found]
            if not makers:
                tops.append(listed)
            for uid in makers:
                made.setdefault(uid, []).append(listed.row)
                if uid not in newest or (listed.row.submitted_at or 0) > (newest[uid].row.submitted_at or 0):
                    newest[uid] = listed
        for listed in tops:
            if listed.kind is not None and listed.kind.joins_children and listed.uid in made:
                listed = listed._replace(row=_joined_row(listed.row, made[listed.uid]))
            row = self._known_row(listed)
            child = newest.get(listed.uid)
            if child and listed.kind is not None and listed.kind.shows_newest_child:
                own = self._known_row(child)
                row = replace(
                    own, app_id=row.app_id, name=row.name, msg=row.msg or own.msg, notes=row.notes, foreign=True
                )
            yield row

    def _drop_refused(self, readable: Collection[str]) -> None:
        """Give up the kinds that may not be listed in namespaces where others may."""
        with self._lock:
            for key in self._refused & self._reflectors.keys():
                if key[0] in readable:
                    self._reflectors.pop(key).close()

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes, see `Subscribers.subscribe`; from then on watches keep the rows."""
        return self._subscribers.subscribe(on_change)

    def learn(self, kind: JobKind, job: KubernetesObject, described: DescribeAppResponse) -> None:
        """Put what a description found out into the row of its job."""
        uid, reason = uid_of(job), "" if described.msg == NONE else described.msg
        seen = described.state, version_of(job)
        started_at = self._first_start(uid, described.started_at) if kind.moves_start else described.started_at
        self._known[uid] = Known(kind.state(job), reason, described.finished_at, started_at, seen)

    def _first_start(self, uid: str, started_at: float | None) -> float | None:
        """Return the earliest start that was seen of a job: a controller may move it when pods come and go."""
        known = self._started.get(uid)
        if started_at is not None and (known is None or started_at < known):
            self._started[uid] = known = started_at
        return known

    def _known_row(self, listed: ListedJob) -> ListAppResponse:
        known = self._known.get(listed.uid)
        row = known.put_into(listed.row, listed.version) if known else listed.row
        if listed.kind is None or not listed.kind.moves_start or row.started_at is None:
            return row
        first = self._first_start(listed.uid, row.started_at)
        return row if first == row.started_at else replace(row, started_at=first)

    def version(self, app_id: str) -> str:
        """Return the version of a job that a watch keeps; empty if no watch holds, or there is no such job."""
        return self._listed(app_id, current=True).version

    def uid(self, app_id: str) -> str:
        """Return the uid of the job that was listed; empty if there was none."""
        return self._listed(app_id).uid

    def close(self) -> None:
        """End every watch."""
        self._subscribers.close()

    def _start(self, on_change: Callable[[], None]) -> _Watch:
        with self._lock:
            self._on_change = on_change
            # Those that were listed do not run.
            self._close_reflectors()
        return _Watch(self._open_quietly, self._stop)

    def _open_quietly(self) -> None:
        try:
            self._open_reflectors()
        except SchedulerError as error:
            # The next list tries it again, and shows the error.
            _log.debug("the kinds of jobs are not known: %s", error)

    def _stop(self) -> None:
        """End the watches; the rows are listed from now on."""
        with self._lock:
            self._on_change = None
            self._close_reflectors()

    def _open_reflectors(self) -> dict[tuple[str, str], Reflector[ListedJob]]:
        """Return a reflector for each namespace and kind; they run while somebody subscribes."""
        kinds = self._find_kinds()
        with self._lock:
            for namespace in self._namespaces:
                for jobs in kinds:
                    key = namespace, jobs.kind.prefix
                    if key in self._reflectors or (key in self._refused and self._reflectors):
                        continue
                    self._reflectors[key] = made = self._reflector(jobs, namespace)
                    if self.is_watched:
                        made.start("kubernetes-jobs")
            return dict(self._reflectors)

    def _close_reflectors(self) -> None:
        for reflector in self._reflectors.values():
            reflector.close()
        self._reflectors = {}
        self._pods.close()

    def _reflector(self, jobs: Jobs, namespace: str) -> Reflector[ListedJob]:
        return Reflector(
            jobs.server,
            jobs.kind.path(namespace),
            lambda item: _read(jobs.kind, item, namespace),
            on_change=lambda: (self._on_change or int)(),
        )

    def _listed(self, app_id: str, current: bool = False) -> ListedJob:
        with self._lock:
            reflectors = [one for one in self._reflectors.values() if one.is_current or not current]
        known = (listed for reflector in reflectors for listed in reflector.known().values())
        return next((listed for listed in known if listed.row.app_id == app_id), ListedJob(_NO_ROW, "", ""))


def _joined_row(row: ListAppResponse, others: Sequence[ListAppResponse]) -> ListAppResponse:
    """Return one row for a job and its further parts."""
    rows = [row, *others]
    state = joined_state([one.state for one in rows])
    ends = [one.finished_at for one in rows if one.finished_at is not None]
    counts: dict[str, Any] = {name: sum(getattr(one, name) or 0 for one in rows) for name in _COUNTS}
    finished_at = max(ends, default=None) if is_terminal(state) else None
    message = next(filter(None, (one.msg for one in rows)), "")
    return replace(row, state=state, finished_at=finished_at, msg=message, **counts)


_COUNTS = ("replicas_running", "replicas_wanted", "replicas_succeeded")
_NO_ROW = ListAppResponse("", AppState.UNKNOWN)


def _read(kind: JobKind, item: Any, namespace: str) -> ListedJob | None:
    job = kind.checked(item)
    if job is None:
        _log.warning("a job without a usable name is not shown: %.300r", item)
        return None
    row = row_of(kind, job)
    # Jobs of Kubernetes' own kinds name no user: those of the namespace that a user lists are the user's.
    row.foreign = row.foreign and not (namespace and kind.prefix and not kind.shows_newest_child)
    owners = frozenset(owners_of(job)) - {""}
    listed = ListedJob(row, uid_of(job), version_of(job), owners, kind, kind.needs_pods(job))
    if row.state is not AppState.SUBMITTED:
        return listed
    return listed._replace(late=listed._replace(row=replace(row, msg=row.msg or kind.not_looked_at(job))))


class _Watch:
    """What `Subscribers` ends; the reflectors have threads of their own."""

    def __init__(self, listen: Callable[[], None], close: Callable[[], None]) -> None:
        self.listen = listen
        self.close = close


def version_of(job: KubernetesObject) -> str:
    """Return an object's version, which each change of it changes."""
    return job["metadata"].get("resourceVersion", "")
