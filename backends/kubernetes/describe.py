"""Everything about one job: the job, its pods, and, where that says more, their events; three requests at most."""

from __future__ import annotations

import time
from typing import NamedTuple

from ...specs import NONE, AppState, ReplicaStatus, RoleStatus, is_terminal
from ..endings import signal_of
from ..responses import DescribeAppResponse
from . import labels
from .api_server import ApiError, ApiServer
from .app_def import read_app_def, roles_of
from .causes import event_words, exit_code, job_message, needs_events, not_picked_up, pod_reason, together, waits
from .jobs import Object, Replica, find_job, make_app_id, pods_of, replicas_of, tasks_of
from .launched_with import cfg_of
from .listing import image_of, name_of, uid_of
from .phases import (
    app_state,
    finished_at,
    main_status,
    phase_of,
    pod_state,
    seconds_of,
    started_at,
    submitted_at,
    terminated,
    timeline,
)
from .port_forward import forwarded_ports

# Volcano looks at a new job within seconds.
_PICKED_UP_WITHIN = 10.0
_EVENTS = 500


class JobFacts(NamedTuple):
    """What the server says of one job."""

    job: Object
    pods: dict[str, Object]
    events: dict[str, list[Object]]
    """Warnings by the uid of what they are about, the latest last."""
    queue_exists: bool | None


def look(server: ApiServer, app_id: str, now: float) -> JobFacts | None:
    """Ask for a job and what belongs to it, None when there is no such job.

    Args:
        server: the server.
        app_id: the job.
        now: the time, in seconds since the epoch.

    Raises:
        SchedulerError: the server did not answer.
    """
    job = find_job(server, app_id)
    if job is None:
        return None
    namespace = job["metadata"]["namespace"]
    pods = {one["metadata"]["name"]: one for one in pods_of(server, namespace, job["metadata"]["name"], uid_of(job))}
    state = app_state(job)
    events: dict[str, list[Object]] = {}
    queue_exists = None
    if state is AppState.SUBMITTED and now - submitted_at(job) > _PICKED_UP_WITHIN:
        queue_exists = _queue_exists(server, str((job.get("spec") or {}).get("queue") or "default"))
    elif _needs_events(job, state, pods):
        events = _warnings(server, namespace)
    return JobFacts(job, pods, events, queue_exists)


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
        started_at=started_at(job) or min((one.started_at for one in replicas if one.started_at), default=None),
        finished_at=finished_at(job),
        timeline=timeline(job),
        user=(job["metadata"].get("annotations") or {}).get(labels.USER, ""),
        notes=notes,
        image=image_of(tasks[0]) if tasks else "",
        cfg=cfg_of(job),
    )


def _needs_events(job: Object, state: AppState, pods: dict[str, Object]) -> bool:
    """Tell whether events may say what the job and its pods do not."""
    if is_terminal(state):
        return state is AppState.FAILED and not pods
    if len(pods) < len(replicas_of(job)):
        return phase_of(job) not in ("", "Completing", "Aborting", "Terminating", "Restarting")
    return any(pod_state(pod) is AppState.PENDING and needs_events(pod) for pod in pods.values())


def _warnings(server: ApiServer, namespace: str) -> dict[str, list[Object]]:
    """Return the warnings of a namespace; none where they may not be read: they only say more."""
    try:
        answer = server.request(
            "GET", f"/api/v1/namespaces/{namespace}/events", params={"fieldSelector": "type=Warning", "limit": _EVENTS}
        )
    except ApiError:
        return {}
    found: dict[str, list[Object]] = {}
    items = answer.get("items") or []
    for event in sorted(items, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or "")):
        about = event.get("involvedObject") or {}
        found.setdefault(str(about.get("uid") or ""), []).append(event)
        # A pod group is named after its job.
        found.setdefault(str(about.get("name") or ""), []).append(event)
    return found


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
    told = []
    failed = sorted((one for one in replicas if one.state is AppState.FAILED), key=lambda one: one.finished_at or now)
    if failed:
        told.append(together([(one.reason or "failed", f"{one.role}/{one.id}") for one in failed]))
    if state is AppState.CANCELLED:
        return "; ".join(told) or job_message(job)
    waiting = [one for one in replicas if waits(one.state) and one.reason and not is_terminal(state)]
    # What is said of the job tells why it has no pods.
    with_pod = [one for one in waiting if one.hostname in facts.pods]
    group = "" if with_pod or told else _group_words(facts, state)
    if chosen := with_pod or ([] if group else waiting):
        told.append(together([(one.reason, f"{one.role}/{one.id}") for one in chosen]))
    if told and state is AppState.RUNNING:
        running = sum(one.state is AppState.RUNNING for one in replicas)
        told.append(f"{running} of {len(replicas)} run")
    return "; ".join(told) or job_message(job) or group


def _group_words(facts: JobFacts, state: AppState) -> str:
    """Return what is said of the job itself and of its group, where nothing is said of a pod."""
    if not waits(state) and state is not AppState.FAILED:
        return ""
    uid, name = uid_of(facts.job), facts.job["metadata"]["name"]
    return event_words([*facts.events.get(f"{name}-{uid}", []), *facts.events.get(uid, [])])


def _replicas(facts: JobFacts, state: AppState) -> list[ReplicaStatus]:
    return [
        _replica(replica, pod_name, facts.pods.get(pod_name), state, facts)
        for replica, _, pod_name in replicas_of(facts.job)
    ]


def _replica(replica: Replica, pod_name: str, pod: Object | None, app: AppState, facts: JobFacts) -> ReplicaStatus:
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
    state, reason = app, "its pod is gone: how it ended is not known"
    if waits(app):
        state, reason = AppState.PENDING, "has no pod yet"
    elif app is AppState.RUNNING:
        state, reason = AppState.PENDING, "has no pod: it is being started anew, or was removed"
    elif app is AppState.SUCCEEDED:
        reason = "its pod is gone"
    elif app is AppState.FAILED:
        state = AppState.UNKNOWN
    elif app is AppState.CANCELLED:
        reason = "its pod was ended"
    return ReplicaStatus(replica.number, state, replica.role, pod_name, reason=reason)


def _by_role(replicas: list[ReplicaStatus]) -> list[RoleStatus]:
    roles: dict[str, list[ReplicaStatus]] = {}
    for one in replicas:
        roles.setdefault(one.role, []).append(one)
    return [RoleStatus(role, found) for role, found in roles.items()]


def _places(job: Object) -> dict[str, str]:
    """Return where a job is, for people."""
    spec = job.get("spec") or {}
    found = {"queue": spec.get("queue"), "priority class": spec.get("priorityClassName")}
    return {"namespace": job["metadata"]["namespace"], **{name: str(value) for name, value in found.items() if value}}


def described_now(server: ApiServer, app_id: str) -> tuple[Object, DescribeAppResponse] | None:
    """Return a job and everything about it, None when there is no such job; see `look`."""
    now = time.time()
    facts = look(server, app_id, now)
    if facts is None:
        return None
    described = describe(facts, now)
    described.ports = forwarded_ports(server.context, facts.job, facts.pods)
    return facts.job, described
