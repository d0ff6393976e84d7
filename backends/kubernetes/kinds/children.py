"""The jobs that were made for another job."""

from __future__ import annotations

from collections.abc import Mapping

from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import KubernetesObject, items_of, owners_of, uid_of
from ..job_kind import CHILDREN, JobKind


def with_children(
    kind: JobKind, server: ApiServer, job: KubernetesObject, params: Mapping[str, str] | None = None
) -> KubernetesObject:
    """Return a job with its `CHILDREN`; without them where they may not be read.

    Args:
        kind: the kind of its children.
        server: the server.
        job: the job.
        params: selects its children, among others.
    """
    try:
        found = items_of(server.request("GET", kind.path(job["metadata"]["namespace"]), params=params))
    except ApiError:
        return job
    made = [one for item in found if (one := kind.checked(item)) is not None and uid_of(job) in owners_of(one)]
    for one in made:
        one["metadata"].setdefault("namespace", job["metadata"]["namespace"])
    made.sort(key=lambda one: str(one["metadata"].get("creationTimestamp") or ""))
    return {**job, CHILDREN: made}


def children_of(job: KubernetesObject) -> list[KubernetesObject]:
    """Return the jobs that were made for a job, as far as they are known."""
    return job.get(CHILDREN) or []
