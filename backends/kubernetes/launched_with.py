"""The run options that a job was launched with, as far as it tells."""

from __future__ import annotations

from typing import Any

from .jobs import Object, tasks_of
from .quantities import cores


def cfg_of(job: Object) -> dict[str, Any]:
    """Return the run options that launch the same again; those that the job does not tell of are left out."""
    spec = job.get("spec") or {}
    tasks = tasks_of(job)
    pod = ((tasks[0].get("template") or {}).get("spec") or {}) if tasks else {}
    account = pod.get("serviceAccountName")
    found = {
        "queue": spec.get("queue") or "default",
        "namespace": job["metadata"].get("namespace"),
        "priority_class": spec.get("priorityClassName"),
        # A server names this one where none was.
        "service_account": account if account != "default" else None,
        "reserved_millicpu": _reserved(pod, "cpu", 1e-3),
        "reserved_memmb": _reserved(pod, "memory", 1e6),
    }
    return {name: value for name, value in found.items() if value is not None}


def _reserved(pod: Object, resource: str, unit: float) -> int | None:
    """Return by how much a container asks for less than it may use, None where it does not say."""
    for container in pod.get("containers") or []:
        resources = container.get("resources") or {}
        limit = cores((resources.get("limits") or {}).get(resource))
        request = cores((resources.get("requests") or {}).get(resource))
        if limit is not None and request is not None:
            return round((limit - request) / unit)
    return None
