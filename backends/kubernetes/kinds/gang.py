"""Why a gang of Kubernetes' own scheduler waits, by its PodGroup (``scheduling.k8s.io``, alpha in 1.36)."""

from __future__ import annotations

from ....logs.text.sanitize import plain
from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import METADATA, KubernetesObject, checked, dig, shape

_PATH = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups/{}"
_GROUP = shape("metadata", metadata=METADATA, spec=shape(schedulingPolicy=shape(gang=shape(minCount=int))))


def group_of(job: KubernetesObject) -> str:
    """Return the PodGroup that a Job's pods name; empty if its controller makes one, or none."""
    return dig(job, "spec", "template", "spec", "schedulingGroup", "podGroupName") or ""


def read_group_reason(server: ApiServer, job: KubernetesObject, wanted: int) -> str:
    """Return why the PodGroup of a Job never starts; empty if it may, or if it cannot be read.

    Args:
        server: the server.
        job: the job.
        wanted: how many pods it makes.
    """
    name = group_of(job)
    try:
        found = server.find(_PATH.format(job["metadata"].get("namespace"), name))
    except ApiError:
        return ""
    if found is None:
        return plain(f"its PodGroup {name} does not exist: it starts once somebody creates it")
    least = dig(checked(found, _GROUP), "spec", "schedulingPolicy", "gang", "minCount") or 0
    if least <= wanted:
        return ""
    return plain(f"its PodGroup {name} wants {least} pods, the Job makes {wanted}: it will never start")
