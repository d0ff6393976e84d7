"""Everything about one job: the job, its pods, and, where they say more, events.

It takes two requests, and one more for each object whose events are asked: the job and its group while pods are
missing, else the first pod that does not say itself why it waits. A namespace may hold thousands of events of other
jobs, so they are never listed without the object that they are about.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus, is_terminal
from ..shared.exit_reasons import signal_of
from ..types import DescribeAppResponse, PublishedPort
from . import labels
from .api_server import ApiError, ApiServer
from .causes import (
    EventSummary,
    exit_code,
    is_gang_only,
    job_message,
    needs_events,
    not_picked_up,
    pod_reason,
    summarize_events,
    together,
    waits,
)
from .jobs import Replica, events_path, find_job, list_pods, make_app_id, replicas_of, tasks_of
from .listing import image_of, name_of, uid_of
from .phases import (
    app_state,
    finished_at,
    main_container,
    main_status,
    phase_of,
    pod_state,
    run_of,
    seconds_of,
    started_at,
    submitted_at,
    terminated,
    timeline,
)
from .request.app_def import read_app_def, roles_of
from .request.pods import cores
from .shapes import KubernetesObject, checked_event, items_of, list_version

# Volcano looks at a new job within seconds.
_PICKED_UP_WITHIN = 10.0
_MOST_EVENTS = 500


def forwarded_ports(context: str, job: KubernetesObject, pods: Mapping[str, KubernetesObject]) -> list[PublishedPort]:
    """Return the ports of a job's running replicas, each with the command that makes it reachable.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        job: the job.
        pods: its pods by name.
    """
    ports: list[PublishedPort] = []
    for replica, _, pod_name in replicas_of(job):
        pod = pods.get(pod_name)
        if pod is None or not run_of(pod, main_container(pod)).is_running:
            continue
        own = main_container(pod)
        containers = (pod.get("spec") or {}).get("containers") or []
        for port in next(
            (container.get("ports") or [] for container in containers if container.get("name") == own), []
        ):
            number = int(port.get("containerPort") or 0)
            if not number or port.get("protocol", "TCP") != "TCP":
                continue
            local = _free_port(number, {one.host_port for one in ports})
            command = port_forward_line(context, job["metadata"]["namespace"], pod_name, number, local)
            name = str(port.get("name") or "")
            ports.append(PublishedPort(replica.role, replica.number, name, number, "", local, command))
    return ports


def port_forward_line(context: str, namespace: str, pod: str, port: int, local: int) -> str:
    """Return the command that forwards a local port to a port of a pod.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        namespace: the pod's.
        pod: its name.
        port: the port within the pod.
        local: the port of the machine that the command is run on.
    """
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


def cfg_of(job: KubernetesObject) -> dict[str, Any]:
    """Return the run options that launch the same again; those that the job does not tell of are left out."""
    spec = job.get("spec") or {}
    tasks = tasks_of(job)
    pod = ((tasks[0].get("template") or {}).get("spec") or {}) if tasks else {}
    account = pod.get("serviceAccountName")
    cfg = {
        "queue": spec.get("queue") or "default",
        "namespace": job["metadata"].get("namespace"),
        "priority_class": spec.get("priorityClassName"),
        # A server names this one where none was.
        "service_account": account if account != "default" else None,
        "reserved_millicpu": _reserved(pod, "cpu", 1e-3),
        "reserved_memmb": _reserved(pod, "memory", 1e6),
    }
    return {name: value for name, value in cfg.items() if value is not None}


def _reserved(pod: KubernetesObject, resource: str, unit: float) -> int | None:
    """Return by how much a container asks for less than it may use, None where it does not say."""
    for container in pod.get("containers") or []:
        resources = container.get("resources") or {}
        limit = cores((resources.get("limits") or {}).get(resource))
        request = cores((resources.get("requests") or {}).get(resource))
        if limit is not None and request is not None:
            return round((limit - request) / unit)
    return None


class JobFacts(NamedTuple):
    """What the server says of one job.

    Attributes:
        job: the job.
        pods: its pods by name.
        events: events by the uid, and by the name, of what they are about.
        queue_exists: whether its queue is there; None where that was not asked, or is not known.
        pods_version: the version of the list of pods, from which a watch goes on; empty where there is none.
        events_version: likewise of events; empty where none were asked.
    """

    job: KubernetesObject
    pods: dict[str, KubernetesObject]
    events: Mapping[str, list[KubernetesObject]]
    queue_exists: bool | None
    pods_version: str = ""
    events_version: str = ""


def look(
    server: ApiServer, app_id: str, now: float, known: Sequence[KubernetesObject] | None = None
) -> JobFacts | None:
    """Ask for a job and what belongs to it, None when there is no such job.

    Args:
        server: the server.
        app_id: the job.
        now: the time, in seconds since the epoch.
        known: the job's events where they are known already, and not asked for.

    Raises:
        SchedulerError: the server did not answer.
    """
    job = find_job(server, app_id)
    if job is None:
        return None
    namespace = job["metadata"]["namespace"]
    read, pods_version = list_pods(server, namespace, job["metadata"]["name"], uid_of(job))
    pods = {pod["metadata"]["name"]: pod for pod in read}
    state = app_state(job)
    events, events_version = list(known or ()), ""
    queue_exists = None
    if is_overdue(job, now):
        queue_exists = _queue_exists(server, str((job.get("spec") or {}).get("queue") or "default"))
    elif known is None:
        for selector in _event_selectors(job, state, pods):
            listed, version = _events_about(server, namespace, selector)
            events += listed
            # The first: what happened after it was read is not in it.
            events_version = events_version or version
    return JobFacts(job, pods, by_object(events), queue_exists, pods_version, events_version)


def is_overdue(job: KubernetesObject, now: float) -> bool:
    """Tell whether Volcano should have looked at a job by now, and has not."""
    return app_state(job) is AppState.SUBMITTED and now - submitted_at(job) > _PICKED_UP_WITHIN


def by_object(events: Iterable[KubernetesObject]) -> dict[str, list[KubernetesObject]]:
    """Return events by the uid, and by the name, of what they are about."""
    events_by_object: dict[str, list[KubernetesObject]] = {}
    for event in events:
        about = event.get("involvedObject") or {}
        for key in {str(about.get("uid") or ""), str(about.get("name") or "")} - {""}:
            events_by_object.setdefault(key, []).append(event)
    return events_by_object


def describe(facts: JobFacts, now: float) -> DescribeAppResponse:
    """Return everything about a job.

    Args:
        facts: what the server says.
        now: the time, in seconds since the epoch.
    """
    job = facts.job
    state = app_state(job)
    notes: list[str] = []
    kept = read_app_def(job, notes)
    roles = kept.roles if kept else roles_of(job, notes)
    replicas = _replicas(facts, state)
    tasks = tasks_of(job)
    retries = (job.get("status") or {}).get("retryCount")
    ended_at = finished_at(job, facts.pods.values())
    return DescribeAppResponse(
        app_id=make_app_id(job),
        state=state,
        num_restarts=retries if isinstance(retries, int) else 0,
        msg=_why(facts, state, replicas, now) or NONE,
        metadata={**(kept.metadata if kept else {}), **_places(job)},
        roles_statuses=_by_role(replicas),
        roles=roles,
        name=kept.name if kept else name_of(job),
        submitted_at=submitted_at(job),
        # A job that fails at once never runs, says Volcano.
        started_at=started_at(job)
        or min((replica.started_at for replica in replicas if replica.started_at), default=None),
        finished_at=ended_at,
        timeline=timeline(job, ended_at),
        user=(job["metadata"].get("annotations") or {}).get(labels.USER, ""),
        notes=notes,
        image=image_of(tasks[0]) if tasks else "",
        cfg=cfg_of(job),
    )


def _event_selectors(job: KubernetesObject, state: AppState, pods: Mapping[str, KubernetesObject]) -> list[str]:
    """Return the field selectors of the events that may say what the job and its pods do not."""
    if is_terminal(state):
        is_silent = state is AppState.FAILED and not pods
        return _job_selectors(job) if is_silent else []
    if phase_of(job) in ("", "Completing", "Aborting", "Terminating", "Restarting"):
        return []
    selectors = []
    waiting = [pod for pod in pods.values() if pod_state(pod) is AppState.PENDING]
    if len(pods) < len(replicas_of(job)) or any(is_gang_only(pod_reason(pod)) for pod in waiting):
        selectors += _job_selectors(job)
    if silent := next((pod for pod in waiting if needs_events(pod)), None):
        selectors.append(f"involvedObject.name={silent['metadata']['name']},involvedObject.uid={uid_of(silent)}")
    return selectors


def _job_selectors(job: KubernetesObject) -> list[str]:
    uid = uid_of(job)
    return [f"involvedObject.uid={uid}", f"involvedObject.name={group_name(job)}"] if uid else []


def group_name(job: KubernetesObject) -> str:
    """Return the name of a job's pod group (volcano: generateRelatedPodGroupName)."""
    return f"{job['metadata']['name']}-{uid_of(job)}"


