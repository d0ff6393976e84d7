"""What a launch has to know of the kind of job that an app becomes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....specs.roles import AppDef, Role
from ...kube.objects import KubernetesObject, dig, name_of
from ...kube.rights import Right
from ...types import Finding, NameFault
from .. import labels, names

if TYPE_CHECKING:
    from ...kube.api_server import ApiServer

# The paths of the objects that a launch may create beside its job.
_PATHS = {
    "Service": "/api/v1/namespaces/{}/services",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Workload": "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/workloads",
    "PodGroup": "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups",
}


def make_app_id(job: KubernetesObject, prefix: str = "") -> str:
    """Return the app id of a job: ``NAMESPACE:NAME``, or ``NAMESPACE:PREFIX:NAME`` where its kind has a prefix."""
    return ":".join(filter(None, (job["metadata"].get("namespace", "default"), prefix, name_of(job))))


class LaunchForm(ABC):
    """The objects that an app becomes on an API server.

    Attributes:
        prefix: the part of app ids that tells it from kinds that may have jobs of the same name; empty for Volcano's,
            whose ids are TorchX's.
        group: the API group of the job.
        version: its version.
        resource: the plural that paths and rights use.
        unknown: the message for a server that does not know this kind.
        explanations: patterns of refusals with their messages, which use the pattern's groups.
        more_rights: the rights that launches of several replicas need besides.
    """

    prefix: str
    group: str
    version: str
    resource: str
    unknown: str
    explanations: Sequence[tuple[re.Pattern[str], str]] = ()
    more_rights: Sequence[Right] = ()

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a namespace's jobs, of one of them, or of all jobs."""
        parts = [f"/apis/{self.group}/{self.version}", *(["namespaces", namespace] if namespace else []), self.resource]
        return "/".join([*parts, name] if name else parts)

    def app_id(self, job: KubernetesObject) -> str:
        """Return the app id of a job; see `make_app_id`."""
        return make_app_id(job, self.prefix)

    @abstractmethod
    def pod_name(self, job: str, app: AppDef, role: Role, k: int) -> str:
        """Return the name of a replica's pod without its random part, see `names.PodName`."""

    def name_faults(self, app: AppDef) -> list[NameFault]:
        """Return the names that cannot be those of pods; see `Scheduler.check_names`."""
        return list(names.name_faults(app, self.pod_name))

    def check(self, app: AppDef, namespace: str) -> None:
        """Refuse an app that cannot be a job.

        Raises:
            AppDefError: a name, a port or a value is not valid, or there is nothing to run.
        """
        names.check_app(app, namespace, self.pod_name)

    @abstractmethod
    def manifest(self, app: AppDef, options: Any) -> list[KubernetesObject]:
        """Return the objects that an app becomes with these run options: the job, then those that belong to it.

        Raises:
            AppDefError: the app cannot be a job.
            InvalidRunConfigException: a run option that this kind needs is missing.
        """

    def replica_at(self, job: KubernetesObject, field: str) -> tuple[str, str]:
        """Return the role or replica that a field of a job belongs to, empty if none, and the rest of its path."""
        best = max((path for path, _ in pod_templates(job) if field.startswith(path)), key=len, default="")
        template = dict(pod_templates(job)).get(best, {})
        return (role_of(template), field.removeprefix(best).lstrip(".")) if best else ("", field)

    @abstractmethod
    def launch_findings(self, server: ApiServer, app: AppDef, options: Any) -> list[Finding]:
        """Check what a launch needs of the cluster besides the namespace and the pods."""


def pod_templates(item: KubernetesObject) -> Iterator[tuple[str, KubernetesObject]]:
    """Yield the pod templates of an object, each with the path of its field."""
    spec = item.get("spec") or {}
    for index, task in enumerate(spec.get("tasks") or []):
        yield f"spec.tasks[{index}].template", task.get("template") or {}
    for index, one in enumerate(spec.get("replicatedJobs") or []):
        path = f"spec.replicatedJobs[{index}].template.spec.template"
        yield path, dig(one, "template", "spec", "template") or {}
    if "template" in spec:
        yield "spec.template", spec["template"]


def role_of(template: KubernetesObject) -> str:
    """Return the role whose pods a template is of; empty if it does not say."""
    return dig(template, "metadata", "labels", labels.ROLE_NAME) or ""


def path_of(item: KubernetesObject, namespace: str) -> str:
    """Return the path under which an object that belongs to a job is created."""
    return _PATHS[item["kind"]].format(namespace)
