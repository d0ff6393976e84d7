"""Gangs of Kubernetes' own scheduler (``scheduling.k8s.io``, alpha in 1.36), for roles that start with fewer replicas.

Of a Job that names no group its controller makes a gang of all pods, where that is turned on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....specs.roles import AppDef
from ...kube.objects import KubernetesObject, dig, name_of
from .form import role_of

GANGS = "scheduling.k8s.io/v1alpha2"
"""The API group and version of gangs."""


def add_gangs(app: AppDef, jobs: Iterable[KubernetesObject]) -> Iterator[KubernetesObject]:
    """Let the Jobs of roles with `min_replicas` name a gang of this many pods; yield the objects that make it.

    Args:
        app: the app.
        jobs: its Jobs, which are changed.
    """
    least = {role.name: role.min_replicas for role in app.roles}
    for job in jobs:
        pod = dig(job, "spec", "template") or {}
        count = least.get(role_of(pod))
        if not count:
            continue
        name, policy = name_of(job), {"gang": {"minCount": count}}
        pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        template = {"name": "workers", "schedulingPolicy": policy}
        yield _object("Workload", job, {"podGroupTemplates": [template]})
        reference = {"workload": {"workloadName": name, "podGroupTemplateName": template["name"]}}
        yield _object("PodGroup", job, {"podGroupTemplateRef": reference, "schedulingPolicy": policy})


def _object(kind: str, job: KubernetesObject, spec: KubernetesObject) -> KubernetesObject:
    metadata = {part: value for part, value in job["metadata"].items() if part in ("name", "namespace", "labels")}
    return {"apiVersion": GANGS, "kind": kind, "metadata": metadata, "spec": spec}
