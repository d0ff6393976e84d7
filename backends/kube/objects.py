"""The shapes of what a server answers, checked once where it enters: a value of another type is as good as missing.

Custom resources hold what any client wrote, and servers of other makes answer what they like. Everything behind this
module may rely on the types that are listed here; fields that are not listed stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

KubernetesObject = dict[str, Any]
"""One object as an API server gives it: a pod, an event."""

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
    """A string that is required: an object without it is dropped."""


class TextMap:
    """A mapping of strings to strings, such as labels."""


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
POD_SPEC = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeName": str,
    "nodeSelector": TextMap,
    "restartPolicy": str,
    "serviceAccountName": str,
    "volumes": [{"name": str, "hostPath": {"path": str}, "persistentVolumeClaim": {"claimName": str}}],
}
METADATA = {
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
_POD = {
    "metadata": METADATA,
    "spec": POD_SPEC,
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


def checked_pod(item: Any) -> KubernetesObject | None:
    """Return a pod without the values that have the wrong type, changed in place; None if it has no name."""
    return checked(item, _POD)


def checked_event(item: Any) -> KubernetesObject | None:
    """Return an event as `checked_pod` does a pod; None if it is not an object."""
    return item if _fits(item, _EVENT) else None


def dig(item: Any, *path: str) -> Any:
    """Return a field by its path; None if a part of the path is missing."""
    try:
        for name in path:
            item = item[name]
    except (KeyError, TypeError):
        return None
    return item


def uid_of(item: KubernetesObject) -> str:
    """Return an object's uid, which another one of the same name does not have."""
    return str(item["metadata"].get("uid") or "")


def name_of(item: KubernetesObject) -> str:
    """Return an object's name."""
    return item["metadata"]["name"]


def owners_of(item: KubernetesObject) -> list[str]:
    """Return the uids of what owns an object."""
    return [owner.get("uid", "") for owner in item["metadata"].get("ownerReferences") or []]


def pods_path(namespace: str, name: str = "") -> str:
    """Return the path of a namespace's pods, or of one of them."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    return f"{path}/{name}" if name else path


def events_path(namespace: str) -> str:
    """Return the path of a namespace's events."""
    return f"/api/v1/namespaces/{namespace}/events"


def number(labels: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return the number that a label holds, ``default`` where it is missing or none."""
    try:
        return int(labels.get(name, ""))
    except ValueError:
        return default


def items_of(answer: Mapping[str, Any]) -> list[Any]:
    """Return the objects of a list's answer, unchecked."""
    items = answer.get("items")
    return items if isinstance(items, list) else []


def list_version(answer: Mapping[str, Any]) -> str:
    """Return the version of a list, from which a watch continues; empty if it has none."""
    metadata = answer.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def checked(item: Any, shape: Mapping[str, Any]) -> KubernetesObject | None:
    """Return an object without the values that a shape forbids, changed in place; None if it has no name."""
    if not _fits(item, shape):
        return None
    metadata = item.get("metadata") or {}
    namespace = metadata.get("namespace")
    if not _NAME.fullmatch(metadata.get("name") or "") or (namespace and not _NAME.fullmatch(namespace)):
        return None
    return item


def _fits(value: Any, shape: Any) -> bool:
    """Return whether a value has a shape; its parts with another one are removed."""
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


def sanitize_for_serialization(obj: object) -> Any:
    """Return an object as the JSON that an API server takes.

    Args:
        obj: plain data, with models of the package `kubernetes`, such as ``V1Pod``, anywhere within it.
    """
    if obj is None or isinstance(obj, (str, int, float, bool)):
        return obj
    if isinstance(obj, Mapping):
        return {str(key): sanitize_for_serialization(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [sanitize_for_serialization(value) for value in obj]
    return _client().sanitize_for_serialization(obj)


@cache
def _client() -> Any:
    from kubernetes.client import ApiClient

    return ApiClient()
