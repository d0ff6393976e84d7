"""Volcano's jobs as a kind of jobs of the scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ....specs.errors import InvalidRunConfigException
from ....specs.handles import normalize_str
from ....specs.roles import AppDef
from ....specs.status import AppState, ReplicaStatus, is_terminal
from ...kube.api_server import ApiError, ApiServer
from ...kube.causes import LOOKED_AT_S, UNPLACED, is_silent, pod_reason, together, unplaced_reason, waits
from ...kube.objects import KubernetesObject, dig, name_of, uid_of
from ...kube.pod_template import cores
from ...kube.pods import main_container, pod_state, run_of
from ...types import Finding
from ..job_kind import JobFacts, JobKind, JobStatus, Replica
from ..times import submitted_at
from .causes import NOT_PICKED_UP, EventSummary, is_gang_only, job_message, not_picked_up, summarize_events
from .jobs import (
    GROUP,
    JOB_NAME,
    QUEUES,
    TASK,
    VERSION,
    checked_job,
    count_of,
    replica_of_pod,
    replica_of_task,
    replicas_of,
    task_spec,
    tasks_of,
)
from .manifest import app_to_resource
from .names import pod_name
from .phases import app_state, finished_at, phase_of, timeline
from .roles import roles_of

_MAX_QUEUES = 20
# A pod of Volcano's controller, as its own installation labels it.
_CONTROLLER = "/api/v1/namespaces/volcano-system/pods", "app=volcano-controller"
_ENDING = ("Completing", "Aborting", "Terminating")
# Actions of Volcano's controller, and the phases in which it takes them.
_COMMANDS = {"suspend": ("AbortJob", ("Pending", "Running")), "resume": ("ResumeJob", ("Aborted",))}
_TASK_FIELD = re.compile(r"^(?:spec\.)?tasks?\[(?P<index>\d+)\]\.?(?:template\.)?")


class VolcanoJobs(JobKind):
    """Jobs of ``batch.volcano.sh/v1alpha1``."""

    word, prefix = "Volcano job", ""
    moves_start = True
    group, version, resource = GROUP, VERSION, "jobs"
    unknown = (
        f"the cluster has no Volcano: there is no {GROUP}/{VERSION}; leave kind out to launch without it, or let its "
        "administrator install it (https://volcano.sh)"
    )
    explanations = (
        (
            re.compile(r'queues\.scheduling\.volcano\.sh "(?P<queue>[^"]+)" not found'),
            "there is no queue {queue}: choose another one; `kubectl get queues` lists them",
        ),
    )

    checked = staticmethod(checked_job)

    def pods_selector(self, job: KubernetesObject) -> str:
        return f"{JOB_NAME}={name_of(job)}"

    # A job

    state = staticmethod(app_state)

    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        pods = list(pods)
        state, ended_at = app_state(job), finished_at(job, pods)
        makes_pods = not is_terminal(state) and phase_of(job) not in _ENDING
        policies = [policy for one in (job.get("spec", {}), *tasks_of(job)) for policy in one.get("policies", [])]
        places = {"queue": dig(job, "spec", "queue"), "priority class": dig(job, "spec", "priorityClassName")}
        return JobStatus(
            state,
            makes_pods,
            makes_pods and any((policy.get("action") or "").startswith("Restart") for policy in policies),
            timeline(job, ended_at, pods),
            ended_at,
            job_message(job),
            {name: value for name, value in places.items() if value},
            sum(map(count_of, tasks_of(job))),
            *(dig(job, "status", field) or 0 for field in ("running", "succeeded", "retryCount")),
        )

    def cfg(self, job: KubernetesObject) -> dict[str, Any]:
        pod = next(map(task_spec, tasks_of(job)), {})
        account = pod.get("serviceAccountName")
        cfg = {
            "queue": dig(job, "spec", "queue") or "default",
            "namespace": job["metadata"].get("namespace"),
            "priority_class": dig(job, "spec", "priorityClassName"),
            # A server names this one where none was.
            "service_account": account if account != "default" else None,
            "reserved_millicpu": _reserved(pod, "cpu", 1e-3),
            "reserved_memmb": _reserved(pod, "memory", 1e6),
        }
        return {name: value for name, value in cfg.items() if value is not None}

    # Replicas

    replicas = staticmethod(replicas_of)

    replica_of = staticmethod(replica_of_pod)

    def main_container(self, pod: KubernetesObject) -> str:
        return main_container(pod, dig(pod, "metadata", "labels", TASK) or "")

    roles = staticmethod(roles_of)

    # Why

    def event_selectors(self, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject]) -> list[str]:
        state = app_state(job)
        if is_terminal(state):
            return _job_selectors(job) if state is AppState.FAILED and not pods else []
        if phase_of(job) in ("", *_ENDING, "Restarting"):
            return []
        selectors = []
        waiting = [pod for pod in pods.values() if pod_state(pod) is AppState.PENDING]
        if len(pods) < sum(map(count_of, tasks_of(job))) or any(is_gang_only(self.pod_reason(pod)) for pod in waiting):
            selectors += _job_selectors(job)
        if silent := next(filter(is_silent, pods.values()), None):
            selectors.append(f"involvedObject.name={name_of(silent)},involvedObject.uid={uid_of(silent)}")
        return selectors

    def read_more(self, server: ApiServer, job: KubernetesObject, now: float) -> bool | None:
        """Return whether the queue of a job exists that Volcano should have picked up; None if that is not asked."""
        if app_state(job) is not AppState.SUBMITTED or now - submitted_at(job) <= LOOKED_AT_S:
            return None
        try:
            return server.find(f"{QUEUES}/{dig(job, 'spec', 'queue') or 'default'}") is not None
        except ApiError:
            return None

    def reason(self, facts: JobFacts, replicas: Sequence[ReplicaStatus], now: float) -> str:
        job = facts.job
        state = app_state(job)
        if state is AppState.SUCCEEDED:
            return ""
        if state is AppState.SUBMITTED:
            age = now - submitted_at(job)
            return not_picked_up(job, facts.more, age) if age > LOOKED_AT_S else ""
        parts = []
        failed = [replica for replica in replicas if replica.state is AppState.FAILED]
        if failed:
            failed.sort(key=lambda replica: replica.finished_at or now)
            parts.append(_together(failed, "failed"))
        if state is AppState.CANCELLED:
            return "; ".join(parts) or job_message(job)
        waiting = [one for one in replicas if one.reason and not is_terminal(one.state) and not is_terminal(state)]
        with_pod = [replica for replica in waiting if replica.hostname]
        group = EventSummary() if parts else _group_summary(facts, state)
        # Why some pods are missing tells more than that the others wait for them.
        if group.is_cause:
            with_pod = [replica for replica in with_pod if not is_gang_only(replica.reason)]
        if chosen := with_pod or ([] if group.text else waiting):
            parts.append(_together(chosen, ""))
        if parts and state is AppState.RUNNING:
            running = sum(run_of(pod, main_container(pod)).is_running for pod in facts.pods.values())
            parts += [f"{running} of {len(replicas)} run"] if running < len(replicas) else []
        return "; ".join(parts) or job_message(job) or group.text or _no_restart_left(job, state)

    def not_looked_at(self, job: KubernetesObject) -> str:
        return NOT_PICKED_UP

    def pod_reason(self, pod: KubernetesObject, events: Iterable[KubernetesObject] = (), now: float = 0.0) -> str:
        events = list(events)
        reason = pod_reason(pod, events, summarize_events(events).text)
        return unplaced_reason(pod, now) if reason == UNPLACED else reason

    # Launch and cancel

    pod_name = staticmethod(pod_name)

    def manifest(self, app: AppDef, options: Any) -> list[KubernetesObject]:
        if not options.queue:
            raise InvalidRunConfigException(
                "Required run option: queue, which Volcano's jobs wait in", "queue", dict(options)
            )
        job = app_to_resource(
            app,
            options.queue,
            options.service_account,
            options.priority_class,
            reserved_millicpu=options.reserved_millicpu,
            reserved_memmb=options.reserved_memmb,
            efa_device_count=options.efa_device_count,
        )
        return [job]

    def replica_at(self, job: KubernetesObject, field: str) -> tuple[str, str]:
        match, tasks = _TASK_FIELD.match(field), tasks_of(job)
        if match is None or int(match["index"]) >= len(tasks):
            return "", field
        return str(replica_of_task(tasks[int(match["index"])])), field[match.end() :]

    def cancelled(self, job: KubernetesObject) -> KubernetesObject:
        # As Volcano notes a transition itself. It keeps it: else the time would be that of the phase before.
        ended = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = dig(job, "status") or {}
        state = {**status.get("state", {}), "phase": "Aborted", "lastTransitionTime": ended}
        conditions = [*status.get("conditions", []), {"status": "Aborted", "lastTransitionTime": ended}]
        return {**job, "status": {**status, "state": state, "conditions": conditions}}

    def command(self, job: KubernetesObject, action: str) -> KubernetesObject | None:
        # As `vcctl job suspend` and `vcctl job resume` ask for it.
        asked, phases = _COMMANDS.get(action, ("", ()))
        if phase_of(job) not in phases:
            return None
        target = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Job",
            "name": name_of(job),
            "uid": uid_of(job),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {
                "generateName": f"{name_of(job)}-{asked.lower()}-",
                "namespace": job["metadata"].get("namespace"),
                "ownerReferences": [target],
            },
            "target": target,
            "action": asked,
        }

    def findings(self, server: ApiServer) -> list[Finding]:
        try:
            if server.find(f"/apis/{GROUP}/{VERSION}") is None:
                words = "Volcano is not installed: the server knows no jobs.batch.volcano.sh"
                return [Finding("error", words, "install it: https://volcano.sh/docs/installation")]
        except ApiError as error:
            return [Finding("warning", f"whether Volcano is installed cannot be checked: {error}")]
        findings = [Finding("ok", f"Volcano's jobs, {_queues(server)}")]
        path, selector = _CONTROLLER
        try:
            pods = server.request("GET", path, params={"labelSelector": selector}).get("items") or []
        except ApiError:
            return findings
        if pods and not any(dig(pod, "status", "phase") == "Running" for pod in pods):
            hint = "`kubectl -n volcano-system get pods` shows why"
            findings.append(Finding("warning", "Volcano's controller is not running: jobs stay as they are", hint))
        return findings

    def launch_findings(self, server: ApiServer, app: AppDef, options: Any) -> list[Finding]:
        findings = []
        if normalize_str(app.name)[:1].isdigit():
            hint = "Volcano makes a Service of its name, which servers before 1.34 refuse: the job would hang"
            findings.append(Finding("warning", f"the job's name begins with a digit, as {app.name} does", hint))
        try:
            queue = server.find(f"{QUEUES}/{options.queue}")
        except ApiError:
            return findings
        if queue is None:
            hint = "Volcano would ignore the job without a message: `kubectl get queues` lists them"
            findings.append(Finding("warning", f"there is no queue {options.queue}", hint))
        elif (state := dig(queue, "status", "state") or "Open") in ("Closed", "Closing"):
            hint = "choose another one, or wait until it is open"
            findings.append(Finding("warning", f"the queue {options.queue} is {state.lower()}", hint))
        return findings


VOLCANO = VolcanoJobs()


def group_name(job: KubernetesObject) -> str:
    """Return the name of a job's pod group (volcano: generateRelatedPodGroupName)."""
    return f"{name_of(job)}-{uid_of(job)}"


