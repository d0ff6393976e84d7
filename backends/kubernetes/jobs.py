"""Volcano's jobs and their pods: where they are on the server, whose they are, which replica each is.

Paths and shapes are those of ``batch.volcano.sh/v1alpha1`` and of ``v1`` pods.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ...specs.errors import SchedulerError
from . import labels
from .shapes import KubernetesObject, checked_job, checked_pod, items_of, list_version

if TYPE_CHECKING:
    from .api_server import ApiServer


GROUP = "batch.volcano.sh"
VERSION = "v1alpha1"
JOBS = f"/apis/{GROUP}/{VERSION}/jobs"
"""The jobs of all namespaces."""


MOST_REPLICAS = 10_000
"""Of one job more replicas are not shown: a number that somebody mistyped must not fill the memory."""


class Replica(NamedTuple):
    """Which replica a task or a pod is."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}/{self.number}"


def split_app_id(app_id: str) -> tuple[str, str]:
    """Return the namespace and the job's name of an app id, ``NAMESPACE:NAME``; empty namespace where it has none."""
    namespace, colon, name = app_id.partition(":")
    return (namespace, name) if colon else ("", namespace)


def make_app_id(job: KubernetesObject) -> str:
    """Return the app id of a job."""
    return f"{job['metadata'].get('namespace', 'default')}:{job['metadata']['name']}"


def jobs_path(namespace: str, name: str = "") -> str:
    """Return the path of a namespace's jobs, or of one of them."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/jobs"
    return f"{path}/{name}" if name else path


def pods_path(namespace: str, name: str = "") -> str:
    """Return the path of a namespace's pods, or of one of them."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    return f"{path}/{name}" if name else path


def events_path(namespace: str) -> str:
    """Return the path of a namespace's events."""
    return f"/api/v1/namespaces/{namespace}/events"


def find_job(server: ApiServer, app_id: str) -> KubernetesObject | None:
    """Return a job, None where there is none.

    Raises:
        SchedulerError: the server did not answer, or may not tell, or answered with something else.
    """
    from .api_server import ApiError

    namespace, name = split_app_id(app_id)
    namespace = namespace or server.namespace
    try:
        answer = server.request("GET", jobs_path(namespace, name))
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    job = checked_job(answer)
    if job is None:
        raise SchedulerError(
            f"{app_id}: the server answered with something that is not a job: is there a proxy in between?"
        )
    job["metadata"].setdefault("namespace", namespace)
    return job


def pods_of(server: ApiServer, namespace: str, job_name: str, job_uid: str = "") -> list[KubernetesObject]:
    """Return the pods of a job; see `list_pods`."""
    return list_pods(server, namespace, job_name, job_uid)[0]


def list_pods(
    server: ApiServer, namespace: str, job_name: str, job_uid: str = ""
) -> tuple[list[KubernetesObject], str]:
    """Return the pods of a job, in one request, and the version of the list.

    Args:
        server: the server.
        namespace: the job's.
        job_name: the job's name.
        job_uid: where it is given, pods of an earlier job of the same name are left out.
    """
    answer = server.request("GET", pods_path(namespace), params={"labelSelector": pods_selector(job_name)})
    pods = [pod for item in items_of(answer) if (pod := checked_pod(item)) is not None]
    return [pod for pod in pods if not job_uid or job_uid in owners_of(pod)], list_version(answer)


def pods_selector(job_name: str) -> str:
    """Return the label selector of a job's pods."""
    return f"{labels.JOB_NAME}={job_name}"


def owners_of(item: KubernetesObject) -> list[str]:
    """Return the uids of what owns an object."""
    return [owner.get("uid", "") for owner in item["metadata"].get("ownerReferences") or []]


def tasks_of(job: KubernetesObject) -> list[KubernetesObject]:
    """Return the tasks of a job; one task is one replica where TorchX made it."""
    return (job.get("spec") or {}).get("tasks") or []


def template_labels(task: KubernetesObject) -> dict[str, str]:
    """Return the labels that a task's pods get."""
    return ((task.get("template") or {}).get("metadata") or {}).get("labels") or {}


def is_torchx(job: KubernetesObject) -> bool:
    """Tell whether TorchX or this program made a job: its tasks' pods say so."""
    return any(template_labels(task).get(labels.MANAGED_BY) == labels.TORCHX for task in tasks_of(job))


def replica_of_task(task: KubernetesObject, index: int = 0) -> Replica:
    """Return which replica a pod of a task is; the role is as it was given where TorchX made the task.

    Args:
        task: the task.
        index: which of its pods.
    """
    pod_labels = template_labels(task)
    name = task.get("name", "")
    if labels.ROLE_NAME in pod_labels:
        return Replica(pod_labels[labels.ROLE_NAME], labels.number(pod_labels, labels.REPLICA_ID) + index)
    return Replica(name, index)


def count_of(task: KubernetesObject) -> int:
    """Return how many pods a task asks for."""
    return max(0, task.get("replicas", 1))


def replicas_of(job: KubernetesObject) -> list[tuple[Replica, KubernetesObject, str]]:
    """Return each replica of a job in order, its task, and its pod's name; at most `MOST_REPLICAS`."""
    job_name = job["metadata"]["name"]
    found = (
        (replica_of_task(task, index), task, f"{job_name}-{task.get('name', '')}-{index}")
        for task in tasks_of(job)
        for index in range(count_of(task))
    )
    return list(islice(found, MOST_REPLICAS))
