"""Conversion of roles, states and answers from and to TorchX's classes; fields that it lacks keep their defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import Any

from ...specs.from_torchx import from_torchx
from ...specs.roles import AppDef, Role
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus
from ..types import DescribeAppResponse, ListAppResponse


class ToTorchX:
    """Converts to TorchX's classes.

    Attributes:
        left_out: what the installed TorchX has no field for.
    """

    def __init__(self) -> None:
        import torchx.specs as specs

        self._specs: Any = specs
        self.left_out: list[str] = []

    def app(self, app: AppDef) -> Any:
        """Return TorchX's AppDef."""
        roles = [self.role(role) for role in app.roles]
        return self._specs.AppDef(name=app.name, roles=roles, metadata=dict(app.metadata))

    def role(self, role: Role) -> Any:
        """Return TorchX's Role. An override is resolved once, when TorchX first reads it."""
        made = self._convert(role)
        overrides: dict[str, Callable[[], Any]] = {
            name: lambda name=name: self._convert(getattr(role, name)) for name in vars(role)["overrides"]
        }
        if hasattr(made, "overrides"):
            made.overrides = overrides
        else:
            for name, resolve in overrides.items():
                setattr(made, name, resolve())
        return made

    def _convert(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._convert(item) for item in value]
        if isinstance(value, dict):
            return dict(value)
        if isinstance(value, Enum):
            return getattr(self._specs, type(value).__name__)(value.value)
        if not dataclasses.is_dataclass(value):
            return value
        kind, held = getattr(self._specs, type(value).__name__), dict(vars(value))
        held.pop("overrides", None)
        known = {field.name for field in dataclasses.fields(kind)}
        owner = held["name"] if isinstance(value, Role) else type(value).__name__.lower()
        for field in dataclasses.fields(value):
            if field.name in held and field.name not in known and not _is_default(field, held.pop(field.name)):
                self.left_out.append(f"{owner}: {field.name}, which this TorchX does not have")
        return kind(**{name: self._convert(item) for name, item in held.items() if name in known})


def _is_default(field: Any, value: Any) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return value == field.default_factory()
    return value == field.default


def state_from_torchx(state: Any) -> AppState:
    """Return the AppState of this name, else UNKNOWN."""
    return AppState.__members__.get(getattr(state, "name", str(state)), AppState.UNKNOWN)


def description_from_torchx(answer: Any) -> DescribeAppResponse:
    """Make a DescribeAppResponse of TorchX's."""
    return DescribeAppResponse(
        app_id=str(answer.app_id),
        state=state_from_torchx(answer.state),
        num_restarts=int(getattr(answer, "num_restarts", -1)),
        msg=str(answer.msg) if answer.msg else NONE,
        structured_error_msg=_error_text(answer),
        ui_url=answer.ui_url,
        metadata={str(key): str(value) for key, value in (getattr(answer, "metadata", None) or {}).items()},
        roles_statuses=[
            RoleStatus(str(status.role), [_replica_status(replica) for replica in status.replicas])
            for status in answer.roles_statuses or []
        ],
        roles=from_torchx(answer.roles or []),
    )


def row_from_torchx(answer: Any) -> ListAppResponse:
    """Make a ListAppResponse of TorchX's; the Runner fills in the handle."""
    return ListAppResponse(
        str(answer.app_id), state_from_torchx(answer.state), name=str(getattr(answer, "name", "") or "")
    )


def says_nothing(answer: DescribeAppResponse) -> bool:
    """Return whether a description is empty: some schedulers answer so for an app that they do not know."""
    return answer.state is AppState.UNKNOWN and not answer.roles and answer.msg in ("", NONE)


def _error_text(answer: Any) -> str:
    return str(getattr(answer, "structured_error_msg", "") or NONE)


def _replica_status(replica: Any) -> ReplicaStatus:
    return ReplicaStatus(
        id=int(replica.id),
        state=state_from_torchx(replica.state),
        role=str(replica.role),
        hostname=str(replica.hostname or ""),
        structured_error_msg=_error_text(replica),
        hostaddr=getattr(replica, "hostaddr", None),
    )
