"""Volcano's jobs (``batch.volcano.sh/v1alpha1``): their tasks, their replicas, their pods' labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ...kube.objects import METADATA, POD_SPEC, KubernetesObject, Texts, Time, checked, dig, number, shape
from .. import labels
from ..job_kind import MAX_REPLICAS, Replica

GROUP, VERSION = "batch.volcano.sh", "v1alpha1"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"

# On every pod.
JOB_NAME = "volcano.sh/job-name"
TASK = "volcano.sh/task-spec"
"""The pod's task: in jobs of TorchX and of this program the name of its main container as well."""
TASK_INDEX = "volcano.sh/task-index"
_POLICIES = [shape(action=str, event=str)]
_TASK = shape(
    name=str,
    replicas=int,
    minAvailable=int,
    maxRetry=int,
    policies=_POLICIES,
    template=shape(metadata=shape(labels=Texts, annotations=Texts), spec=POD_SPEC),
)
_JOB = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(queue=str, priorityClassName=str, maxRetry=int, policies=_POLICIES, tasks=[_TASK]),
    status=shape(
        state=shape(phase=str, reason=str, message=str, lastTransitionTime=Time),
        conditions=[shape(status=str, lastTransitionTime=Time)],
        running=int,
        succeeded=int,
        retryCount=int,
    ),
)


def checked_job(item: Any) -> KubernetesObject | None:
    """Return a job; None if it does not have the shape of one."""
    return checked(item, _JOB)


def tasks_of(job: KubernetesObject) -> list[KubernetesObject]:
    """Return the tasks of a job; one task is one replica where TorchX made it."""
    return dig(job, "spec", "tasks") or []


def task_spec(task: KubernetesObject) -> KubernetesObject:
    """Return the spec of a task's pods."""
    return dig(task, "template", "spec") or {}


def count_of(task: KubernetesObject) -> int:
    """Return how many pods a task asks for."""
    return max(0, task.get("replicas", 1))


def replicas_of(job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
    """Yield the replicas of a job in order, each with its pod template; at most `MAX_REPLICAS`."""
    found = (
        (replica_of_task(task, index), task.get("template", {}))
        for task in tasks_of(job)
        for index in range(count_of(task))
    )
    return islice(found, MAX_REPLICAS)


def replica_of_task(task: KubernetesObject, index: int = 0) -> Replica:
    """Return which replica a pod of a task is; TorchX's labels have the role's name as it was given."""
    return _replica(dig(task, "template", "metadata", "labels") or {}, task.get("name", ""), index)


def replica_of_pod(pod: KubernetesObject) -> Replica:
    """Return which replica a pod is."""
    named = dig(pod, "metadata", "labels") or {}
    # Releases before 1.8 have no index; all tasks of TorchX have one pod.
    return _replica(named, named.get(TASK, ""), number(named, TASK_INDEX))


def _replica(named: Mapping[str, str], task: str, index: int) -> Replica:
    if labels.ROLE_NAME in named:
        return Replica(named[labels.ROLE_NAME], number(named, labels.REPLICA_ID) + index)
    return Replica(task, index)
