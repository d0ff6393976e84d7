"""The request of kubernetes: the job that would be created, as TorchX would, and its text for people and kubectl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...specs.roles import AppDef
from ..kube.objects import dig, sanitize_for_serialization
from ..options import StructuredOpts
from ..shared.readable_yaml import readable_yaml
from ..shared.secrets import MASK, is_secret, mask_args, mask_text
from . import labels
from .app_def import app_def_annotations
from .launching.form import LaunchForm, make_app_id

# Annotations that hold a whole manifest, secret values and all.
_WHOLE = (labels.APP_DEF, "kubectl.kubernetes.io/last-applied-configuration")


@dataclass
class KubernetesOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts kubernetes` prints them; `context` is ours."""

    queue: str | None = None
    """Volcano queue to schedule job in. Of Jobs and JobSets: the LocalQueue of Kueue; none: without Kueue."""

    namespace: str = "default"
    """Kubernetes namespace to schedule job in."""

    service_account: str | None = None
    """The service account name to set on the pod specs."""

    priority_class: str | None = None
    """The name of the PriorityClass to set on the job specs."""

    validate_spec: bool = True
    """Validate job spec using Kubernetes API dry-run before submission."""

    reserved_millicpu: int = 100
    """Amount of CPU in millicores to reserve for Kubernetes system overhead (default: 100)."""

    reserved_memmb: int = 1024
    """Amount of memory in MB to reserve for Kubernetes system overhead (default: 1024)."""

    efa_device_count: int | None = None
    """EFA device count override: None/unset=use resource spec, 0=remove EFA, N>0=set EFA count to N."""

    kind: str = "auto"
    """What runs it: volcano, jobset, job (Jobs of Kubernetes itself). auto: the first of these that the server has."""

    context: str | None = None
    """Context of the kubeconfig to use. None: the cluster that this program runs in, else the current context."""


def masked(value: Any, names: set[str] | None = None) -> Any:
    """Return a copy of an object, or a part of one, as it may be shown.

    Args:
        value: plain data.
        names: gets the names of the variables whose values were masked.
    """
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return mask_args(value)
        return [masked(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and is_secret(value["name"]):
        if value["value"] and names is not None:
            names.add(value["name"])
        return {**value, "value": MASK if value["value"] else ""}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        return {**value, "value": mask_text(value["name"], value["value"])}
    made = {name: masked(item, names) for name, item in value.items()}
    for name in _WHOLE:
        if isinstance(text := made.get(name), str):
            made[name] = f"<{len(text.encode())} bytes of JSON>"
    return made


@dataclass
class KubernetesJob:
    """What is created for one app.

    Args:
        images_to_push: the repository and tag that each image of the local Docker engine is pushed to before.
        resource: the job.
        others: what is created after it and belongs to it, such as its Service.
        prefix: that of its app id, see `make_app_id`.
    """

    images_to_push: dict[str, tuple[str, str]]
    resource: dict[str, Any]
    others: list[dict[str, Any]] = field(default_factory=list)
    prefix: str = ""

    @property
    def app_id(self) -> str:
        """The app's id."""
        return make_app_id(self.resource, self.prefix)

    def __str__(self) -> str:
        shown: list[dict[str, Any]] = sanitize_for_serialization([self.resource, *self.others])
        notes = [*self._pushes(), *_without_app_def(shown[0])]
        secrets: set[str] = set()
        documents = [readable_yaml(masked(one, secrets)) for one in shown]
        if self.others:
            notes.append("the first object owns the others: an ownerReference with its uid is added to them")
        if secrets:
            notes.append(f"values shown as {MASK} are sent in full: {', '.join(sorted(secrets))}")
        return "".join(f"# {note}\n" for note in notes) + "---\n".join(documents)

    def _pushes(self) -> Iterator[str]:
        for image, (repository, tag) in self.images_to_push.items():
            yield f"{image:.19} is pushed to {repository}:{tag} before"


def make_request(
    app: AppDef,
    session: str,
    opts: KubernetesOpts,
    kind: LaunchForm,
    images_to_push: Mapping[str, tuple[str, str]] | None = None,
) -> KubernetesJob:
    """Return the request for an app.

    Args:
        app: the app; its images are those that nodes pull.
        session: the session part of its handle.
        opts: the run options.
        kind: the kind of job.
        images_to_push: see `KubernetesJob`.

    Raises:
        AppDefError: the app cannot be a job.
    """
    pushes = dict(images_to_push or {})
    kind.check(app, opts.namespace)
    resource, *others = kind.manifest(app, opts)
    built = {f"{repository}:{tag}" for repository, tag in pushes.values()}
    metadata: dict[str, Any] = resource["metadata"]
    # `kubectl apply` puts them where the launch does.
    for one in (resource, *others):
        one["metadata"]["namespace"] = opts.namespace
    metadata.setdefault("annotations", {}).update(app_def_annotations(app, session, built=built))
    return KubernetesJob(pushes, resource, others, kind.prefix)


def _without_app_def(resource: dict[str, Any]) -> Iterator[str]:
    """Take the AppDef, which is long and can hold secrets, out of a job; yield words that say so."""
    annotations = dig(resource, "metadata", "annotations") or {}
    if text := annotations.pop(labels.APP_DEF, ""):
        yield f"left out here: the annotation {labels.APP_DEF}, the AppDef as {len(text.encode())} bytes of JSON"
