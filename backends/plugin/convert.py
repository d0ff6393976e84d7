"""TorchX's to ours: roles, states, answers. What an older TorchX lacks takes our default."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ...specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ...specs.resources import Resource
from ...specs.roles import AppDef, RetryPolicy, Role
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus
from ...specs.workspace import Workspace
from ..types import DescribeAppResponse, ListAppResponse, Stream


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


def our_role(role: Any) -> Role:
    """Return our Role. Overrides are made when ours first asks for them."""
    plain: dict[str, Any] = dict(vars(role))
    overrides = plain.pop("overrides", None) or {}
    known = {field.name for field in dataclasses.fields(Role)}
    made = Role(**{name: _value(name, value) for name, value in plain.items() if name in known})
    made.overrides = {name: lambda name=name: _value(name, getattr(role, name)) for name in overrides if name in known}
    return made


def our_state(state: Any) -> AppState:
    """Return our AppState; UNKNOWN for one that we do not know."""
    name = getattr(state, "name", str(state))
    return AppState.__members__.get(name, AppState.UNKNOWN)


def our_description(answer: Any) -> DescribeAppResponse:
    """Return our DescribeAppResponse."""
    return DescribeAppResponse(
        app_id=str(answer.app_id),
        state=our_state(answer.state),
        num_restarts=int(getattr(answer, "num_restarts", -1)),
        msg=str(answer.msg) if answer.msg else NONE,
        structured_error_msg=_error_text(answer),
        ui_url=answer.ui_url,
        metadata={str(key): str(value) for key, value in (getattr(answer, "metadata", None) or {}).items()},
        roles_statuses=[_role_status(status) for status in answer.roles_statuses or []],
        roles=[our_role(role) for role in answer.roles or []],
    )


def our_row(answer: Any) -> ListAppResponse:
    """Return our ListAppResponse; its handle is the Runner's to fill in."""
    return ListAppResponse(str(answer.app_id), our_state(answer.state), name=str(getattr(answer, "name", "") or ""))


def says_nothing(answer: DescribeAppResponse) -> bool:
    """Tell whether a description has nothing to say: that is how some say that they do not know the app."""
    return answer.state is AppState.UNKNOWN and not answer.roles and answer.msg in ("", NONE)


def _error_text(answer: Any) -> str:
    return str(getattr(answer, "structured_error_msg", "") or NONE)


def _role_status(status: Any) -> RoleStatus:
    return RoleStatus(str(status.role), [_replica_status(replica) for replica in status.replicas])


def _replica_status(replica: Any) -> ReplicaStatus:
    return ReplicaStatus(
        id=int(replica.id),
        state=our_state(replica.state),
        role=str(replica.role),
        hostname=str(replica.hostname or ""),
        structured_error_msg=_error_text(replica),
        hostaddr=getattr(replica, "hostaddr", None),
    )


def our_resource(resource: Any) -> Resource:
    """Return our Resource."""
    return Resource(
        cpu=resource.cpu,
        gpu=resource.gpu,
        memMB=resource.memMB,
        capabilities=dict(resource.capabilities or {}),
        devices=dict(getattr(resource, "devices", None) or {}),
        tags=dict(getattr(resource, "tags", None) or {}),
    )


def _mount(mount: Any) -> Mount:
    kinds: dict[str, type[Mount]] = {
        "BindMount": BindMount,
        "VolumeMount": VolumeMount,
        "DeviceMount": DeviceMount,
    }
    return kinds[type(mount).__name__](**vars(mount))


def _value(name: str, value: Any) -> Any:
    """Return the value of a role's field."""
    if name == "resource":
        return our_resource(value)
    if name == "retry_policy":
        return RetryPolicy(value.value)
    if name == "mounts":
        return [_mount(mount) for mount in value]
    if name == "workspace":
        return None if value is None else Workspace(dict(value.projects))
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, list) else value
