"""An AppDef as JSON and back, exactly: in the journal, in labels and annotations, in `--json`.

The object has `"format": 1`, then AppDef's fields by their names. A mount has a `type`; a workspace is its mapping of
projects. Metadata may have values that JSON lacks: a tuple is `{"$tuple": [...]}`, and a mapping whose keys are not
all texts, or whose first key looks like these, is `{"$items": [[key, value], ...]}`.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

from ..base.validation import decode_json
from .errors import AppDefError
from .mounts import BindMount, DeviceMount, Mount, MountType, VolumeMount
from .resources import Resource
from .roles import AppDef, RetryPolicy, Role
from .workspace import Workspace

FORMAT = 1
MAX_REPLICAS = 100_000
"""The most replicas of a role: they are listed one by one."""

_MOUNT_TYPES: dict[str, type[Mount]] = {
    MountType.BIND.value: BindMount,
    MountType.VOLUME.value: VolumeMount,
    MountType.DEVICE.value: DeviceMount,
}


def appdef_to_json(app: AppDef, *, strict: bool = True) -> str:
    """Write an AppDef as one line of JSON.

    Raises:
        AppDefError: As for `appdef_to_dict`.
    """
    return json.dumps(appdef_to_dict(app, strict=strict), separators=(",", ":"))


def appdef_to_dict(app: AppDef, *, strict: bool = True) -> dict[str, Any]:
    """Convert an AppDef to plain lists, dicts, texts and numbers.

    Overrides are resolved, and written as the attributes that they replace.

    Args:
        app: The AppDef.
        strict: Reject metadata that JSON does not allow; otherwise its `repr` is written.

    Raises:
        AppDefError: Metadata or capabilities have such an object; the message says where.
    """
    return {
        "format": FORMAT,
        "name": app.name,
        "roles": [_role_to_dict(role, strict) for role in app.roles],
        "metadata": _encode(app.metadata, "metadata", strict),
    }


def appdef_from_json(text: str) -> AppDef:
    """Parse an AppDef from JSON.

    Raises:
        AppDefError: It is not JSON, or as for `appdef_from_dict`.
    """
    try:
        data = decode_json(text)
    except ValueError as error:
        raise AppDefError(f"An AppDef is not JSON: {error}") from error
    return appdef_from_dict(data)


def appdef_from_dict(data: Any) -> AppDef:
    """Make an AppDef from the result of `appdef_to_dict`.

    Raises:
        AppDefError: Something is missing, unknown or of another type, or the format is newer than this program's.
    """
    try:
        return _app_from_dict(data)
    except AppDefError:
        raise
    except (TypeError, ValueError, RecursionError) as error:  # a key that is a list, a pair of three, endless nesting
        raise AppDefError(f"AppDef: {error}") from error


def _app_from_dict(data: Any) -> AppDef:
    data = _check_object(data, "AppDef")
    version = data.pop("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise AppDefError(f"AppDef: its format is {version}, this torchx-tui reads up to {FORMAT}: install a newer one")
    roles = _take_field(data, "roles", list, "AppDef", [])
    app = AppDef(
        name=_take_field(data, "name", str, "AppDef"),
        roles=[_role_from_dict(role, f"roles[{number}]") for number, role in enumerate(roles)],
        metadata=_take_mapping(data, "metadata", "AppDef"),
    )
    _reject_unknown(data, "AppDef", [field.name for field in fields(AppDef)])
    return app


def _role_to_dict(role: Role, strict: bool) -> dict[str, Any]:
    where = f"role {role.name}"
    resource = asdict(role.resource)
    for name in ("capabilities", "devices", "tags"):
        resource[name] = _encode(resource[name], f"{where}: resource.{name}", strict)
    mounts = [
        {"type": kind, **asdict(mount)}
        for mount in role.mounts
        for kind, mount_type in _MOUNT_TYPES.items()
        if type(mount) is mount_type
    ]
    return {
        "name": role.name,
        "image": role.image,
        "base_image": role.base_image,
        "entrypoint": role.entrypoint,
        "args": list(role.args),
        "env": dict(role.env),
        "num_replicas": role.num_replicas,
        "max_retries": role.max_retries,
        "retry_policy": RetryPolicy(role.retry_policy).value,
        "resource": resource,
        "port_map": dict(role.port_map),
        "metadata": _encode(role.metadata, f"{where}: metadata", strict),
        "min_replicas": role.min_replicas,
        "mounts": mounts,
        "workspace": None if role.workspace is None else dict(role.workspace.projects),
    }


def _role_from_dict(data: Any, where: str) -> Role:
    data = _check_object(data, where)
    policy = _take_field(data, "retry_policy", str, where, RetryPolicy.APPLICATION.value)
    if policy not in RetryPolicy.__members__:
        raise AppDefError(f"{where}: retry_policy {policy}. Valid: {', '.join(RetryPolicy.__members__)}")
    workspace = data.pop("workspace", None)
    mounts = _take_field(data, "mounts", list, where, [])
    resource = data.pop("resource", None)
    role = Role(
        name=_take_field(data, "name", str, where),
        image=_take_field(data, "image", str, where),
        retry_policy=RetryPolicy(policy),
        mounts=[_mount_from_dict(mount, f"{where}.mounts[{number}]") for number, mount in enumerate(mounts)],
        workspace=None if workspace is None else Workspace(_check_object(workspace, f"{where}.workspace")),
    )
    if resource is not None:
        role.resource = _resource_from_dict(resource, f"{where}.resource")
    for name, kind in (("num_replicas", int), ("max_retries", int), ("entrypoint", str), ("args", list)):
        setattr(role, name, _take_field(data, name, kind, where, getattr(role, name)))
    role.args = [_to_text(item, f"{where}.args") for item in role.args]
    role.env = {name: _to_text(value, f"{where}.env") for name, value in _take_mapping(data, "env", where).items()}
    for name in ("port_map", "metadata"):
        setattr(role, name, _take_mapping(data, name, where))
    if not all(type(port) is int for port in role.port_map.values()):
        raise AppDefError(f"{where}: port_map has a port that is not an integer")
    if role.num_replicas > MAX_REPLICAS:
        raise AppDefError(f"{where}: num_replicas is {role.num_replicas}, more than {MAX_REPLICAS:,}")
    role.base_image = _take_field(data, "base_image", (str, type(None)), where, None)
    role.min_replicas = _take_field(data, "min_replicas", (int, type(None)), where, None)
    _reject_unknown(data, where, [field.name for field in fields(Role) if field.name != "overrides"])
    return role


def _resource_from_dict(data: Any, where: str) -> Resource:
    data = _check_object(data, where)
    resource = Resource(
        cpu=_take_field(data, "cpu", (int, float), where),
        gpu=_take_field(data, "gpu", (int, float), where),
        memMB=_take_field(data, "memMB", (int, float), where),
        capabilities=_take_mapping(data, "capabilities", where),
        devices=_take_mapping(data, "devices", where),
        tags=_take_mapping(data, "tags", where),
    )
    _reject_unknown(data, where, [field.name for field in fields(Resource)])
    return resource


def _mount_from_dict(data: Any, where: str) -> Mount:
    data = _check_object(data, where)
    kind = _MOUNT_TYPES.get(_take_field(data, "type", str, where, ""))
    if kind is None:
        raise AppDefError(f"{where}: its type is not valid. Valid types: {', '.join(_MOUNT_TYPES)}")
    if not all(isinstance(value, (str, bool)) for value in data.values()):
        raise AppDefError(f"{where}: a value is neither a text nor true or false")
    try:
        return kind(**data)
    except TypeError as error:
        raise AppDefError(f"{where}: {error}") from error


def _check_object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise AppDefError(f"{where}: use an object, not {type(data).__name__}")
    return dict(data)


def _take_field(data: dict[str, Any], name: str, kind: Any, where: str, *default: Any) -> Any:
    if name not in data:
        if default:
            return default[0]
        raise AppDefError(f"{where}: {name} is missing")
    value = data.pop(name)
    if not isinstance(value, kind):
        raise AppDefError(f"{where}: {name} is {type(value).__name__}, which it cannot be")
    return value


def _to_text(value: Any, where: str) -> str:
    """Convert a value to the text that a process gets."""
    if not isinstance(value, (str, int, float)):
        raise AppDefError(f"{where}: use a text, not {type(value).__name__}")
    return value if isinstance(value, str) else str(value)


def _take_mapping(data: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = decode_value(_take_field(data, name, dict, where, {}))
    if not isinstance(value, dict):
        raise AppDefError(f"{where}: {name} is not a mapping")
    return value


def _reject_unknown(data: dict[str, Any], where: str, valid: list[str]) -> None:
    if data:
        raise AppDefError(f"{where}: unknown {', '.join(data)}. Valid: {', '.join(valid)}")


def _encode(value: Any, where: str, strict: bool) -> Any:
    """Convert a value of metadata to JSON's types."""
    if value is None or type(value) in (str, int, bool):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{where}[{number}]", strict) for number, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        pairs = [(key, _encode(inner, f"{where}.{key}", strict)) for key, inner in value.items()]
        if all(type(key) is str and not key.startswith("$") for key, _ in pairs):
            return dict(pairs)
        return {"$items": [[_encode(key, where, strict), inner] for key, inner in pairs]}
    if strict:
        raise AppDefError(f"{where}: a {type(value).__name__} cannot be written as JSON. Use plain dicts and lists")
    return repr(value)


def decode_value(value: Any) -> Any:
    """Convert a value of metadata back from JSON's types."""
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$tuple"}:
        return tuple(decode_value(item) for item in value["$tuple"])
    if set(value) == {"$items"}:
        return {decode_value(key): decode_value(inner) for key, inner in value["$items"]}
    return {key: decode_value(inner) for key, inner in value.items()}
