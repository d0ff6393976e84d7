"""What the kinds of jobs have in common whose pods Kubernetes' own controllers make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....base.files import user_name
from ....logs.text.sanitize import plain
from ....specs.errors import AppDefError
from ....specs.roles import AppDef, RetryPolicy, Role
from ....specs.status import AppState, ReplicaStatus, is_terminal
from ...kube.api_server import ApiServer
from ...kube.causes import (
    LOOKED_AT_S,
    UNPLACED,
    UNSCHEDULED,
    describe_event,
    event_time,
    is_silent,
    newest_cause,
    pod_reason,
    together,
    unplaced_reason,
    waits,
)
from ...kube.objects import POD_SPEC, KubernetesObject, Texts, Time, dig, name_of, shape, uid_of
from ...kube.pod_template import role_of_template
from ...kube.pods import main_container, pod_state, run_of
from ...shared.exit_reasons import format_cancelled, short_time
from ...types import Finding, StateChange
from .. import labels
from ..actions import SUSPEND
from ..job_kind import CHILDREN, JobFacts, JobKind, Replica, with_field
from ..times import submitted_at
from .gang import group_of, read_group_reason
from .kueue import admitted_by, queue_of, queue_reason, read_workload

SUSPENDED = "suspended, by somebody or by a queue: its action resume lets it run"
# Fields of a Job that no role has.
_NOT_REPEATED = (
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "podFailurePolicy",
    "successPolicy",
    "maxFailedIndexes",
    "managedBy",
)
CONDITIONS = [shape(type=str, status=str, reason=str, message=str, lastTransitionTime=Time)]
TEMPLATE = shape(metadata=shape(labels=Texts, annotations=Texts), spec=POD_SPEC)


def true_conditions(job: KubernetesObject) -> dict[str, Mapping[str, Any]]:
    """Return the conditions of a job that hold, by type."""
    found = dig(job, "status", "conditions") or []
    return {one.get("type") or "": one for one in found if one.get("status") == "True"}


def is_cancelled(job: KubernetesObject) -> bool:
    """Return whether this program was asked to cancel a job."""
    return bool(dig(job, "metadata", "annotations", labels.CANCELLED_BY))


def state_of_pods(pods: Iterable[KubernetesObject]) -> AppState | None:
    """Return RUNNING or UNKNOWN by the pods of a job that has not ended; None if its own status decides."""
    return joined_pods({pod_state(pod) for pod in pods if not pod["metadata"].get("deletionTimestamp")})


def joined_pods(states: set[AppState]) -> AppState | None:
    """Return RUNNING or UNKNOWN by the states of pods that are not deleted; None if the job's own status decides."""
    if states == {AppState.UNKNOWN}:
        return AppState.UNKNOWN
    # If all pods have ended, the controller has not counted them yet, or creates others.
    return AppState.RUNNING if AppState.RUNNING in states or (states and AppState.PENDING not in states) else None


