"""Kubernetes' own jobs (``batch/v1``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from ....logs.text.sanitize import plain
from ....specs.status import AppState, is_terminal
from ...kube.api_server import ApiServer
from ...kube.causes import event_time, explain_nodes
from ...kube.objects import METADATA, KubernetesObject, checked, dig, name_of, number, owners_of, shape, uid_of
from ...kube.pods import first_start, main_container, seconds_of
from ...types import JobAction
from .. import labels
from ..actions import SCALE, number_of_pods, with_pods
from ..job_kind import MAX_REPLICAS, JobFacts, JobStatus, Replica, joined_state
from ..launching.batch import IndexedJobForm
from ..launching.form import role_of
from .children import children_of, with_children
from .kueue import queue_of
from .observed import (
    CONDITIONS,
    TEMPLATE,
    ObservedJobs,
    is_cancelled,
    state_of_pods,
    timeline_of,
    true_conditions,
)

INDEX = "batch.kubernetes.io/job-completion-index"
# Servers before 1.27 have it without a domain only; later ones have both.
_JOB_NAME = "job-name"
JOB_SPEC = shape(
    suspend=bool,
    completions=int,
    parallelism=int,
    completionMode=str,
    backoffLimit=int,
    backoffLimitPerIndex=int,
    maxFailedIndexes=int,
    activeDeadlineSeconds=int,
    managedBy=str,
    podReplacementPolicy=str,
    template=TEMPLATE,
)
_JOB = shape(
    "metadata",
    metadata=METADATA,
    spec=JOB_SPEC,
    status=shape(
        startTime=str,
        completionTime=str,
        conditions=CONDITIONS,
        active=int,
        ready=int,
        failed=int,
        succeeded=int,
        terminating=int,
        completedIndexes=str,
        failedIndexes=str,
    ),
)
# Why a job failed, by the reason of its condition, with fields of the job.
_ENDS = {
    "FailedIndexes": "the {indexes} failed (backoffLimitPerIndex {per_index})",
    "MaxFailedIndexesExceeded": "the {indexes} failed, more than maxFailedIndexes {max_failed} allows",
    "PodFailurePolicy": "rule {rule} of the podFailurePolicy does not retry it",
}
_RULE = re.compile(r"rule at index (\d+)")
_GONE = "its pod{s} {were} deleted, and the log{s} with {it}"
_COUNTS = ("wanted", "running", "succeeded", "restarts")
_ONE = {"s": "", "were": "was", "it": "it"}
_MANY = {"s": "s", "were": "were", "it": "them"}


class BatchJobs(IndexedJobForm, ObservedJobs):
    """Jobs of ``batch/v1``."""

    word = "Job"
    launched_as = "job"
    joins_children = True

    def checked(self, item: Any) -> KubernetesObject | None:
        return checked(item, _JOB)

    def pods_selector(self, job: KubernetesObject) -> str:
        return f"{labels.INSTANCE if children_of(job) else _JOB_NAME}={name_of(job)}"

    def with_children(self, server: ApiServer, job: KubernetesObject) -> KubernetesObject:
        if not dig(job, "metadata", "annotations", labels.JOBS):
            return job
        return with_children(self, server, job, {"labelSelector": f"{labels.INSTANCE}={name_of(job)}"})

    def owners_of_pods(self, job: KubernetesObject) -> frozenset[str]:
        return frozenset(map(uid_of, _parts(job))) - {""}

    # A job

    def state(self, job: KubernetesObject) -> AppState:
        return joined_state([job_state(part) for part in _parts(job)])

    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        pods = list(pods)
        own, *others = [self._status(part, _pods_of(job, part, pods)) for part in _parts(job)]
        for other in others:
            state = joined_state([own.state, other.state])
            ends = [one.finished_at for one in (own, other) if one.finished_at is not None]
            starts = [one.started_at for one in (own, other) if one.started_at is not None]
            finished_at = max(ends, default=None) if is_terminal(state) else None
            own = own._replace(
                state=state,
                finished_at=finished_at,
                timeline=timeline_of(job, state, min(starts, default=None), finished_at),
                message=own.message or other.message,
                makes_pods=own.makes_pods or other.makes_pods,
                may_restart=own.may_restart or other.may_restart,
                **{field: getattr(own, field) + getattr(other, field) for field in _COUNTS},
            )
        return own

    def _status(self, job: KubernetesObject, pods: list[KubernetesObject]) -> JobStatus:
        state, status, held = job_state(job, pods), job.get("status") or {}, true_conditions(job)
        ended = next((held[one] for one in ("Complete", "Failed") if one in held), None)
        finished_at = seconds_of(status.get("completionTime") or (ended or {}).get("lastTransitionTime"))
        finished_at = finished_at if is_terminal(state) else None
        began = seconds_of(status.get("startTime")) if is_terminal(state) or state is AppState.RUNNING else None
        makes_pods = not is_terminal(state) and not held.keys() & {"FailureTarget", "SuccessCriteriaMet"}
        queue = queue_of(job)
        return JobStatus(
            state,
            makes_pods,
            makes_pods,
            timeline_of(job, state, first_start(pods) or began, finished_at),
            finished_at,
            plain((ended or {}).get("message") or "") if state is AppState.FAILED else "",
            {"queue": queue} if queue else {},
            count_of(job),
            status.get("ready") or 0,
            status.get("succeeded") or 0,
            _retries(job, state) + sum(_restarts(pod) for pod in pods),
        )

    # Replicas

    def replicas(self, job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
        return islice(chain.from_iterable(map(replicas_of, _parts(job))), MAX_REPLICAS)

    def job_specs(self, job: KubernetesObject) -> dict[str, KubernetesObject]:
        parts = _parts(job)
        return {replica.role: part.get("spec") or {} for part in parts for replica, _ in islice(replicas_of(part), 1)}

    def replica_of(self, pod: KubernetesObject) -> Replica:
        named = dig(pod, "metadata", "labels") or {}
        return Replica(named.get(labels.ROLE_NAME) or main_container(pod, "main"), index_of(pod))

    def by_replica(self, job: KubernetesObject, pods: Iterable[KubernetesObject]) -> dict[Replica, KubernetesObject]:
        pods, found = list(pods), {}
        for part in _parts(job):
            own = _pods_of(job, part, pods)
            is_indexed = dig(part, "spec", "completionMode") == "Indexed"
            found |= super().by_replica(part, own) if is_indexed else by_slot(self.replica_of, count_of(part), own)
        return found

    def without_pod(self, job: KubernetesObject, replica: Replica) -> tuple[AppState, str] | None:
        job = next((part for part in _parts(job) if role_of(dig(part, "spec", "template")) == replica.role), job)
        if dig(job, "spec", "completionMode") != "Indexed":
            return None
        if replica.number in _indexes(dig(job, "status", "completedIndexes") or ""):
            return AppState.SUCCEEDED, "its pod was deleted"
        return (AppState.CANCELLED, "was ended: the job had succeeded") if "Complete" in true_conditions(job) else None

    # Why

    def event_selectors(self, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject]) -> list[str]:
        selectors = super().event_selectors(job, pods)
        reasons: tuple[str, ...] = ()
        if job_state(job) is AppState.FAILED:
            # Its pods were deleted: only events show whether it ran.
            reasons = () if pods or not dig(job, "spec", "activeDeadlineSeconds") else ("FailedScheduling", "Started")
        elif _earlier(job):
            reasons = ("Preempted",)
        return selectors + [f"involvedObject.kind=Pod,reason={reason}" for reason in reasons]

    def why(self, facts: JobFacts) -> str:
        return "; ".join(filter(None, dict.fromkeys(self._why(_facts_of(facts, part)) for part in _parts(facts.job))))

    def _why(self, facts: JobFacts) -> str:
        job = facts.job
        spec, status, held = job.get("spec") or {}, job.get("status") or {}, true_conditions(job)
        ended = held.get("Failed") or held.get("FailureTarget")
        if ended is None:
            return _earlier_pods(facts)
        reason, message = ended.get("reason") or "", plain(ended.get("message") or "")
        failed, limit = status.get("failed") or 0, spec.get("backoffLimit")
        gone = "" if facts.pods else _GONE.format(**(_MANY if count_of(job) > 1 else _ONE))
        if reason == "BackoffLimitExceeded":
            if not gone:
                return f"failed {failed} times (backoffLimit {limit})" if limit and failed > 1 else ""
            if dig(spec, "template", "spec", "restartPolicy") == "OnFailure":
                return f"its container kept failing (backoffLimit {limit}); {gone}"
            return f"{gone.replace('deleted', 'deleted or evicted')} (backoffLimit {limit})"
        if reason == "DeadlineExceeded":
            seconds = spec.get("activeDeadlineSeconds")
            if waited := _never_ran(facts):
                return f"its {seconds} s (activeDeadlineSeconds) passed while it waited: {waited}"
            return "; ".join(filter(None, (f"ran longer than its {seconds} s (activeDeadlineSeconds)", gone)))
        rule = _RULE.search(message)
        indexes = plain(status.get("failedIndexes") or "")
        words = _ENDS.get(reason, "{message}").format(
            indexes=f"index {indexes}" if indexes.isdigit() else f"indexes {indexes}",
            per_index=spec.get("backoffLimitPerIndex"),
            max_failed=spec.get("maxFailedIndexes"),
            rule=rule[1] if rule else "?",
            message=message,
        )
        return "; ".join(filter(None, (words, gone)))

    def makers(self, job: KubernetesObject) -> list[KubernetesObject]:
        return _parts(job)

    def parts(self, job: KubernetesObject) -> list[KubernetesObject]:
        return [part for part in _parts(job) if not is_terminal(job_state(part))]

    def cancelled(self, job: KubernetesObject) -> KubernetesObject:
        made = super().cancelled(job)
        if self.is_suspended(job):
            return made
        # Suspended, a queue would start it again; past its deadline it fails for good, and is kept.
        return {**made, "spec": {**job["spec"], "activeDeadlineSeconds": 1}}

    def scale(self, job: KubernetesObject) -> JobAction | None:
        return SCALE if dig(job, "spec", "parallelism") is not None and len(self.parts(job)) == 1 else None

    def scaled(self, job: KubernetesObject, value: str) -> KubernetesObject:
        return {**job, "spec": with_pods(job["spec"], number_of_pods(value))}


BATCH = BatchJobs()


def _parts(job: KubernetesObject) -> list[KubernetesObject]:
    """Return the Jobs of an app: one for each role, the first of which owns the others."""
    return [job, *children_of(job)]


def _pods_of(job: KubernetesObject, part: KubernetesObject, pods: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    return [pod for pod in pods if not children_of(job) or uid_of(part) in owners_of(pod)]


def _facts_of(facts: JobFacts, part: KubernetesObject) -> JobFacts:
    pods = facts.pods.items()
    return facts._replace(job=part, pods={replica: pod for replica, pod in pods if _pods_of(facts.job, part, [pod])})


def job_state(job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> AppState:
    """Return a job's state: by its conditions, its pods where they are known, its counts.

    ``active`` counts pods that wait as well: only ``ready`` and the pods tell whether a job runs.
    """
    held, status = true_conditions(job), job.get("status") or {}
    suspended = "Suspended" in held or bool(dig(job, "spec", "suspend"))
    if "Complete" in held:
        return AppState.SUCCEEDED
    if "Failed" in held or suspended:
        if is_cancelled(job):
            return AppState.CANCELLED
        return AppState.FAILED if "Failed" in held else AppState.PENDING
    if not status.get("startTime"):
        return AppState.SUBMITTED
    if job["metadata"].get("deletionTimestamp") or held.keys() & {"FailureTarget", "SuccessCriteriaMet"}:
        return AppState.RUNNING
    known = list(pods)
    if (seen := state_of_pods(known)) is not None:
        return seen
    active, ready = status.get("active") or 0, status.get("ready")
    if ready is None and not known:
        # Servers before 1.24 do not count those that are ready.
        ready = active
    # Between two tries there is no pod.
    tried = not active and (status.get("failed") or status.get("succeeded"))
    return AppState.RUNNING if ready or tried else AppState.PENDING


def count_of(job: KubernetesObject) -> int:
    """Return how many replicas a job has: its completions, or those that work on a queue at a time."""
    spec = job.get("spec") or {}
    count = spec.get("completions")
    count = spec.get("parallelism", 1) if count is None else count
    return max(0, min(MAX_REPLICAS, count))


def index_of(pod: KubernetesObject) -> int:
    """Return the completion index of a pod; 0 if it has none."""
    # Servers before 1.28 have it as an annotation only.
    noted, named = (dig(pod, "metadata", field) or {} for field in ("annotations", "labels"))
    return number({**noted, **named}, INDEX)


def replicas_of(job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
    """Yield the replicas of a job with its pod template."""
    template = dig(job, "spec", "template") or {}
    named = dig(template, "metadata", "labels") or {}
    role = named.get(labels.ROLE_NAME) or main_container(template, "main")
    return ((Replica(role, index), template) for index in range(count_of(job)))


def by_slot(
    replica_of: Callable[[KubernetesObject], Replica], count: int, pods: Iterable[KubernetesObject]
) -> dict[Replica, KubernetesObject]:
    """Number pods that have no index in the order of their creation; one that failed makes room for a later one."""
    slots: list[KubernetesObject] = []
    for pod in sorted(pods, key=lambda pod: (str(pod["metadata"].get("creationTimestamp") or ""), name_of(pod))):
        gone = (k for k, old in enumerate(slots) if _is_gone(old))
        if len(slots) < count:
            slots.append(pod)
        elif (k := next(gone, None)) is not None:
            slots[k] = pod
    return {replica_of(pod)._replace(number=k): pod for k, pod in enumerate(slots)}


def _is_gone(pod: KubernetesObject) -> bool:
    return dig(pod, "status", "phase") == "Failed" or bool(pod["metadata"].get("deletionTimestamp"))


def _retries(job: KubernetesObject, state: AppState) -> int:
    """Return how many pods that failed were replaced."""
    status = job.get("status") or {}
    last = len(_indexes(status.get("failedIndexes") or "")) or count_of(job) if state is AppState.FAILED else 0
    return max(0, (status.get("failed") or 0) - last)


def _restarts(pod: KubernetesObject) -> int:
    return sum(one.get("restartCount") or 0 for one in dig(pod, "status", "containerStatuses") or [])


def _indexes(text: str) -> set[int]:
    """Return the numbers of a list of ranges such as ``0,2-4``; at most `MAX_REPLICAS` of them."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(islice(range(int(first), int(last or first) + 1), MAX_REPLICAS))
    return found


