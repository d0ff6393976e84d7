"""The request of kubernetes: the job that would be created, as TorchX would, and its text for people and kubectl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...specs import AppDef
from ..readable_yaml import readable_yaml
from ..secrets import MASK
from . import labels
from .app_def import app_def_annotations
from .jobs import make_app_id
from .manifest import app_to_resource
from .masking import masked
from .names import check_app
from .options import KubernetesOpts
from .sanitize import sanitize_for_serialization


@dataclass
class KubernetesJob:
    """What is created for one app.

    Args:
        images_to_push: the repository and tag that each image of the local Docker engine is pushed to before.
        resource: the job.
    """

    images_to_push: dict[str, tuple[str, str]]
    resource: dict[str, Any]

    @property
    def app_id(self) -> str:
        """The app's id, ``NAMESPACE:NAME``."""
        return make_app_id(self.resource)

    def __str__(self) -> str:
        shown: dict[str, Any] = sanitize_for_serialization(self.resource)
        notes = [*self._pushes(), *_without_app_def(shown)]
        secrets: set[str] = set()
        shown = masked(shown, secrets)
        if secrets:
            notes.append(f"values shown as {MASK} are sent in full: {', '.join(sorted(secrets))}")
        return "".join(f"# {note}\n" for note in notes) + readable_yaml(shown)

    def _pushes(self) -> Iterator[str]:
        for image, (repository, tag) in self.images_to_push.items():
            yield f"{image:.19} is pushed to {repository}:{tag} before"


def make_request(
    app: AppDef, session: str, opts: KubernetesOpts, images_to_push: Mapping[str, tuple[str, str]] | None = None
) -> KubernetesJob:
    """Return the request for an app.

    Args:
        app: the app; its images are those that nodes pull.
        session: the session part of its handle.
        opts: the run options.
        images_to_push: see `KubernetesJob`.

    Raises:
        AppDefError: the app cannot be a job.
    """
    pushes = dict(images_to_push or {})
    check_app(app, opts.namespace)
    resource = app_to_resource(
        app,
        opts.queue,
        opts.service_account,
        opts.priority_class,
        reserved_millicpu=opts.reserved_millicpu,
        reserved_memmb=opts.reserved_memmb,
        efa_device_count=opts.efa_device_count,
    )
    built = {f"{repository}:{tag}" for repository, tag in pushes.values()}
    metadata: dict[str, Any] = resource["metadata"]
    # `kubectl apply` puts it where the launch does.
    metadata["namespace"] = opts.namespace
    metadata["annotations"] = app_def_annotations(app, session, built=built)
    return KubernetesJob(pushes, resource)


def _without_app_def(resource: dict[str, Any]) -> Iterator[str]:
    """Take the AppDef, which is long and can hold secrets, out of a job; yield words that say so."""
    annotations = (resource.get("metadata") or {}).get("annotations") or {}
    if text := annotations.pop(labels.APP_DEF, ""):
        yield f"left out here: the annotation {labels.APP_DEF}, the AppDef as {len(text.encode())} bytes of JSON"
