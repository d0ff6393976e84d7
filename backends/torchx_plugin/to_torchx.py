"""Ours to TorchX's: an AppDef with all that belongs to it, in whichever generation of TorchX is installed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ...specs import AppDef, Role
from ..responses import Stream


class ToTorchX:
    """Turns ours into TorchX's.

    Attributes:
        left_out: what of the last app this TorchX has no place for, in words.
    """

    def __init__(self) -> None:
        import torchx.specs as theirs
        from torchx.schedulers.api import Stream as TheirStream

        self._theirs: Any = theirs
        self._stream: Any = TheirStream
        self.left_out: list[str] = []

    def app(self, app: AppDef) -> Any:
        """Return TorchX's AppDef."""
        self.left_out = []
        roles = [self.role(role) for role in app.roles]
        return self._theirs.AppDef(name=app.name, roles=roles, metadata=dict(app.metadata))

    def role(self, role: Role) -> Any:
        """Return TorchX's Role. Overrides are made when TorchX's first asks for them, each once, as ours are."""
        plain: Mapping[str, Any] = role.__dict__
        given: dict[str, Any] = {}
        for field in dataclasses.fields(Role):
            if field.name == "overrides":
                continue
            if field.name in self._role_fields():
                given[field.name] = self._value(field.name, plain[field.name])
            elif not _is_default(field, plain[field.name]):
                self.left_out.append(f"{plain['name']}: {field.name}, which this TorchX does not have")
        made = self._theirs.Role(**given)
        if plain["overrides"]:
            self._override(made, role)
        return made

    def stream(self, stream: Stream | None) -> Any:
        """Return TorchX's Stream."""
        return None if stream is None else self._stream(stream.value)

    def _override(self, made: Any, role: Role) -> None:
        overrides: dict[str, Callable[[], Any]] = {
            name: lambda name=name: self._value(name, getattr(role, name)) for name in role.__dict__["overrides"]
        }
        if "overrides" in self._role_fields():
            made.overrides = overrides
            return
        for name, make in overrides.items():
            setattr(made, name, make())

    def _role_fields(self) -> set[str]:
        return {field.name for field in dataclasses.fields(self._theirs.Role)}

    def _value(self, name: str, value: Any) -> Any:
        """Return the value of a role's field."""
        if name == "resource":
            return self._fitting(self._theirs.Resource, value, "resource")
        if name == "retry_policy":
            return self._theirs.RetryPolicy(value.value)
        if name == "mounts":
            return [getattr(self._theirs, type(mount).__name__)(**vars(mount)) for mount in value]
        if name == "workspace":
            return None if value is None else self._theirs.Workspace(projects=dict(value.projects))
        if isinstance(value, dict):
            return dict(value)
        return list(value) if isinstance(value, list) else value

    def _fitting(self, kind: Any, value: Any, what: str) -> Any:
        """Return the dataclass of TorchX's with those fields of ours that it has."""
        known = {field.name for field in dataclasses.fields(kind)}
        for field in dataclasses.fields(value):
            if field.name not in known and not _is_default(field, getattr(value, field.name)):
                self.left_out.append(f"{what}: {field.name}, which this TorchX does not have")
        return kind(**{name: held for name, held in vars(value).items() if name in known})


def _is_default(field: Any, value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return value == field.default
    return field.default_factory is not dataclasses.MISSING and value == field.default_factory()
