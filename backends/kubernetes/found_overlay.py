"""What a pod has that TorchX's pods do not, as an overlay: so that it is there when the role is launched again."""

from __future__ import annotations

from typing import Any

from ...specs import DeviceMount, Role, macros, normalize_str
from . import labels
from .overlay import DEL, JOIN
from .jobs import Object
from .pods import is_node_label

DSHM: Object = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
"""The volume of shared memory of every pod."""

# What a role says; the rest is an overlay's.
_OF_SPEC = {"containers", "nodeSelector", "restartPolicy", "serviceAccountName", "volumes"}
_OF_CONTAINER = {"command", "args", "env", "envFrom", "image", "name", "ports", "resources", "volumeMounts"}
_OURS = (f"{labels.TORCHX}/", "app.kubernetes.io/")


def overlay_of(template: Object, main: Object, role: Role) -> Object:
    """Return the overlay of a role; empty where its pods are TorchX's.

    Args:
        template: the pod.
        main: the container of it that the role was made of.
        role: the role.
    """
    spec, metadata = template.get("spec") or {}, template.get("metadata") or {}
    parts = {"metadata": _metadata(metadata), "spec": {**_spec(spec), **_containers(spec, main, role)}}
    return {part: what for part, what in parts.items() if what}


def _metadata(metadata: Object) -> Object:
    theirs = {name: value for name, value in (metadata.get("labels") or {}).items() if not name.startswith(_OURS)}
    noted = dict(metadata.get("annotations") or {})
    if noted.get("sidecar.istio.io/inject") == "false":
        del noted["sidecar.istio.io/inject"]
    return {key: what for key, what in (("labels", theirs), ("annotations", noted)) if what}


def _spec(spec: Object) -> Object:
    beyond: Object = {key: value for key, value in spec.items() if key not in _OF_SPEC}
    policy = spec.get("restartPolicy")
    if policy is None:
        beyond[DEL("restartPolicy")] = None
    elif policy != "Never":
        beyond["restartPolicy"] = policy
    if nodes := {key: value for key, value in (spec.get("nodeSelector") or {}).items() if not is_node_label(key)}:
        beyond["nodeSelector"] = nodes
    shared = [one for one in spec.get("volumes") or [] if one.get("name") == DSHM["name"] and one != DSHM]
    if shared:
        beyond[JOIN("volumes", on="name")] = shared
    return beyond


def _containers(spec: Object, main: Object, role: Role) -> Object:
    more: dict[str, Any] = {key: value for key, value in main.items() if key not in _OF_CONTAINER}
    by_role = {"privileged": True} if any(isinstance(mount, DeviceMount) for mount in role.mounts) else {}
    if (more.get("securityContext") or {}) == by_role:
        more.pop("securityContext", None)
    joined = [one for one in spec.get("containers") or [] if one is not main]
    if more:
        joined.insert(0, {"name": normalize_str(f"{role.name}-") + macros.replica_id, **more})
    return {JOIN("containers", on="name"): joined} if joined else {}
