"""Jobs of Kubeflow and KubeRay: their states by their conditions, their replicas by the labels of pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ....logs.text.sanitize import plain
from ....specs.status import AppState, is_terminal
from ...kube.api_server import ApiError, ApiServer
from ...kube.causes import waits
from ...kube.objects import METADATA, KubernetesObject, checked, dig, name_of, number, owners_of, shape, uid_of
from ...kube.pods import first_start, main_container, seconds_of
from ..job_kind import CHILDREN, MAX_REPLICAS, JobFacts, JobStatus, Replica
from .batch import INDEX, by_slot
from .children import children_of
from .jobset import JOBSET
from .observed import CONDITIONS, ObservedJobs, is_cancelled, state_of_pods, timeline_of, true_conditions

_JOB = shape(
    "metadata",
    metadata=METADATA,
    spec=dict,
    status=shape(
        conditions=CONDITIONS,
        startTime=str,
        completionTime=str,
        endTime=str,
        message=str,
        jobStatus=str,
        jobDeploymentStatus=str,
        rayClusterName=str,
    ),
)
_TEMPLATE = shape(spec=shape("containers", containers=[shape("name", name=str, image=str)]))
# The first that holds.
_STATES = {
    "Succeeded": AppState.SUCCEEDED,
    "Complete": AppState.SUCCEEDED,
    "Failed": AppState.FAILED,
    "Suspended": AppState.PENDING,
    "Running": AppState.RUNNING,
    "Restarting": AppState.RUNNING,
    "Created": AppState.PENDING,
}
# Ray's states in lower case, and the conditions that they correspond to.
_RAY_STATES = {
    "succeeded": "Succeeded",
    "failed": "Failed",
    "stopped": "Failed",
    "validationfailed": "Failed",
    "suspended": "Suspended",
    "running": "Running",
    "pending": "Created",
    "initializing": "Created",
    "waiting": "Created",
}
_ROLES = (
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "ray.io/group",
)
_INDEXES = ("training.kubeflow.org/replica-index", INDEX)

Part = tuple[str, Any, Any]
"""A role, how many replicas it has, and their pod template, all unchecked."""


class _Source(NamedTuple):
    """The fields and labels of a kind of jobs.

    Attributes:
        path: the kind's word, API group, version and plural, with ``/`` between them.
        parts: returns the roles of a spec.
        label: of its pods.
        label_value: returns the label's value of a job.
        suspend_at: the path of the field that suspends a job.
        makes_jobset: whether its pods are those of a JobSet of its name.
    """

    path: str
    parts: Callable[[Any], list[Part]]
    label: str
    label_value: Callable[[KubernetesObject], str] = name_of
    suspend_at: tuple[str, ...] = ("spec", "suspend")
    makes_jobset: bool = False


def _of_replica_specs(field: str) -> Callable[[Any], list[Part]]:
    def parts(spec: Any) -> list[Part]:
        found = dig(spec, field)
        specs = found.items() if isinstance(found, dict) else ()
        return [(name.lower(), dig(one, "replicas"), dig(one, "template")) for name, one in specs]

    return parts


def _of_ray(spec: Any) -> list[Part]:
    workers = dig(spec, "rayClusterSpec", "workerGroupSpecs")
    return [
        ("headgroup", 1, dig(spec, "rayClusterSpec", "headGroupSpec", "template")),
        *(
            (str(dig(one, "groupName")), dig(one, "replicas"), dig(one, "template"))
            for one in (workers if isinstance(workers, list) else [])
        ),
    ]


_OF_KUBEFLOW = "training.kubeflow.org/job-name"
_SOURCES = (
    _Source(
        "TrainJob/trainer.kubeflow.org/v1alpha1/trainjobs",
        lambda spec: [("node", dig(spec, "trainer", "numNodes"), None)],
        "jobset.sigs.k8s.io/jobset-name",
        makes_jobset=True,
    ),
    _Source(
        "PyTorchJob/kubeflow.org/v1/pytorchjobs",
        _of_replica_specs("pytorchReplicaSpecs"),
        _OF_KUBEFLOW,
        suspend_at=("spec", "runPolicy", "suspend"),
    ),
    _Source(
        "MPIJob/kubeflow.org/v2beta1/mpijobs",
        _of_replica_specs("mpiReplicaSpecs"),
        _OF_KUBEFLOW,
        suspend_at=("spec", "runPolicy", "suspend"),
    ),
    _Source(
        "RayJob/ray.io/v1/rayjobs",
        _of_ray,
        "ray.io/cluster",
        lambda job: dig(job, "status", "rayClusterName") or name_of(job),
    ),
)


class TrainingJobs(ObservedJobs):
    """Jobs of one of the kinds in the table above."""

    def __init__(self, source: _Source) -> None:
        self.word, self.group, self.version, self.resource = source.path.split("/")
        self.prefix = self.word.lower()
        self._source = source
        self.suspend_at = source.suspend_at

    def checked(self, item: Any) -> KubernetesObject | None:
        return checked(item, _JOB)

    def with_children(self, server: ApiServer, job: KubernetesObject) -> KubernetesObject:
        if not self._source.makes_jobset:
            return job
        try:
            found = JOBSET.checked(server.find(JOBSET.path(job["metadata"]["namespace"], name_of(job))))
        except ApiError:
            return job
        return {**job, CHILDREN: [found]} if found and uid_of(job) in owners_of(found) else job

    def pods_selector(self, job: KubernetesObject) -> str:
        return f"{self._source.label}={self._source.label_value(job)}"

    def owners_of_pods(self, job: KubernetesObject) -> frozenset[str]:
        # Their controllers create the pods through other objects, which own them.
        return frozenset()

    def is_suspended(self, job: KubernetesObject) -> bool:
        return _condition(job) == "Suspended"

    def needs_pods(self, job: KubernetesObject) -> bool:
        # A TrainJob has no condition that says that it runs.
        return waits(self.state(job)) and not self.is_suspended(job)

    def state(self, job: KubernetesObject) -> AppState:
        return self.status(job).state

    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        pods, status, condition = list(pods), job.get("status") or {}, _condition(job)
        state = _STATES.get(condition, AppState.SUBMITTED)
        if is_cancelled(job) and condition == "Suspended":
            state = AppState.CANCELLED
        elif not is_terminal(state) and condition != "Suspended":
            state = state_of_pods(pods) or state
        held = true_conditions(job).get(condition) or {}
        ended = status.get("completionTime") or status.get("endTime") or held.get("lastTransitionTime")
        finished_at = seconds_of(ended) if is_terminal(state) else None
        message = plain(held.get("message") or status.get("message") or "") if state is AppState.FAILED else ""
        wanted = sum(1 for _ in self.replicas(job))
        return JobStatus(
            state,
            not is_terminal(state),
            not is_terminal(state),
            timeline_of(job, state, first_start(pods) or seconds_of(status.get("startTime")), finished_at),
            finished_at,
            message,
            {},
            wanted,
            # No common field counts those that run.
            wanted if state is AppState.RUNNING else 0,
            0,
            0,
        )

    def replicas(self, job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
        if made := children_of(job):
            # It names a runtime, whose templates are those of the JobSet.
            return JOBSET.replicas(made[0])
        found = (
            (Replica(plain(role), index), template)
            for role, count, given in self._source.parts(job.get("spec"))
            for template in [checked(given, _TEMPLATE) or {}]
            for index in range(count if isinstance(count, int) else 1)
        )
        return islice(found, MAX_REPLICAS)

    def replica_of(self, pod: KubernetesObject) -> Replica:
        named = dig(pod, "metadata", "labels") or {}
        role = next((named[label] for label in _ROLES if label in named), main_container(pod))
        return Replica(role, next((number(named, label) for label in _INDEXES if label in named), 0))

    def by_replica(self, job: KubernetesObject, pods: Iterable[KubernetesObject]) -> dict[Replica, KubernetesObject]:
        if made := children_of(job):
            return JOBSET.by_replica(made[0], pods)
        pods = list(pods)
        indexed = [pod for pod in pods if any(label in (dig(pod, "metadata", "labels") or {}) for label in _INDEXES)]
        found = super().by_replica(job, indexed)
        for role, count, _ in self._source.parts(job.get("spec")):
            others = [pod for pod in pods if pod not in indexed and self.replica_of(pod).role == role]
            found |= by_slot(self.replica_of, count if isinstance(count, int) else 1, others)
        return found

    def job_specs(self, job: KubernetesObject) -> dict[str, KubernetesObject]:
        return JOBSET.job_specs(made[0]) if (made := children_of(job)) else {}

    def why(self, facts: JobFacts) -> str:
        return self.status(facts.job).message


TRAINING = tuple(map(TrainingJobs, _SOURCES))


def _condition(job: KubernetesObject) -> str:
    """Return the condition that a job's state is that of; empty if none holds."""
    status, held = job.get("status") or {}, true_conditions(job)
    of_ray = (_RAY_STATES.get(str(status.get(field) or "").lower()) for field in ("jobDeploymentStatus", "jobStatus"))
    found = {*held, *of_ray}
    return next((name for name in _STATES if name in found), "")