def _job_selectors(job: KubernetesObject) -> list[str]:
    uid = uid_of(job)
    return [f"involvedObject.uid={uid}", f"involvedObject.name={group_name(job)}"] if uid else []


def _group_summary(facts: JobFacts, state: AppState) -> EventSummary:
    """Summarise the events of the job itself and of its group."""
    if not waits(state) and state is not AppState.FAILED:
        return EventSummary()
    keys = (group_name(facts.job), uid_of(facts.job))
    return summarize_events([event for key in keys for event in facts.events.get(key, [])])


def _no_restart_left(job: KubernetesObject, state: AppState) -> str:
    """Return that a job failed because it was restarted as often as it may be; no event says so."""
    restarts, most = dig(job, "status", "retryCount") or 0, dig(job, "spec", "maxRetry") or 0
    if state is not AppState.FAILED or not restarts or restarts < most:
        return ""
    left = "no restart was left when a pod was deleted, was evicted or failed"
    return f"restarted {restarts} of {most} times (maxRetry): {left}"


def _together(replicas: Sequence[ReplicaStatus], default: str) -> str:
    return together([(replica.reason or default, f"{replica.role}/{replica.id}") for replica in replicas])


def _reserved(pod: KubernetesObject, resource: str, unit: float) -> int | None:
    """Return by how much a container requests less than its limit; None if it does not say."""
    for container in pod.get("containers", []):
        limit = cores(dig(container, "resources", "limits", resource))
        request = cores(dig(container, "resources", "requests", resource))
        if limit is not None and request is not None:
            return round((limit - request) / unit)
    return None


def _queues(server: ApiServer) -> str:
    names = server.list_names(QUEUES, _MAX_QUEUES)
    if names is None:
        return "queues not readable"
    return f"queues {', '.join(names)}" if names else "no queue"
