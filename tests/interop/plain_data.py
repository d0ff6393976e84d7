"""AppDefs, statuses and other values from plain data and back, for whichever package has made them.

TorchX 0.7.0 runs this in a process of its own (see release_server.py): the standard library alone is imported.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

# The fields that not every release has.
NOT_EVERYWHERE = {"Role": ("base_image", "overrides", "workspace"), "Resource": ("tags",)}


def plain(value: Any) -> Any:
    """Return a value as plain mappings, lists and scalars, so that two packages' classes compare by their fields."""
    if isinstance(value, Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "": type(value).__name__,
            **{one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)},
        }
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def less_new(value: Any) -> Any:
    """Return plain data less the fields that not every release has."""
    if isinstance(value, dict):
        left_out = NOT_EVERYWHERE.get(value.get("", ""), ())
        return {key: less_new(item) for key, item in value.items() if key not in left_out}
    return [less_new(item) for item in value] if isinstance(value, list) else value


def built(specs: Any, app: dict[str, Any]) -> Any:
    """Return the AppDef of a package."""
    return specs.AppDef(**{**app, "roles": [built_role(specs, **role) for role in app["roles"]]})


def built_role(specs: Any, **fields: Any) -> Any:
    """Return the role of a package."""
    made: dict[str, Any] = {"image": "img:1", **fields}
    made["args"], made["env"] = list(made.get("args", [])), dict(made.get("env", {}))
    if "resource" in made:
        made["resource"] = specs.Resource(**{"memMB": 64, **made["resource"]})
    if "retry_policy" in made:
        made["retry_policy"] = specs.RetryPolicy(made["retry_policy"])
    if "mounts" in made:
        made["mounts"] = [getattr(specs, kind)(*rest) for kind, *rest in made["mounts"]]
    return specs.Role(**made)


def built_status(specs: Any, status: dict[str, Any]) -> Any:
    """Return the AppStatus of a package; states are numbers."""
    roles = [
        specs.RoleStatus(
            role,
            [
                specs.ReplicaStatus(number, specs.AppState(state), role, "host", structured_error_msg=said)
                for number, (state, said) in enumerate(replicas)
            ],
        )
        for role, replicas in status["roles"]
    ]
    return specs.AppStatus(**{**status, "state": specs.AppState(status["state"]), "roles": roles})


def built_options(specs: Any, declared: list[list[Any]]) -> Any:
    """Return the run options of a package, declared as name, type's name, default and whether one is required."""
    kinds = {"str": str, "int": int, "float": float, "bool": bool}
    # The classes of the module typing: TorchX 0.7.0 knows no others.
    kinds["list"], kinds["dict"] = _typing_list(), _typing_dict()
    options = specs.runopts()
    for name, kind, default, required in declared:
        options.add(name, type_=kinds[kind], help=f"what {name} is", default=default, required=required)
    return options


def _typing_list() -> Any:
    import typing

    return typing.List[str]  # noqa: UP006


def _typing_dict() -> Any:
    import typing

    return typing.Dict[str, str]  # noqa: UP006
