"""Conversion of TorchX's job model, of any version of it, to this package's."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from .mounts import BindMount, DeviceMount, VolumeMount
from .resources import Resource
from .roles import AppDef, RetryPolicy, Role
from .workspace import Workspace

_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (AppDef, Role, RetryPolicy, Resource, BindMount, VolumeMount, DeviceMount, Workspace)
}


def from_torchx(value: Any) -> Any:
    """Convert an object of TorchX's, and those in it, to the class of that name; other values are returned as they are.

    Fields that one side lacks keep their defaults. An override of a role is resolved when it is first read.
    """
    if isinstance(value, (list, tuple)):
        return [from_torchx(item) for item in value]
    if isinstance(value, dict):
        return dict(value)
    kind = next((_CLASSES[base.__name__] for base in type(value).__mro__ if base.__name__ in _CLASSES), None)
    if kind is None or isinstance(value, kind):
        return value
    if issubclass(kind, Enum):
        return kind(value.value)
    known = {field.name for field in fields(kind)} - {"overrides"}
    held = vars(value)
    made = kind(**{name: from_torchx(item) for name, item in held.items() if name in known and item is not None})
    if isinstance(made, Role):
        made.overrides = {
            name: lambda name=name: from_torchx(getattr(value, name))
            for name in held.get("overrides") or {}
            if name in known
        }
    return made
