"""An AppDef as JSON and back, exactly: in the journal, in labels and annotations, in `--json`.

The object has `"format": 1` and AppDef's fields by name. A mount has a `type`; a workspace is its mapping of projects.
Metadata may have values that JSON lacks: a tuple is `{"$tuple": [...]}`. A mapping with keys that are not texts, or
that begin with `$`, is `{"$items": [[key, value], ...]}`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import asdict, fields
from typing import Any

from ..base.validation import JsonObject, decode_json
from .errors import AppDefError
from .mounts import BindMount, DeviceMount, Mount, MountType, VolumeMount
from .resources import Resource
from .roles import AppDef, RetryPolicy, Role
from .workspace import Workspace

FORMAT = 1
_TYPE_NAMES = {
    str: "a text", int: "an integer", float: "a number", dict: "an object", list: "a list", type(None): "null",
}  # fmt: skip
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


def appdef_to_dict(app: AppDef, *, strict: bool = True) -> JsonObject:
    """Convert an AppDef to plain lists, dicts, texts and numbers.

    Overrides are resolved and written in place of the attributes.

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


# The types of the fields in JSON. A field of type dict may have values that JSON lacks.
_NUMBER = (int, float)
_NONE = type(None)
_TYPES: dict[type, dict[str, Any]] = {
    AppDef: {"name": str, "roles": list, "metadata": dict},
    Role: {
        "name": str,
        "image": str,
        "base_image": (str, _NONE),
        "entrypoint": str,
        "args": list,
        "env": dict,
        "num_replicas": int,
        "max_retries": int,
        "retry_policy": str,
        "resource": (dict, _NONE),
        "port_map": dict,
        "metadata": dict,
        "min_replicas": (int, _NONE),
        "mounts": list,
        "workspace": (dict, _NONE),
    },
    Resource: {
        "cpu": _NUMBER,
        "gpu": _NUMBER,
        "memMB": _NUMBER,
        "capabilities": dict,
        "devices": dict,
        "tags": dict,
    },
}


def _app_from_dict(data: Any) -> AppDef:
    data = dict(_check_type(data, dict, "AppDef"))
    version = data.pop("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise AppDefError(f"AppDef: its format is {version}, this torchx-tui reads up to {FORMAT}: install a newer one")
    values = _read_fields(AppDef, data, "AppDef")
    roles = [_role_from_dict(role, f"roles[{number}]") for number, role in enumerate(values.pop("roles", []))]
    return AppDef(roles=roles, **values)


def _role_to_dict(role: Role, strict: bool) -> JsonObject:
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
        **{name: getattr(role, name) for name in _TYPES[Role]},
        "args": list(role.args),
        "env": dict(role.env),
        "retry_policy": RetryPolicy(role.retry_policy).value,
        "resource": resource,
        "port_map": dict(role.port_map),
        "metadata": _encode(role.metadata, f"{where}: metadata", strict),
        "mounts": mounts,
        "workspace": None if role.workspace is None else dict(role.workspace.projects),
    }


def _role_from_dict(data: Any, where: str) -> Role:
    values = {name: value for name, value in _read_fields(Role, data, where).items() if value is not None}
    policy = values.get("retry_policy", RetryPolicy.APPLICATION.value)
    if policy not in RetryPolicy.__members__:
        raise AppDefError(f"{where}: retry_policy {policy}. Valid: {', '.join(RetryPolicy.__members__)}")
    role = Role(**values | {"retry_policy": RetryPolicy(policy)})
    if "resource" in values:
        role.resource = Resource(**_read_fields(Resource, values["resource"], f"{where}.resource"))
    if "workspace" in values:
        places = values["workspace"].items()
        role.workspace = Workspace({path: _check_type(place, str, f"{where}.workspace") for path, place in places})
    role.mounts = [_mount_from_dict(mount, f"{where}.mounts[{number}]") for number, mount in enumerate(role.mounts)]
    role.env = {name: _to_text(value, f"{where}.env") for name, value in role.env.items()}
    role.args = [_to_text(item, f"{where}.args") for item in role.args]
    if not all(type(port) is int for port in role.port_map.values()):
        raise AppDefError(f"{where}: port_map has a port that is not an integer")
    if role.num_replicas > MAX_REPLICAS:
        raise AppDefError(f"{where}: num_replicas is {role.num_replicas}, more than {MAX_REPLICAS:,}")
    return role


def _mount_from_dict(data: Any, where: str) -> Mount:
    values = dict(_check_type(data, dict, where))
    kind = _MOUNT_TYPES.get(_check_type(values.pop("type", ""), str, f"{where}: type"))
    if kind is None:
        raise AppDefError(f"{where}: its type is not valid. Valid types: {', '.join(_MOUNT_TYPES)}")
    if not all(isinstance(value, (str, bool)) for value in values.values()):
        raise AppDefError(f"{where}: a value is neither a text nor true or false")
    try:
        return kind(**values)
    except TypeError as error:
        raise AppDefError(f"{where}: {error}") from error


def _read_fields(kind: type, data: Any, where: str) -> dict[str, Any]:
    """Return the checked values of a dataclass's fields; a field with a default may be missing."""
    types = _TYPES[kind]
    if unknown := [name for name in _check_type(data, dict, where) if name not in types]:
        raise AppDefError(f"{where}: unknown {', '.join(unknown)}. Valid: {', '.join(types)}")
    values = {}
    for field in fields(kind):
        if field.name in data and field.name in types:
            value = _check_type(data[field.name], types[field.name], f"{where}: {field.name}")
            is_mapping = types[field.name] is dict
            values[field.name] = _check_type(decode_value(value), dict, where) if is_mapping else value
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise AppDefError(f"{where}: {field.name} is missing")
    return values


def _check_type(value: Any, kind: Any, where: str) -> Any:
    if isinstance(value, kind):
        return value
    kinds = " or ".join(_TYPE_NAMES[each] for each in (kind if isinstance(kind, tuple) else (kind,)))
    raise AppDefError(f"{where} must be {kinds}, not {type(value).__name__}")


def _to_text(value: Any, where: str) -> str:
    """Convert a value to the text that a process gets."""
    return str(_check_type(value, (str, int, float), f"{where}: each value"))


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
