"""Volcano's jobs and their pods: where they are on the server, whose they are, which replica each is.

Paths and shapes are those of ``batch.volcano.sh/v1alpha1`` and of ``v1`` pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import labels

if TYPE_CHECKING:
    from .api_server import ApiServer

Object = dict[str, Any]
"""An object as the server gives it."""

GROUP = "batch.volcano.sh"
VERSION = "v1alpha1"
JOBS = f"/apis/{GROUP}/{VERSION}/jobs"
"""The jobs of all namespaces."""


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


def make_app_id(job: Object) -> str:
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


def find_job(server: ApiServer, app_id: str) -> Object | None:
    """Return a job, None where there is none.

    Raises:
        SchedulerError: the server did not answer, or may not tell.
    """
    from .api_server import ApiError

    namespace, name = split_app_id(app_id)
    try:
        return server.request("GET", jobs_path(namespace or server.namespace, name))
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def pods_of(server: ApiServer, namespace: str, job_name: str, job_uid: str = "") -> list[Object]:
    """Return the pods of a job, in one request.

    Args:
        server: the server.
        namespace: the job's.
        job_name: the job's name.
        job_uid: where it is given, pods of an earlier job of the same name are left out.
    """
    answer = server.request("GET", pods_path(namespace), params={"labelSelector": f"{labels.JOB_NAME}={job_name}"})
    return [pod for pod in answer.get("items") or [] if not job_uid or job_uid in _owners(pod)]


def _owners(pod: Object) -> list[str]:
    return [owner.get("uid", "") for owner in pod["metadata"].get("ownerReferences") or []]


def tasks_of(job: Object) -> list[Object]:
    """Return the tasks of a job; one task is one replica where TorchX made it."""
    return (job.get("spec") or {}).get("tasks") or []


def template_labels(task: Object) -> dict[str, str]:
    """Return the labels that a task's pods get."""
    return ((task.get("template") or {}).get("metadata") or {}).get("labels") or {}


def is_torchx(job: Object) -> bool:
    """Tell whether TorchX or this program made a job: its tasks' pods say so."""
    return any(template_labels(task).get(labels.MANAGED_BY) == labels.TORCHX for task in tasks_of(job))


def replica_of_task(task: Object, index: int = 0) -> Replica:
    """Return which replica a pod of a task is; the role is as it was given where TorchX made the task.

    Args:
        task: the task.
        index: which of its pods.
    """
    found = template_labels(task)
    name = task.get("name", "")
    if labels.ROLE_NAME in found:
        return Replica(found[labels.ROLE_NAME], labels.number(found, labels.REPLICA_ID) + index)
    return Replica(name, index)


def replicas_of(job: Object) -> list[tuple[Replica, Object, str]]:
    """Return each replica of a job in order, its task, and its pod's name."""
    job_name = job["metadata"]["name"]
    return [
        (replica_of_task(task, index), task, f"{job_name}-{task.get('name', '')}-{index}")
        for task in tasks_of(job)
        for index in range(task.get("replicas") or 1)
    ]