def _events_about(server: ApiServer, namespace: str, selector: str) -> tuple[list[KubernetesObject], str]:
    """Return events, and their list's version; nothing where they may not be read: they only say more."""
    params = {"fieldSelector": selector, "limit": _MOST_EVENTS}
    try:
        answer = server.request("GET", events_path(namespace), params=params)
    except ApiError:
        return [], ""
    events = [event for item in items_of(answer) if (event := checked_event(item)) is not None]
    return events, list_version(answer)


def _queue_exists(server: ApiServer, name: str) -> bool | None:
    try:
        server.request("GET", f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}")
    except ApiError as error:
        return False if error.status == 404 else None
    return True


def _why(facts: JobFacts, state: AppState, replicas: list[ReplicaStatus], now: float) -> str:
    job = facts.job
    if state is AppState.SUCCEEDED:
        return ""
    if state is AppState.SUBMITTED:
        age = now - submitted_at(job)
        return not_picked_up(job, facts.queue_exists, age) if age > _PICKED_UP_WITHIN else ""
    parts = []
    failed = sorted(
        (replica for replica in replicas if replica.state is AppState.FAILED),
        key=lambda replica: replica.finished_at or now,
    )
    if failed:
        parts.append(together([(replica.reason or "failed", f"{replica.role}/{replica.id}") for replica in failed]))
    if state is AppState.CANCELLED:
        return "; ".join(parts) or job_message(job)
    waiting = [replica for replica in replicas if waits(replica.state) and replica.reason and not is_terminal(state)]
    with_pod = [replica for replica in waiting if replica.hostname in facts.pods]
    group = EventSummary() if parts else _group_summary(facts, state)
    # Why some pods are missing tells more than that the others wait for them.
    if group.is_cause:
        with_pod = [replica for replica in with_pod if not is_gang_only(replica.reason)]
    if chosen := with_pod or ([] if group.text else waiting):
        parts.append(together([(replica.reason, f"{replica.role}/{replica.id}") for replica in chosen]))
    if parts and state is AppState.RUNNING:
        running = sum(replica.state is AppState.RUNNING for replica in replicas)
        parts.append(f"{running} of {len(replicas)} run")
    return "; ".join(parts) or job_message(job) or group.text


