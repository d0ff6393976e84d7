"""The shapes of what a server answers, checked once where it enters: a value of another type is as good as missing.

Custom resources hold what any client wrote, and servers of other makes answer what they like. Everything behind this
module may rely on the types that are listed here; fields that are not listed stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

KubernetesObject = dict[str, Any]
"""One object as an API server gives it: a job, a pod, an event."""

# Names of objects are DNS subdomains (RFC 1123); servers of other makes may allow more letters.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


_MISSING = object()
_ENV = {"name": str, "value": str, "valueFrom": {"fieldRef": {"fieldPath": str}}}
_STATE = {
    "waiting": {"reason": str, "message": str},
    "running": {"startedAt": str},
    "terminated": {"exitCode": int, "reason": str, "message": str, "startedAt": str, "finishedAt": str},
}
_CONTAINER_STATUS = {"name": str, "image": str, "restartCount": int, "state": _STATE, "lastState": _STATE}
_EVENT = {
    "metadata": {"uid": str, "resourceVersion": str},
    "involvedObject": {"kind": str, "name": str, "uid": str},
    "reason": str,
    "message": str,
    "lastTimestamp": str,
    "eventTime": str,
}


class Needed:
    """A text that its object is dropped without."""


class TextMap:
    """A mapping of texts to texts, such as labels."""


_CONTAINER = {
    "name": Needed,
    "image": str,
    "command": [str],
    "args": [str],
    "env": [_ENV],
    "ports": [{"name": str, "containerPort": int, "protocol": str}],
    "resources": {"limits": dict, "requests": dict},
    "volumeMounts": [{"name": str, "mountPath": str}],
    "securityContext": dict,
    "restartPolicy": str,
}
_POD_SPEC = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeName": str,
    "nodeSelector": TextMap,
    "restartPolicy": str,
    "serviceAccountName": str,
    "volumes": [{"name": str, "hostPath": {"path": str}, "persistentVolumeClaim": {"claimName": str}}],
}
_METADATA = {
    "name": Needed,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "deletionGracePeriodSeconds": int,
    "labels": TextMap,
    "annotations": TextMap,
    "ownerReferences": [{"uid": str}],
    "managedFields": [{"time": str, "fieldsV1": dict}],
}
_TASK = {
    "name": str,
    "replicas": int,
    "minAvailable": int,
    "maxRetry": int,
    "policies": [{"action": str, "event": str}],
    "template": {"metadata": {"labels": TextMap, "annotations": TextMap}, "spec": _POD_SPEC},
}
_JOB = {
    "metadata": _METADATA,
    "spec": {"queue": str, "priorityClassName": str, "policies": [{"action": str}], "tasks": [_TASK]},
    "status": {
        "state": {"phase": str, "reason": str, "message": str, "lastTransitionTime": str},
        "conditions": [{"status": str, "lastTransitionTime": str}],
        "running": int,
        "succeeded": int,
        "retryCount": int,
    },
}
_POD = {
    "metadata": _METADATA,
    "spec": _POD_SPEC,
    "status": {
        "phase": str,
        "reason": str,
        "message": str,
        "podIP": str,
        "conditions": [{"type": str, "status": str, "reason": str, "message": str}],
        "containerStatuses": [_CONTAINER_STATUS],
        "initContainerStatuses": [_CONTAINER_STATUS],
    },
}


def checked_job(item: Any) -> KubernetesObject | None:
    """Return a job without the values that have the wrong type, changed in place; None where it has no name."""
    return _checked(item, _JOB)


def checked_pod(item: Any) -> KubernetesObject | None:
    """Return a pod as `checked_job` does a job."""
    return _checked(item, _POD)


def checked_event(item: Any) -> KubernetesObject | None:
    """Return an event as `checked_job` does a job; None where it is no object."""
    return item if _fits(item, _EVENT) else None


def items_of(answer: Mapping[str, Any]) -> list[Any]:
    """Return the objects of a list's answer, unchecked."""
    items = answer.get("items")
    return items if isinstance(items, list) else []


def list_version(answer: Mapping[str, Any]) -> str:
    """Return the version of a list, from which a watch goes on; empty where it has none."""
    metadata = answer.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def _checked(item: Any, shape: Mapping[str, Any]) -> KubernetesObject | None:
    if not _fits(item, shape):
        return None
    metadata = item.get("metadata") or {}
    namespace = metadata.get("namespace")
    if not _NAME.fullmatch(metadata.get("name") or "") or (namespace and not _NAME.fullmatch(namespace)):
        return None
    return item


def _fits(value: Any, shape: Any) -> bool:
    """Tell whether a value has a shape; parts of it that have not are taken out."""
    if type(shape) is dict:
        return type(value) is dict and _fit_fields(value, shape)
    if type(shape) is list:
        if type(value) is not list:
            return False
        value[:] = [item for item in value if _fits(item, shape[0])]
        return True
    if shape is TextMap:
        if type(value) is not dict:
            return False
        for name in [name for name, text in value.items() if type(text) is not str]:
            del value[name]
        return True
    return type(value) is (str if shape is Needed else shape)


def _fit_fields(value: KubernetesObject, shape: Mapping[str, Any]) -> bool:
    for name, part in shape.items():
        field_value = value.get(name, _MISSING)
        if field_value is _MISSING:
            if part is Needed:
                return False
        # Most fields are plain and right: they cost no call, as a list may have ten thousand jobs.
        elif type(field_value) is not part and not _fits(field_value, part):
            del value[name]
            if part is Needed:
                return False
    return True
