"""AppDefs, roles and statuses from plain data and back, for either package."""

import dataclasses
import json
from enum import Enum
from typing import Any


def plain(value):
    """Return a value as plain mappings, lists and scalars, so that two packages' classes compare by their fields."""
    if isinstance(value, Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"": type(value).__name__, **fields}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def fields_of(app):
    """Return an AppDef's fields, without those that TorchX does not have, mappings in one order."""
    made = plain(app)
    for role in made["roles"]:
        role.pop("base_image", None)
        role.pop("overrides", None)
    return json.loads(json.dumps(made, sort_keys=True))


def built(specs, app):
    """Return the AppDef of a package."""
    return specs.AppDef(**{**app, "roles": [built_role(specs, **role) for role in app["roles"]]})


def built_role(specs, **fields):
    """Return the role of a package."""
    made: dict[str, Any] = {"image": "img:1", **fields}
    made["args"], made["env"] = list(made.get("args", [])), dict(made.get("env", {}))
    if "resource" in made:
        made["resource"] = specs.Resource(**{"memMB": 64, **made["resource"]})
    if "retry_policy" in made:
        made["retry_policy"] = specs.RetryPolicy(made["retry_policy"])
    if "mounts" in made:
        made["mounts"] = [getattr(specs, kind)(*rest) for kind, *rest in made["mounts"]]
    if "overrides" in made:
        made["overrides"] = {name: lambda value=value: value for name, value in made["overrides"].items()}
    return specs.Role(**made)
