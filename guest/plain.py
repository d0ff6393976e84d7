"""Call a component, and convert its AppDef, of torchx-tui or of any version of TorchX, to plain data."""

from __future__ import annotations

import inspect
import json
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, get_args

from ..base.validation import JsonObject
from ..specs.errors import AppDefError
from ..specs.from_torchx import from_torchx
from ..specs.mounts import Mount
from ..specs.roles import AppDef, Role
from ..specs.serialize import appdef_to_dict

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


def plain_app(app: Any) -> JsonObject:
    """Convert a component's AppDef to the plain data of `specs.serialize`.

    Overrides are resolved. Integers and paths of other classes, such as numpy's, become `int` and `str`.

    Args:
        app: An AppDef of torchx-tui, or any object whose class is named so, as TorchX's.

    Raises:
        AppDefError: It is no AppDef, or a field cannot be converted; the message names the field.
    """
    made = from_torchx(app)
    if not isinstance(made, AppDef):
        raise AppDefError(f"a component returns AppDef, this one returned {type(app).__name__}")
    made.name = _plain(made.name, "name")
    _check_roles(made.roles)
    data = appdef_to_dict(made)
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
            if type(mount) not in get_args(Mount):
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
