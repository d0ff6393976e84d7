"""JobSets (``jobset.x-k8s.io/v1alpha2``): each replicated job is a role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ....logs.text.sanitize import plain
from ....specs.errors import SchedulerError
from ....specs.roles import RetryPolicy, Role
from ....specs.status import AppState, is_terminal
from ...kube.api_server import ApiServer
from ...kube.objects import METADATA, KubernetesObject, Name, checked, dig, name_of, number, shape, uid_of
from ...kube.pods import first_start, main_container, seconds_of
from ...types import JobAction
from .. import labels
from ..actions import SCALE, number_of_pods, with_pods
from ..job_kind import MAX_REPLICAS, JobFacts, JobStatus, Replica, with_field
from ..launching.form import role_of
from ..launching.jobset import JobSetForm
from .batch import BATCH, JOB_SPEC, count_of, index_of
from .children import children_of, with_children
from .kueue import queue_of
from .observed import (
    CONDITIONS,
    ObservedJobs,
    is_cancelled,
    state_of_pods,
    timeline_of,
    true_conditions,
)

_NAME = "jobset.sigs.k8s.io/jobset-name"
_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_SPEC = ("template", "spec")
_JOBSET = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(
        suspend=bool,
        failurePolicy=shape(maxRestarts=int),
        startupPolicy=shape(startupPolicyOrder=str),
        replicatedJobs=[
            shape(
                "name",
                name=Name,
                replicas=int,
                template=shape(spec=JOB_SPEC),
                dependsOn=[shape(name=str, status=str)],
            )
        ],
    ),
    status=shape(
        conditions=CONDITIONS,
        restarts=int,
        replicatedJobsStatus=[shape(name=str, active=int, ready=int, succeeded=int, failed=int, suspended=int)],
    ),
)


class JobSets(JobSetForm, ObservedJobs):
    """Jobs of ``jobset.x-k8s.io/v1alpha2``."""

    word = "JobSet"
    launched_as = "jobset"

    def checked(self, item: Any) -> KubernetesObject | None:
        return checked(item, _JOBSET)

    def with_children(self, server: ApiServer, job: KubernetesObject) -> KubernetesObject:
        return with_children(BATCH, server, job, {"labelSelector": f"{_NAME}={name_of(job)}"})

    def pods_selector(self, job: KubernetesObject) -> str:
        return f"{_NAME}={name_of(job)}"

    def owners_of_pods(self, job: KubernetesObject) -> frozenset[str]:
        return frozenset(map(uid_of, children_of(job))) - {""}

    # A job

    def state(self, job: KubernetesObject) -> AppState:
        return _state(job, ())

    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        pods = list(pods)
        state, held = _state(job, pods), true_conditions(job)
        ended: Mapping[str, Any] = held.get("Completed") or held.get("Failed") or {}
        finished_at = seconds_of(ended.get("lastTransitionTime")) if is_terminal(state) else None
        queue = queue_of(job)
        return JobStatus(
            state,
            not is_terminal(state),
            not is_terminal(state),
            timeline_of(job, state, first_start(pods), finished_at),
            finished_at,
            plain(ended.get("message") or "") if state is AppState.FAILED else "",
            {"queue": queue} if queue else {},
            min(MAX_REPLICAS, sum(_size(part) * _jobs(part) for part in _parts(job))),
            self._pods_of(job, "ready"),
            self._pods_of(job, "succeeded"),
            dig(job, "status", "restarts") or 0,
        )

    def _pods_of(self, job: KubernetesObject, field: str) -> int:
        """Return how many pods the jobs have that a count of a JobSet counts."""
        counts = _counts(job)
        return sum((dig(counts, part["name"], field) or 0) * _size(part) for part in _parts(job))

    # Replicas

    def replicas(self, job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
        found = (
            (Replica(_role_name(part), index), dig(part, "template", "spec", "template") or {})
            for part in _parts(job)
            for index in range(_size(part) * _jobs(part))
        )
        return islice(found, MAX_REPLICAS)

    def job_specs(self, job: KubernetesObject) -> dict[str, KubernetesObject]:
        return {_role_name(part): dig(part, *_SPEC) or {} for part in _parts(job)}

    def roles(self, job: KubernetesObject, notes: list[str]) -> list[Role]:
        roles = super().roles(job, notes)
        restarts = dig(job, "spec", "failurePolicy", "maxRestarts") or 0
        for role in roles:
            if restarts:
                role.max_retries, role.retry_policy = restarts, RetryPolicy.APPLICATION
            elif role.max_retries and role.retry_policy is not RetryPolicy.REPLICA:
                # A retry of one job has no counterpart: APPLICATION would restart all.
                notes.append(f"{role.name}: backoffLimit is not launched again")
                role.max_retries = 0
        return roles

    def replica_of(self, pod: KubernetesObject) -> Replica:
        named = dig(pod, "metadata", "labels") or {}
        # The name of a replicated job is that of the role in lower case, without other characters than digits and -.
        role = named.get(labels.ROLE_NAME) or named.get(_ROLE) or main_container(pod)
        return Replica(role, index_of(pod))

    def by_replica(self, job: KubernetesObject, pods: Iterable[KubernetesObject]) -> dict[Replica, KubernetesObject]:
        sizes = {_role_name(part): _size(part) for part in _parts(job)}
        found = {}
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")):
            role, index = self.replica_of(pod)
            in_jobs_before = number(dig(pod, "metadata", "labels") or {}, _JOB_INDEX) * sizes.get(role, 1)
            found[Replica(role, in_jobs_before + index)] = pod
        return found

    def without_pod(self, job: KubernetesObject, replica: Replica) -> tuple[AppState, str] | None:
        names = {_role_name(part): part["name"] for part in _parts(job)}
        counts = _counts(job).get(names.get(replica.role, "")) or {}
        if "Completed" not in true_conditions(job) or counts.get("succeeded"):
            return None
        return AppState.CANCELLED, "was ended: the successPolicy was met"

    # Why

    def makers(self, job: KubernetesObject) -> list[KubernetesObject]:
        return [job, *(one for one in children_of(job) if not dig(one, "status", "active"))]

    def why(self, facts: JobFacts) -> str:
        job, held = facts.job, true_conditions(facts.job)
        restarts = dig(job, "status", "restarts") or 0
        ended = held.get("Failed")
        if ended is None:
            again = f"restarted {restarts} time{'s' if restarts > 1 else ''}" if restarts else ""
            return "; ".join(filter(None, (again, *_startup(job))))
        reason = ended.get("reason") or ""
        if reason == "ReachedMaxRestarts":
            return f"restarted {restarts} of {dig(job, 'spec', 'failurePolicy', 'maxRestarts') or 0} times"
        if reason.endswith("FailurePolicyAction"):
            return plain(f"the failurePolicy says {reason.removesuffix('FailurePolicyAction')}")
        return ""

    def scale(self, job: KubernetesObject) -> JobAction | None:
        # Only numbered pods can be added and removed, and only where the webhook's feature gate allows it (KEP-463).
        names = [part["name"] for part in _parts(job) if dig(part, *_SPEC, "completionMode") == "Indexed"]
        if not names:
            return None
        value = SCALE.value if len(_parts(job)) == 1 else f"a job and a number, such as {plain(names[0])}=4"
        return JobAction(SCALE.name, "Another number of pods runs in each of its jobs of a name.", value)

    def scaled(self, job: KubernetesObject, value: str) -> KubernetesObject:
        name, _, count = value.rpartition("=")
        parts = _parts(job)
        name = name or (parts[0]["name"] if len(parts) == 1 else "")
        if name not in (part["name"] for part in parts):
            known = ", ".join(plain(part["name"]) for part in parts)
            raise SchedulerError(f"{value!r} names no job of the JobSet: write it as JOB=4. Valid: {known}")
        number = number_of_pods(count)
        parts = [
            with_field(part, _SPEC, with_pods(dig(part, *_SPEC), number)) if part["name"] == name else part
            for part in parts
        ]
        return with_field(job, ("spec", "replicatedJobs"), parts)


JOBSET = JobSets()


def _state(job: KubernetesObject, pods: Iterable[KubernetesObject]) -> AppState:
    held = true_conditions(job)
    if "Completed" in held:
        return AppState.SUCCEEDED
    if "Failed" in held:
        return AppState.FAILED
    if "Suspended" in held or dig(job, "spec", "suspend"):
        return AppState.CANCELLED if is_cancelled(job) else AppState.PENDING
    counts = _counts(job)
    if not counts:
        return AppState.SUBMITTED
    if (seen := state_of_pods(pods)) is not None:
        return seen
    began = any(one.get("ready") or one.get("succeeded") for one in counts.values())
    return AppState.RUNNING if began else AppState.PENDING


def _role_name(part: KubernetesObject) -> str:
    return role_of(dig(part, "template", "spec", "template") or {}) or part["name"]


def _parts(job: KubernetesObject) -> list[KubernetesObject]:
    return dig(job, "spec", "replicatedJobs") or []


def _jobs(part: KubernetesObject) -> int:
    return max(0, part.get("replicas", 1))


def _size(part: KubernetesObject) -> int:
    """Return how many pods each job of a replicated job has."""
    return count_of(dig(part, "template") or {})


def _counts(job: KubernetesObject) -> dict[str, Mapping[str, Any]]:
    """Return the counts of jobs, not of pods, by replicated job."""
    return {one.get("name") or "": one for one in dig(job, "status", "replicatedJobsStatus") or []}


def _startup(job: KubernetesObject) -> Iterator[str]:
    """Yield a sentence for each replicated job that waits for another one to start or complete."""
    made = {dig(one, "metadata", "labels", _ROLE) for one in children_of(job)}
    in_order = dig(job, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
    before = ""
    for part in _parts(job):
        name = part["name"]
        for other in part.get("dependsOn") or []:
            if made and name not in made:
                yield plain(f"{name} starts once {other.get('name')} is {str(other.get('status')).lower()}")
        if made and in_order and before and name not in made:
            yield plain(f"{name} starts once {before} is ready")
        before = name
