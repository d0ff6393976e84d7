"""Call a component, and convert its AppDef, of torchx-tui or of any version of TorchX, to plain data."""

from __future__ import annotations

import inspect
import json
import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from ..specs.errors import AppDefError
from ..specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ..specs.resources import Resource
from ..specs.roles import AppDef, RetryPolicy, Role
from ..specs.serialize import appdef_to_dict
from ..specs.workspace import Workspace

_MOUNT_TYPES: dict[str, type[Mount]] = {"BindMount": BindMount, "VolumeMount": VolumeMount, "DeviceMount": DeviceMount}
_MAX_ROLES = 10_000
# Characters of a field as JSON. Linux takes 128 KiB for an argument, and etcd 1.5 MiB for a request.
_MAX_SIZE = 1_000_000


def call_component(function: Callable[..., Any], rest: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Call a component's function, or `build` of an instance of its class; return the AppDef.

    Args:
        function: The function or class.
        rest: The values of `*args`.
        keywords: The other values by name.
    """
    keywords = dict(keywords)
    positional = []
    for parameter in inspect.signature(function).parameters.values():
        # Parameters before `/` are positional only, and so are those before *args if that is given.
        if parameter.kind is not parameter.POSITIONAL_ONLY and not (
            rest and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            break
        positional.append(keywords.pop(parameter.name, parameter.default))
    made = function(*positional, *rest, **keywords)
    return made.build() if inspect.isclass(function) else made


def plain_app(app: Any) -> dict[str, Any]:
    """Convert a component's AppDef to the plain data of `specs.serialize`.

    Overrides are resolved. Integers and paths of other classes, such as numpy's, become `int` and `str`.

    Args:
        app: An AppDef of torchx-tui, or any object whose class is named so, as TorchX's.

    Raises:
        AppDefError: It is no AppDef, or a field cannot be converted; the message names the field.
    """
    if not isinstance(app, AppDef):
        app = _to_own_appdef(app)
    app.name = _plain(app.name, "name")
    _check_roles(app.roles)
    data = appdef_to_dict(app)
    for name in data.keys() - {"roles"}:
        data[name] = _plain(data[name], name)
    for role in data["roles"]:
        for name, value in role.items():
            role[name] = _plain(value, f"role {role['name']}: {name}")
    return data


def _check_roles(roles: Any) -> None:
    if not isinstance(roles, (list, tuple)) or not all(isinstance(role, Role) for role in roles):
        raise AppDefError("roles is not a list of Role")
    if len(roles) > _MAX_ROLES:
        raise AppDefError(f"it has {len(roles):,} roles, more than {_MAX_ROLES:,}")
    for role in roles:
        role.name = _plain(role.name, "the name of a role")
        if type(role).pre_proc is not Role.pre_proc or "pre_proc" in vars(role):
            raise AppDefError(
                f"role {role.name}: it has a pre_proc of its own, which cannot leave the component's process"
            )
        for mount in role.mounts:
            if type(mount) not in _MOUNT_TYPES.values():
                raise AppDefError(f"role {role.name}: a mount of the kind {type(mount).__name__} is not known")


def _plain(value: Any, where: str) -> Any:
    try:
        text = json.dumps(value, default=_convert)
    except (TypeError, ValueError, RecursionError) as error:
        raise AppDefError(f"{where}: {error}") from error
    if len(text) > _MAX_SIZE:
        raise AppDefError(f"{where}: {len(text):,} characters, more than {_MAX_SIZE:,}")
    return json.loads(text)


def _convert(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"a {type(value).__name__} cannot be used there") from None


def _to_own_appdef(app: Any) -> AppDef:
    if type(app).__name__ != "AppDef" or not hasattr(app, "roles"):
        raise AppDefError(f"a component returns AppDef, this one returned {type(app).__name__}")
    return AppDef(name=app.name, roles=[_to_own_role(role) for role in app.roles], metadata=dict(app.metadata))


def _to_own_role(foreign: Any) -> Role:
    workspace = getattr(foreign, "workspace", None)
    return _copy_fields(
        Role,
        foreign,
        retry_policy=RetryPolicy(getattr(foreign.retry_policy, "value", foreign.retry_policy)),
        resource=_copy_fields(Resource, foreign.resource),
        mounts=[_to_own_mount(mount) for mount in getattr(foreign, "mounts", [])],
        workspace=None if workspace is None else Workspace(dict(getattr(workspace, "projects", {}))),
        overrides={},
    )


def _to_own_mount(foreign: Any) -> Mount:
    kind = _MOUNT_TYPES.get(type(foreign).__name__)
    if kind is None:
        raise AppDefError(f"a mount of the kind {type(foreign).__name__} is not known")
    return _copy_fields(kind, foreign)


def _copy_fields(kind: Any, foreign: Any, **converted: Any) -> Any:
    names = [field.name for field in fields(kind) if hasattr(foreign, field.name)]
    return kind(**{name: getattr(foreign, name) for name in names} | converted)
