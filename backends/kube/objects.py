"""Objects of an API server as plain data, and the shapes that this program relies on.

Custom resources hold what any client wrote, and servers of other makes answer what they like: an object of another
shape is left out, and costs one row. Fields that are not listed may hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NewType

from ...base.typed_data import convert

KubernetesObject = dict[str, Any]
"""One object as an API server gives it: a pod, an event."""

# Names of objects are DNS subdomains (RFC 1123); servers of other makes may allow more letters.
Name = NewType("Name", str)
# Go writes a time that is not set as null.
Time = str | None
Texts = dict[str, str]


# Compared by identity: the hash of a shape with all that is in it took as long as the check itself.
@dataclass(frozen=True, eq=False)
class Shape:
    """The types of an object's fields; only the needed ones must be there. A tuple of one type is a list of it."""

    needed: tuple[str, ...]
    fields: tuple[tuple[str, Any], ...]


def shape(*needed: str, **fields: Any) -> Shape:
    """Return the shape of objects with these fields; ``[kind]`` is a list."""
    kinds = {name: tuple(kind) if isinstance(kind, list) else kind for name, kind in fields.items()}
    return Shape(needed, tuple(kinds.items()))


@cache
def _type(kind: Any) -> Any:
    """Return msgspec's type, made at the first use: the Python of a component may have no msgspec."""
    import msgspec

    if kind is Name:
        return Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")]
    if isinstance(kind, tuple):
        return list.__class_getitem__(_type(kind[0]))
    if not isinstance(kind, Shape):
        return kind
    fields = [(name, _type(one)) if name in kind.needed else (name, _type(one), None) for name, one in kind.fields]
    return msgspec.defstruct("Shape", fields, kw_only=True)


_STATE = shape(
    waiting=shape(reason=str, message=str),
    running=shape(startedAt=Time),
    terminated=shape(exitCode=int, reason=str, message=str, startedAt=Time, finishedAt=Time),
)
_STATUSES = [shape("name", name=Name, image=str, ready=bool, restartCount=int, state=_STATE, lastState=_STATE)]
_CONTAINERS = [
    shape(
        "name",
        name=Name,
        image=str,
        command=list[str],
        args=list[str],
        env=[shape(name=str, value=str, valueFrom=shape(fieldRef=shape(fieldPath=str)))],
        ports=[shape(name=str, containerPort=int, hostPort=int, protocol=str)],
        resources=shape(limits=dict, requests=dict),
        volumeMounts=[shape(name=str, mountPath=str)],
        securityContext=dict,
        restartPolicy=str,
    )
]
POD_SPEC = shape(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    nodeName=str,
    nodeSelector=Texts,
    restartPolicy=str,
    schedulerName=str,
    schedulingGates=[shape(name=str)],
    schedulingGroup=shape(podGroupName=str),
    serviceAccountName=str,
    volumes=[shape(name=str, hostPath=shape(path=str), persistentVolumeClaim=shape(claimName=str))],
)
METADATA = shape(
    "name",
    name=Name,
    namespace=Name,
    uid=str,
    resourceVersion=str,
    creationTimestamp=Time,
    deletionTimestamp=Time,
    deletionGracePeriodSeconds=int,
    labels=Texts,
    annotations=Texts,
    ownerReferences=[shape(uid=str, kind=str, name=str)],
    managedFields=[shape(time=Time, fieldsV1=dict)],
)
_POD = shape(
    "metadata",
    metadata=METADATA,
    spec=POD_SPEC,
    status=shape(
        phase=str,
        reason=str,
        message=str,
        podIP=str,
        conditions=[shape(type=str, status=str, reason=str, message=str)],
        containerStatuses=_STATUSES,
        initContainerStatuses=_STATUSES,
    ),
)
_EVENT = shape(
    involvedObject=shape(kind=str, name=str, uid=str),
    reason=str,
    message=str,
    lastTimestamp=Time,
    eventTime=Time,
    series=shape(lastObservedTime=Time),
)


def checked_pod(item: Any) -> KubernetesObject | None:
    """Return a pod; None if it does not have the shape of one."""
    return checked(item, _POD)


def checked_event(item: Any) -> KubernetesObject | None:
    """Return an event; None if it does not have the shape of one."""
    return checked(item, _EVENT)


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
    return item["metadata"].get("uid", "")


def name_of(item: KubernetesObject) -> str:
    """Return an object's name."""
    return item["metadata"]["name"]


def owners_of(item: KubernetesObject) -> list[str]:
    """Return the uids of what owns an object."""
    return [owner.get("uid", "") for owner in item["metadata"].get("ownerReferences", [])]


def pods_path(namespace: str, name: str = "") -> str:
    """Return the path of a namespace's pods, of all pods if it is empty, or of one of them."""
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
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
    version = dig(answer, "metadata", "resourceVersion")
    return version if isinstance(version, str) else ""


def checked(item: Any, kind: Shape) -> KubernetesObject | None:
    """Return an object; None if it does not have this shape."""
    try:
        if _fits(item, kind):
            return item
        # A client may write null for a field that is not set.
        item = _without_nulls(item)
        return item if _fits(item, kind) else None
    except RecursionError:
        return None


def _fits(item: Any, kind: Shape) -> bool:
    try:
        convert(item, _type(kind))
    except ValueError:
        return False
    return True


def _without_nulls(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _without_nulls(value) for name, value in item.items() if value is not None}
    return [_without_nulls(value) for value in item] if isinstance(item, list) else item


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