def _earlier(job: KubernetesObject) -> int:
    """Return how many pods failed, or were taken away, before those that there are."""
    return 0 if is_terminal(job_state(job)) else dig(job, "status", "failed") or 0


def _earlier_pods(facts: JobFacts) -> str:
    job, spec, status = facts.job, facts.job.get("spec") or {}, facts.job.get("status") or {}
    failed = _earlier(job)
    if status.get("terminating") and not status.get("active") and spec.get("podReplacementPolicy") == "Failed":
        return "no new pod before the old ones have ended (podReplacementPolicy Failed)"
    if not failed or status.get("ready"):
        return ""
    name = "backoffLimit" if spec.get("backoffLimitPerIndex") is None else "backoffLimitPerIndex"
    limit = f"({name} {spec.get(name)})"
    if not status.get("active") and any(dig(pod, "status", "phase") == "Failed" for pod in facts.pods.values()):
        return f"failed {failed} time{'s' if failed > 1 else ''}, waits for its next try {limit}"
    preempted = len(_events_of_pods(facts, "Preempted"))
    count = min(preempted or failed, failed)
    what = "made way for pods of a higher priority" if preempted else "failed or went away before"
    return f"{count} pod{'s' if count > 1 else ''} {what} {limit}"


def _events_of_pods(facts: JobFacts, reason: str) -> list[KubernetesObject]:
    """Return the events of a job's pods, also of those that are gone, with this reason; the newest last."""
    of_job = re.compile(rf"{re.escape(name_of(facts.job))}(?:-\d+)?-[a-z0-9]{{5}}")
    found = [
        event
        for name, events in facts.events.items()
        if of_job.fullmatch(name)
        for event in events
        if event.get("reason") == reason
    ]
    return sorted(found, key=event_time)


def _never_ran(facts: JobFacts) -> str:
    """Return why no pod of a job was placed; empty if one was, or that is unknown."""
    waited = _events_of_pods(facts, "FailedScheduling")
    if not waited or _events_of_pods(facts, "Started"):
        return ""
    words = explain_nodes(waited[-1].get("message") or "", dig(facts.job, "spec", "template") or {})
    return plain(f"cannot be scheduled: {words}")