class ObservedJobs(JobKind):
    """Jobs that others launch: this program shows, explains and ends them."""

    suspend = SUSPEND
    unknown = ""
    launched_as = "auto"
    """The run option ``kind`` that launches such a job again."""
    cancel_at = ""

    def is_suspended(self, job: KubernetesObject) -> bool:
        """Return whether a job makes no pods until somebody, or a queue, lets it run."""
        return "Suspended" in true_conditions(job) or bool(dig(job, *self.suspend_at))

    def needs_pods(self, job: KubernetesObject) -> bool:
        return self.state(job) is AppState.PENDING and not self.is_suspended(job)

    def is_queued(self, job: KubernetesObject) -> bool:
        return bool(queue_of(job))

    def why(self, facts: JobFacts) -> str:
        """Return the part of the reason that the job's own status gives; empty if it gives none."""
        return ""

    def makers(self, job: KubernetesObject) -> list[KubernetesObject]:
        """Return the objects whose FailedCreate events explain missing pods."""
        return [job]

    def cfg(self, job: KubernetesObject) -> dict[str, Any]:
        template = next((found for _, found in self.replicas(job)), {})
        pod, account = template.get("spec") or {}, dig(template, "spec", "serviceAccountName")
        cfg = {
            "namespace": job["metadata"].get("namespace"),
            "kind": self.launched_as,
            "queue": queue_of(job) or None,
            "priority_class": pod.get("priorityClassName"),
            # A server names this one where none was.
            "service_account": account if account != "default" else None,
        }
        return {name: value for name, value in cfg.items() if value is not None}

    def main_container(self, pod: KubernetesObject) -> str:
        return main_container(pod, "main")

    def job_specs(self, job: KubernetesObject) -> dict[str, KubernetesObject]:
        """Return the spec of the Job (``batch/v1``) that runs each role, as far as it is known."""
        return {}

    def roles(self, job: KubernetesObject, notes: list[str]) -> list[Role]:
        specs = self.job_specs(job)
        templates: dict[str, list[KubernetesObject]] = {}
        for replica, template in self.replicas(job):
            templates.setdefault(replica.role, []).append(template)
        lost: list[str] = []
        roles = []
        for name, all_of_role in templates.items():
            role = role_of_template(name, all_of_role[0], main_container(all_of_role[0]), lost)
            role.num_replicas = len(all_of_role)
            spec = specs.get(name) or {}
            per_index = spec.get("backoffLimitPerIndex")
            if per_index is not None:
                role.max_retries, role.retry_policy = per_index, RetryPolicy.REPLICA
            else:
                role.max_retries = spec.get("backoffLimit") or 0
            lost += [f"{name}: {field} is not launched again" for field in _NOT_REPEATED if field in spec]
            roles.append(role)
        if self.shows_newest_child:
            lost.append("it is launched again once, without its schedule")
        if self.launched_as == "auto":
            lost.append(f"it is launched again as a job of the run option kind, not as a {self.word}")
        notes += dict.fromkeys(lost)
        return roles

    # Why

    def event_selectors(self, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject]) -> list[str]:
        status = self.status(job, pods.values())
        if status.state is AppState.SUCCEEDED:
            return []
        if self.is_suspended(job):
            return [f"involvedObject.uid={uid_of(job)},reason=SuccessfulDelete"] if uid_of(job) else []
        selectors = []
        if not is_terminal(status.state):
            if len(pods) < status.wanted:
                makers = [one for one in self.makers(job) if uid_of(one)]
                selectors += [f"involvedObject.uid={uid_of(one)}" for one in makers[:3]]
            silent = next((pod for pod in pods.values() if is_silent(pod)), None)
            if silent is not None:
                selectors.append(f"involvedObject.name={name_of(silent)},involvedObject.uid={uid_of(silent)}")
        return selectors

    def read_more(self, server: ApiServer, job: KubernetesObject, now: float) -> Any:
        if queue_of(job):
            return read_workload(server, job)
        if not group_of(job) or not waits(self.state(job)):
            return None
        return read_group_reason(server, job, self.status(job).wanted)

    def reason(self, facts: JobFacts, replicas: Sequence[ReplicaStatus], now: float) -> str:
        job = facts.job
        status = self.status(job, facts.pods.values())
        state = status.state
        if state is AppState.SUCCEEDED:
            return ""
        if state is AppState.CANCELLED:
            return format_cancelled(dig(job, "metadata", "annotations", labels.CANCELLED_BY) or "", None)
        if job["metadata"].get("deletionTimestamp"):
            seconds = max(
                (pod["metadata"].get("deletionGracePeriodSeconds") or 0 for pod in facts.pods.values()), default=0
            )
            return "is being deleted" + (f"; its pods end within {seconds} s" if seconds else "")
        if self.is_suspended(job):
            lost = "its pods were deleted, and the logs with them" if facts.events.get(uid_of(job)) else ""
            return "; ".join(filter(None, (queue_reason(job, facts.more) or SUSPENDED, lost)))
        if state is AppState.SUBMITTED:
            age = now - submitted_at(job)
            words = self.not_looked_at(job)
            if dig(job, "spec", "managedBy"):
                return words
            return f"{words} for {short_time(age)}" if age > LOOKED_AT_S else ""
        ending = is_terminal(state) or "FailureTarget" in true_conditions(job)
        failed = [one for one in replicas if one.state is AppState.FAILED and not _was_killed(facts, one)]
        parts = [_together(sorted(failed, key=lambda one: one.finished_at or now))]
        held = False
        if not ending:
            waiting = [one for one in replicas if not is_terminal(one.state) and one.reason and one.hostname]
            not_created = self._not_created(facts) if len(facts.pods) < len(replicas) else ""
            gang = facts.more if isinstance(facts.more, str) else ""
            parts += [gang or not_created, "" if gang else _together(waiting)]
            held = bool(gang or not_created or waiting)
        parts.append(self.why(facts))
        if held and state is AppState.RUNNING:
            running = sum(run_of(pod, main_container(pod)).is_running for pod in facts.pods.values())
            parts.append(f"{running} of {len(replicas)} run" if running < len(replicas) else "")
        if state is AppState.PENDING:
            parts.append(admitted_by(facts.more))
        found = [part for part in parts if part]
        if not found and state is AppState.PENDING and not facts.pods and now - submitted_at(job) > LOOKED_AT_S:
            return "has no pod, and no event says why"
        return "; ".join(found) or status.message

    def _not_created(self, facts: JobFacts) -> str:
        events = [event for one in self.makers(facts.job) for event in facts.events.get(uid_of(one), [])]
        failed = [event for event in sorted(events, key=event_time) if event.get("reason") == "FailedCreate"]
        return describe_event(failed[-1]) if failed else ""

    def not_looked_at(self, job: KubernetesObject) -> str:
        if by := dig(job, "spec", "managedBy"):
            return plain(f"{by} should run it (spec.managedBy), but has not looked at it")
        return "its controller has not looked at it"

    def pod_reason(self, pod: KubernetesObject, events: Iterable[KubernetesObject] = (), now: float = 0.0) -> str:
        events = list(events)
        reason = pod_reason(pod, events, newest_cause(pod, events))
        group = dig(pod, "spec", "schedulingGroup", "podGroupName")
        if reason == UNPLACED and group:
            return plain(f"waits for the PodGroup {group}, which is missing or not complete")
        if reason == UNPLACED:
            return unplaced_reason(pod, now)
        return reason.replace(UNSCHEDULED, f"{UNSCHEDULED} as a gang, all pods or none", 1) if group else reason

    # Launch and cancel

    def pod_name(self, job: str, app: AppDef, role: Role, k: int) -> str:
        return f"{job}-{k}"

    def manifest(self, app: AppDef, options: Any) -> list[KubernetesObject]:
        raise AppDefError(f"A {self.word} cannot be launched from here: `kubectl create` does it")

    def cancelled(self, job: KubernetesObject) -> KubernetesObject:
        annotations = {**(job["metadata"].get("annotations") or {}), labels.CANCELLED_BY: user_name()}
        metadata = {**job["metadata"], "annotations": annotations}
        made = with_field({**job, "metadata": metadata}, self.suspend_at, True)
        made.pop(CHILDREN, None)
        return made

    def findings(self, server: ApiServer) -> list[Finding]:
        return [Finding("ok", f"apps are launched as a {self.word}: there is no Volcano")]

    def launch_findings(self, server: ApiServer, app: AppDef, options: Any) -> list[Finding]:
        return []


def _was_killed(facts: JobFacts, replica: ReplicaStatus) -> bool:
    """Return whether a pod failed only because it was deleted."""
    pod = facts.pods.get(Replica(replica.role, replica.id)) or {"metadata": {}}
    conditions = {one.get("type") for one in dig(pod, "status", "conditions") or []}
    return "deletionTimestamp" in pod["metadata"] and "DisruptionTarget" not in conditions


def _together(replicas: Sequence[ReplicaStatus]) -> str:
    return together([(replica.reason or "failed", f"{replica.role}/{replica.id}") for replica in replicas])


def timeline_of(
    job: KubernetesObject, state: AppState, started_at: float | None, finished_at: float | None
) -> list[StateChange]:
    """Return the states that a job went through, as far as their times are known."""
    changes = [StateChange(AppState.SUBMITTED, submitted_at(job))]
    if started_at is not None:
        changes.append(StateChange(AppState.RUNNING, max(changes[-1].at, started_at)))
    if finished_at is not None and is_terminal(state):
        changes.append(StateChange(state, max(changes[-1].at, finished_at)))
    return changes
