"""Everything about one job: the job, its pods, and, where they say more, events."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from ...specs.errors import NotAllowedError, SchedulerError
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus, is_terminal
from ..kube.api_server import ApiError, ApiServer
from ..kube.objects import KubernetesObject, checked_event, dig, events_path, items_of, name_of, pods_path, uid_of
from ..kube.pods import exit_code, main_container, main_status, pod_state, run_of, seconds_of, terminated
from ..kube.reflector import Reflector
from ..shared.exit_reasons import signal_of
from ..types import DescribeAppResponse, PublishedPort
from . import labels
from .app_def import read_app_def
from .job_kind import JobFacts, JobKind, Replica
from .jobs import Jobs
from .listing import first_template, image_of, launched_name
from .times import submitted_at

_MAX_EVENTS = 500
# Jobs whose pods are watched: those that were described last.
_MAX_FOLLOWED = 3
# Events are asked for again once the job or a pod changed; else after this time, then after twice as long each time.
_EVENTS_S = 10.0


def forwarded_ports(context: str, namespace: str, pods: Mapping[Replica, KubernetesObject]) -> list[PublishedPort]:
    """Return the ports of running replicas, each with the command that makes it reachable.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        namespace: the pods'.
        pods: the pod of each replica.
    """
    ports: list[PublishedPort] = []
    for replica, pod in pods.items():
        own = main_container(pod)
        if not run_of(pod, own).is_running:
            continue
        containers = dig(pod, "spec", "containers") or []
        for port in next((one.get("ports") or [] for one in containers if one["name"] == own), []):
            number = port.get("containerPort", 0)
            if not number or port.get("protocol", "TCP") != "TCP":
                continue
            local = _free_port(number, {one.host_port for one in ports})
            command = port_forward_line(context, namespace, name_of(pod), number, local)
            name = port.get("name", "")
            ports.append(PublishedPort(replica.role, replica.number, name, number, "", local, command))
    return ports


def port_forward_line(context: str, namespace: str, pod: str, port: int, local: int) -> str:
    """Return the command that forwards a local port to a port of a pod."""
    of_context = ["--context", context] if context else []
    return shlex.join(
        ["kubectl", *of_context, "--namespace", namespace, "port-forward", f"pod/{pod}", f"{local}:{port}"]
    )


def _free_port(port: int, taken: Collection[int]) -> int:
    """Return the local port for a port of a pod: the same if possible, since all may be forwarded at a time."""
    # Ports below 1024 belong to the administrator.
    local = port if port >= 1024 else port + 8000
    while local in taken:
        local += 1
    return local


def by_object(events: Iterable[KubernetesObject]) -> dict[str, list[KubernetesObject]]:
    """Return events by the uid, and by the name, of what they are about."""
    found: dict[str, list[KubernetesObject]] = {}
    for event in events:
        for field in ("uid", "name"):
            if key := dig(event, "involvedObject", field):
                found.setdefault(key, []).append(event)
    return found


def read_events(server: ApiServer, namespace: str, selectors: Iterable[str]) -> dict[str, list[KubernetesObject]]:
    """Return the events that field selectors choose; none where they may not be read: they only say more."""
    events = []
    for selector in selectors:
        params = {"fieldSelector": selector, "limit": _MAX_EVENTS}
        try:
            answer = server.request("GET", events_path(namespace), params=params)
        except ApiError:
            continue
        events += [event for item in items_of(answer) if (event := checked_event(item)) is not None]
    return by_object(events)


def read_facts(jobs: Jobs, app_id: str, now: float) -> JobFacts | None:
    """Ask for a job and what belongs to it; None if there is no such job.

    Raises:
        SchedulerError: the server did not answer.
    """
    job = jobs.find(app_id)
    return None if job is None else _with_pods(jobs, job, now)


def _with_pods(jobs: Jobs, job: KubernetesObject, now: float) -> JobFacts:
    try:
        pods = jobs.kind.by_replica(job, jobs.pods(job))
    except NotAllowedError as error:
        return JobFacts(job, {}, {}, refusal=str(error))
    return _with_events(jobs, job, pods, now)


def _with_events(jobs: Jobs, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject], now: float) -> JobFacts:
    more = jobs.kind.read_more(jobs.server, job, now)
    selectors = jobs.kind.event_selectors(job, pods)
    return JobFacts(job, pods, read_events(jobs.server, job["metadata"]["namespace"], selectors), more)


def describe(kind: JobKind, facts: JobFacts, now: float, context: str = "") -> DescribeAppResponse:
    """Return everything about a job.

    Args:
        kind: its kind.
        facts: what the server says.
        now: the time, in seconds since the epoch.
        context: the context of the kubeconfig, for commands.
    """
    job = facts.job
    notes: list[str] = []
    kept = read_app_def(job, notes)
    roles = kept.roles if kept else kind.roles(job, notes)
    status = kind.status(job, facts.pods.values())
    state = status.state
    replicas = [
        _replica(kind, replica, facts.pods.get(replica), state, facts, now) for replica, _ in kind.replicas(job)
    ]
    reason = kind.reason(facts, replicas, now)
    if facts.refusal:
        reason = "; ".join(filter(None, (status.message, facts.refusal)))
    template = first_template(kind, job)
    by_role: dict[str, list[ReplicaStatus]] = {}
    for replica in replicas:
        by_role.setdefault(replica.role, []).append(replica)
    namespace = job["metadata"]["namespace"]
    shown_kind = {"kind": kind.word} if kind.prefix else {}
    return DescribeAppResponse(
        app_id=kind.app_id(job),
        state=state,
        num_restarts=status.restarts,
        msg=reason or NONE,
        metadata={**(kept.metadata if kept else {}), "namespace": namespace, **shown_kind, **status.places},
        roles_statuses=[RoleStatus(role, members) for role, members in by_role.items()],
        roles=roles,
        name=kept.name if kept else launched_name(job, template),
        submitted_at=submitted_at(job),
        # A job that fails at once never runs, by its own status.
        started_at=status.started_at
        or min((replica.started_at for replica in replicas if replica.started_at), default=None),
        finished_at=status.finished_at,
        timeline=status.timeline,
        user=dig(job, "metadata", "annotations", labels.USER) or "",
        notes=notes,
        image=image_of(template),
        cfg=kind.cfg(job),
        ports=forwarded_ports(context, namespace, facts.pods),
    )


def _replica(
    kind: JobKind, replica: Replica, pod: KubernetesObject | None, app: AppState, facts: JobFacts, now: float
) -> ReplicaStatus:
    if facts.refusal:
        return ReplicaStatus(replica.number, _UNSEEN.get(app, AppState.UNKNOWN), replica.role, "")
    if pod is None:
        state, reason = kind.without_pod(facts.job, replica) or _WITHOUT_POD.get(app, (app, _NO_POD))
        return ReplicaStatus(replica.number, state, replica.role, "", reason=reason)
    own = main_status(pod)
    state, code, ended = pod_state(pod), exit_code(pod), terminated(own)
    running = dig(own, "state", "running") or {}
    return ReplicaStatus(
        id=replica.number,
        # A pod that is killed with its job is Failed, or gone: nothing of its own went wrong.
        state=AppState.CANCELLED if app is AppState.CANCELLED and state is not AppState.SUCCEEDED else state,
        role=replica.role,
        hostname=name_of(pod),
        hostaddr=dig(pod, "status", "podIP") or None,
        exit_code=code,
        signal=signal_of(code),
        reason=kind.pod_reason(pod, facts.events.get(uid_of(pod), ()), now),
        node=dig(pod, "spec", "nodeName") or "",
        started_at=seconds_of(running.get("startedAt") or ended.get("startedAt")),
        finished_at=None if running else seconds_of(ended.get("finishedAt")),
        restarts=own.get("restartCount") or 0,
    )


# The state of a replica whose pod may not be read, by its job's state.
_UNSEEN = {state: state for state in (AppState.SUBMITTED, AppState.PENDING, AppState.SUCCEEDED, AppState.CANCELLED)}
_NO_POD = "has no pod: it was deleted, or never made"
# The state of a replica whose pod is not there, by its job's state, and why.
_WITHOUT_POD = {
    AppState.SUBMITTED: (AppState.PENDING, "has no pod yet"),
    AppState.PENDING: (AppState.PENDING, "has no pod yet"),
    AppState.RUNNING: (AppState.PENDING, "has no pod: it is being restarted, or was removed"),
    AppState.SUCCEEDED: (AppState.SUCCEEDED, "its pod was deleted"),
    AppState.FAILED: (AppState.UNKNOWN, _NO_POD),
    AppState.CANCELLED: (AppState.CANCELLED, "has no pod: the job was cancelled"),
}


class _Followed(NamedTuple):
    """A job that is described again and again: its pods' reflector, and what was read of it last, and when.

    Attributes:
        changed_at: when the job or a pod last changed.
    """

    pods: Reflector[KubernetesObject]
    facts: JobFacts
    read_at: float
    changed_at: float

    @property
    def events_at(self) -> float:
        """When events are read again if nothing changes."""
        return self.read_at + max(_EVENTS_S, self.read_at - self.changed_at)


def _pods_of(kind: JobKind, job: KubernetesObject) -> tuple[frozenset[str], str]:
    return kind.owners_of_pods(job), kind.pods_selector(job)


class FollowedJobs:
    """Describes jobs; every method may be called from any thread.

    A job that does not change costs no request while the list is watched, but for events of a job that waits.

    Args:
        jobs_of: returns the jobs of the kind that an app id names.
        is_watched: returns whether the pods of jobs are worth a watch.
        version_of: returns the version of a job that a watch keeps, empty if none does.
    """

    def __init__(
        self, jobs_of: Callable[[str], Jobs], is_watched: Callable[[], bool], version_of: Callable[[str], str]
    ) -> None:
        self._jobs_of = jobs_of
        self._is_watched = is_watched
        self._version_of = version_of
        self._followed: dict[str, _Followed] = {}
        self._lock = threading.Lock()

    def describe(self, app_id: str) -> tuple[KubernetesObject, DescribeAppResponse] | None:
        """Return a job and everything about it; None if there is no such job.

        Raises:
            SchedulerError: the server did not answer.
        """
        now, jobs = time.time(), self._jobs_of(app_id)
        facts = self._facts(jobs, app_id, now) if self._is_watched() else read_facts(jobs, app_id, now)
        if facts is None:
            return None
        return facts.job, describe(jobs.kind, facts, now, jobs.server.context)

    def watched(self, app_id: str) -> tuple[KubernetesObject, Mapping[Replica, KubernetesObject]] | None:
        """Return a job and its pods where watches keep both up to date; nothing is asked."""
        with self._lock:
            followed = self._followed.get(app_id)
        if followed is None or not followed.pods.is_current:
            return None
        job = followed.facts.job
        if self._version_of(app_id) != job["metadata"].get("resourceVersion"):
            return None
        return job, self._jobs_of(app_id).kind.by_replica(job, followed.pods.known().values())

    def forget(self, app_id: str) -> None:
        """Read a job again when it is described next."""
        with self._lock:
            followed = self._followed.pop(app_id, None)
        if followed is not None:
            followed.pods.close()

    def close(self) -> None:
        """End all watches."""
        for app_id in list(self._followed):
            self.forget(app_id)

    def _facts(self, jobs: Jobs, app_id: str, now: float) -> JobFacts | None:
        kind = jobs.kind
        with self._lock:
            followed = self._followed.get(app_id)
        job, version = (followed.facts.job, self._version_of(app_id)) if followed else (None, "")
        if job is None or not version or version != job["metadata"].get("resourceVersion"):
            job = jobs.find(app_id)
        if job is None or (followed and _pods_of(kind, followed.facts.job) != _pods_of(kind, job)):
            self.forget(app_id)
            followed = None
        if job is None:
            return None
        if is_terminal(kind.state(job)):
            # Only its pods change, and they go.
            self.forget(app_id)
            return _with_pods(jobs, job, now)
        reflector = followed.pods if followed else self._follow(jobs, job)
        try:
            pods = kind.by_replica(job, reflector.items().values())
            is_same = followed is not None and followed.facts[:2] == (job, pods)
            if followed and is_same and now < followed.events_at:
                return followed.facts
            facts = _with_events(jobs, job, pods, now)
        except SchedulerError as error:
            if followed is None:
                reflector.close()
            if isinstance(error, NotAllowedError):
                return JobFacts(job, {}, {}, refusal=str(error))
            raise
        self._keep(app_id, _Followed(reflector, facts, now, followed.changed_at if followed and is_same else now))
        return facts

    def _follow(self, jobs: Jobs, job: KubernetesObject) -> Reflector[KubernetesObject]:
        owners, selector = _pods_of(jobs.kind, job)
        made = Reflector(
            jobs.server,
            pods_path(job["metadata"]["namespace"]),
            lambda item: jobs.read_pod(item, owners),
            {"labelSelector": selector},
        )
        made.start("kubernetes-pods")
        return made

    def _keep(self, app_id: str, followed: _Followed) -> None:
        with self._lock:
            before = self._followed.pop(app_id, None)
            dropped = [before] if before and before.pods is not followed.pods else []
            self._followed[app_id] = followed
            while len(self._followed) > _MAX_FOLLOWED:
                dropped.append(self._followed.pop(next(iter(self._followed))))
        for old in dropped:
            old.pods.close()