def _group_summary(facts: JobFacts, state: AppState) -> EventSummary:
    """Summarise the events of the job itself and of its group."""
    if not waits(state) and state is not AppState.FAILED:
        return EventSummary()
    events = facts.events
    return summarize_events([*events.get(group_name(facts.job), []), *events.get(uid_of(facts.job), [])])


def _replicas(facts: JobFacts, state: AppState) -> list[ReplicaStatus]:
    return [
        _replica(replica, pod_name, facts.pods.get(pod_name), state, facts)
        for replica, _, pod_name in replicas_of(facts.job)
    ]


def _replica(
    replica: Replica, pod_name: str, pod: KubernetesObject | None, app: AppState, facts: JobFacts
) -> ReplicaStatus:
    if pod is None:
        return _without_pod(replica, pod_name, app)
    status, own = pod.get("status") or {}, main_status(pod)
    state = pod_state(pod)
    code = exit_code(pod)
    ended = terminated(own)
    running = (own.get("state") or {}).get("running") or {}
    return ReplicaStatus(
        id=replica.number,
        # A pod that is killed with its job is Failed, or gone: nothing of its own went wrong.
        state=AppState.CANCELLED if app is AppState.CANCELLED and state is not AppState.SUCCEEDED else state,
        role=replica.role,
        hostname=pod_name,
        hostaddr=status.get("podIP") or None,
        exit_code=code,
        signal=signal_of(code),
        reason=pod_reason(pod, facts.events.get(str(pod["metadata"].get("uid") or ""), ())),
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        started_at=seconds_of(running.get("startedAt") or ended.get("startedAt")),
        finished_at=None if running else seconds_of(ended.get("finishedAt")),
        restarts=own.get("restartCount") or 0,
    )


def _without_pod(replica: Replica, pod_name: str, app: AppState) -> ReplicaStatus:
    """Return a replica whose pod is not there yet, or not any more."""
    state, reason = app, "its pod was deleted: how it ended is not known"
    if waits(app):
        state, reason = AppState.PENDING, "has no pod yet"
    elif app is AppState.RUNNING:
        state, reason = AppState.PENDING, "has no pod: it is being restarted, or was removed"
    elif app is AppState.SUCCEEDED:
        reason = "its pod was deleted"
    elif app is AppState.FAILED:
        state = AppState.UNKNOWN
    elif app is AppState.CANCELLED:
        reason = "its pod was ended"
    return ReplicaStatus(replica.number, state, replica.role, pod_name, reason=reason)


def _by_role(replicas: list[ReplicaStatus]) -> list[RoleStatus]:
    roles: dict[str, list[ReplicaStatus]] = {}
    for replica in replicas:
        roles.setdefault(replica.role, []).append(replica)
    return [RoleStatus(role, members) for role, members in roles.items()]


def _places(job: KubernetesObject) -> dict[str, str]:
    """Format where a job is, for people."""
    spec = job.get("spec") or {}
    places = {"queue": spec.get("queue"), "priority class": spec.get("priorityClassName")}
    return {"namespace": job["metadata"]["namespace"], **{name: str(value) for name, value in places.items() if value}}


def describe_facts(server: ApiServer, facts: JobFacts, now: float) -> DescribeAppResponse:
    """Return everything about a job, and the commands that make its ports reachable; see `describe`."""
    described = describe(facts, now)
    described.ports = forwarded_ports(server.context, facts.job, facts.pods)
    return described


def described_now(server: ApiServer, app_id: str) -> tuple[KubernetesObject, DescribeAppResponse] | None:
    """Read a job, and return it and everything about it, None when there is no such job; see `look`."""
    now = time.time()
    facts = look(server, app_id, now)
    return None if facts is None else (facts.job, describe_facts(server, facts, now))
