"""An AppDef as JSON and back, exactly: in the journal, in labels and annotations, in `--json`.

The object has `"format": 1`, then AppDef's fields by their names. A mount has a `type`; a workspace is its mapping of
projects. Metadata may hold what JSON has no word for: a tuple is `{"$tuple": [...]}`, and a mapping whose keys are not
all texts, or whose first key looks like these, is `{"$items": [[key, value], ...]}`.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

from .errors import AppDefError
from .foreign import decode_json
from .mounts import BindMount, DeviceMount, Mount, MountType, VolumeMount
from .resources import Resource
from .roles import AppDef, RetryPolicy, Role
from .workspace import Workspace

FORMAT = 1
MOST_REPLICAS = 100_000
"""No role that is read has more: its replicas are listed one by one."""

_MOUNTS: dict[str, type[Mount]] = {
    MountType.BIND.value: BindMount,
    MountType.VOLUME.value: VolumeMount,
    MountType.DEVICE.value: DeviceMount,
}


def appdef_to_json(app: AppDef, *, strict: bool = True) -> str:
    """Return an AppDef as one line of JSON.

    Raises:
        AppDefError: As for `appdef_to_dict`.
    """
    return json.dumps(appdef_to_dict(app, strict=strict), separators=(",", ":"))


def appdef_to_dict(app: AppDef, *, strict: bool = True) -> dict[str, Any]:
    """Return an AppDef as plain lists, dicts, texts and numbers.

    Overrides are made and stand in the attributes that they replace.

    Args:
        app: The AppDef.
        strict: Refuse metadata that JSON cannot hold; otherwise its `repr` stands there.

    Raises:
        AppDefError: Metadata or capabilities hold such an object; the message says where.
    """
    return {
        "format": FORMAT,
        "name": app.name,
        "roles": [_role_to_dict(role, strict) for role in app.roles],
        "metadata": _encode(app.metadata, "metadata", strict),
    }


def appdef_from_json(text: str) -> AppDef:
    """Return the AppDef of a JSON text.

    Raises:
        AppDefError: It is not JSON, or as for `appdef_from_dict`.
    """
    try:
        data = decode_json(text)
    except ValueError as error:
        raise AppDefError(f"An AppDef is not JSON: {error}") from error
    return appdef_from_dict(data)


def appdef_from_dict(data: Any) -> AppDef:
    """Return the AppDef that `appdef_to_dict` took apart.

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
    data = _object(data, "AppDef")
    version = data.pop("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise AppDefError(f"AppDef: its format is {version}, this torchx-tui reads up to {FORMAT}: install a newer one")
    roles = _take(data, "roles", list, "AppDef", [])
    app = AppDef(
        name=_take(data, "name", str, "AppDef"),
        roles=[_role_from_dict(role, f"roles[{number}]") for number, role in enumerate(roles)],
        metadata=_mapping(data, "metadata", "AppDef"),
    )
    _nothing_left(data, "AppDef", [field.name for field in fields(AppDef)])
    return app


def _role_to_dict(role: Role, strict: bool) -> dict[str, Any]:
    where = f"role {role.name}"
    resource = asdict(role.resource)
    for name in ("capabilities", "devices", "tags"):
        resource[name] = _encode(resource[name], f"{where}: resource.{name}", strict)
    mounts = [{"type": kind, **asdict(mount)} for mount in role.mounts for kind in _MOUNTS if _is(mount, kind)]
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


def _is(mount: Mount, kind: str) -> bool:
    return type(mount) is _MOUNTS[kind]


def _role_from_dict(data: Any, where: str) -> Role:
    data = _object(data, where)
    policy = _take(data, "retry_policy", str, where, RetryPolicy.APPLICATION.value)
    if policy not in RetryPolicy.__members__:
        raise AppDefError(f"{where}: retry_policy {policy}. Valid: {', '.join(RetryPolicy.__members__)}")
    workspace = data.pop("workspace", None)
    mounts = _take(data, "mounts", list, where, [])
    resource = data.pop("resource", None)
    role = Role(
        name=_take(data, "name", str, where),
        image=_take(data, "image", str, where),
        retry_policy=RetryPolicy(policy),
        mounts=[_mount_from_dict(mount, f"{where}.mounts[{number}]") for number, mount in enumerate(mounts)],
        workspace=None if workspace is None else Workspace(_object(workspace, f"{where}.workspace")),
    )
    if resource is not None:
        role.resource = _resource_from_dict(resource, f"{where}.resource")
    for name, kind in (("num_replicas", int), ("max_retries", int), ("entrypoint", str), ("args", list)):
        setattr(role, name, _take(data, name, kind, where, getattr(role, name)))
    role.args = [_text(item, f"{where}.args") for item in role.args]
    role.env = {name: _text(value, f"{where}.env") for name, value in _mapping(data, "env", where).items()}
    for name in ("port_map", "metadata"):
        setattr(role, name, _mapping(data, name, where))
    if not all(type(port) is int for port in role.port_map.values()):
        raise AppDefError(f"{where}: port_map has a port that is no integer")
    if role.num_replicas > MOST_REPLICAS:
        raise AppDefError(f"{where}: num_replicas is {role.num_replicas}, more than {MOST_REPLICAS:,}")
    role.base_image = _take(data, "base_image", (str, type(None)), where, None)
    role.min_replicas = _take(data, "min_replicas", (int, type(None)), where, None)
    _nothing_left(data, where, [field.name for field in fields(Role) if field.name != "overrides"])
    return role


def _resource_from_dict(data: Any, where: str) -> Resource:
    data = _object(data, where)
    resource = Resource(
        cpu=_take(data, "cpu", (int, float), where),
        gpu=_take(data, "gpu", (int, float), where),
        memMB=_take(data, "memMB", (int, float), where),
        capabilities=_mapping(data, "capabilities", where),
        devices=_mapping(data, "devices", where),
        tags=_mapping(data, "tags", where),
    )
    _nothing_left(data, where, [field.name for field in fields(Resource)])
    return resource


def _mount_from_dict(data: Any, where: str) -> Mount:
    data = _object(data, where)
    kind = _MOUNTS.get(data.pop("type", ""))
    if kind is None:
        raise AppDefError(f"{where}: its type is not valid. Valid types: {', '.join(_MOUNTS)}")
    if not all(isinstance(value, (str, bool)) for value in data.values()):
        raise AppDefError(f"{where}: a value is neither a text nor true or false")
    try:
        return kind(**data)
    except TypeError as error:
        raise AppDefError(f"{where}: {error}") from error


def _object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise AppDefError(f"{where}: want an object, not {type(data).__name__}")
    return dict(data)


def _take(data: dict[str, Any], name: str, kind: Any, where: str, *default: Any) -> Any:
    if name not in data:
        if default:
            return default[0]
        raise AppDefError(f"{where}: {name} is missing")
    value = data.pop(name)
    if not isinstance(value, kind):
        raise AppDefError(f"{where}: {name} is {type(value).__name__}, which it cannot be")
    return value


def _text(value: Any, where: str) -> str:
    """Return a value as the text that a process is given."""
    if not isinstance(value, (str, int, float)):
        raise AppDefError(f"{where}: want a text, not {type(value).__name__}")
    return value if isinstance(value, str) else str(value)


def _mapping(data: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = _decode(_take(data, name, dict, where, {}))
    if not isinstance(value, dict):
        raise AppDefError(f"{where}: {name} is not a mapping")
    return value


def _nothing_left(data: dict[str, Any], where: str, valid: list[str]) -> None:
    if data:
        raise AppDefError(f"{where}: unknown {', '.join(data)}. Valid: {', '.join(valid)}")


def _encode(value: Any, where: str, strict: bool) -> Any:
    """Return a value of metadata in JSON's own types."""
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


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$tuple"}:
        return tuple(_decode(item) for item in value["$tuple"])
    if set(value) == {"$items"}:
        return {_decode(key): _decode(inner) for key, inner in value["$items"]}
    return {key: _decode(inner) for key, inner in value.items()}
