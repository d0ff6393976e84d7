"""JobSets (https://jobset.sigs.k8s.io): one object for all roles, which can be restarted together."""

from __future__ import annotations

import re
from typing import Any

from ....specs.handles import normalize_str
from ....specs.roles import AppDef, RetryPolicy, Role
from ...kube.api_server import ApiServer
from ...kube.objects import KubernetesObject
from ...types import Finding
from .batch import common_findings, job_labels, job_spec, replica_retries, unique_name
from .form import LaunchForm

# JobSet's webhook counts the random part of a pod's name.
_RANDOM_PART = "-abcde"


class JobSetForm(LaunchForm):
    """JobSets of ``jobset.x-k8s.io/v1alpha2``: a replicated job of one Indexed Job for each role."""

    prefix = "jobset"
    group, version, resource = "jobset.x-k8s.io", "v1alpha2", "jobsets"
    unknown = (
        f"the cluster has no JobSet: there is no {group}/{version}; leave kind out, or let its administrator "
        "install it (https://jobset.sigs.k8s.io)"
    )

    explanations = (
        (
            re.compile(r"replicatedJobs.*field is immutable", re.DOTALL),
            "this JobSet controller lets no JobSet be changed: its feature gate ElasticJobSet would allow it",
        ),
    )

    def pod_name(self, job: str, app: AppDef, role: Role, k: int) -> str:
        return f"{job}-{normalize_str(role.name)}-0-{k}{_RANDOM_PART}"

    def manifest(self, app: AppDef, options: Any) -> list[KubernetesObject]:
        name = unique_name(app)
        host = f"{name}-{normalize_str(app.roles[0].name)}-0-0.{name}"
        of_all = [role for role in app.roles if RetryPolicy(role.retry_policy) is not RetryPolicy.REPLICA]
        restarts = min((role.max_retries for role in of_all), default=0)
        spec: KubernetesObject = {
            # The JobSet makes a Service of its name.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "replicatedJobs": [
                _replicated_job(app, index, name, host, options, is_restarted_alone=role not in of_all)
                for index, role in enumerate(app.roles)
            ],
        }
        if restarts > 0:
            spec["failurePolicy"] = {"maxRestarts": restarts}
        metadata = {"name": name, "labels": job_labels(app, name, options)}
        return [{"apiVersion": f"{self.group}/{self.version}", "kind": "JobSet", "metadata": metadata, "spec": spec}]

    def launch_findings(self, server: ApiServer, app: AppDef, options: Any) -> list[Finding]:
        return list(common_findings(server, app, options))


def _replicated_job(
    app: AppDef, index: int, name: str, host: str, options: Any, is_restarted_alone: bool
) -> KubernetesObject:
    role = app.roles[index]
    spec = job_spec(app, index, name, host, options)
    if is_restarted_alone and role.max_retries > 0:
        spec.update(replica_retries(role))
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"name": normalize_str(role.name), "replicas": 1, "template": {"spec": spec}}
