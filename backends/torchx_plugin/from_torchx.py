"""TorchX's to ours: roles, states, answers. What an older TorchX lacks takes our default."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...specs import (
    NONE,
    AppDef,
    AppState,
    BindMount,
    DeviceMount,
    Mount,
    ReplicaStatus,
    Resource,
    RetryPolicy,
    Role,
    RoleStatus,
    VolumeMount,
    Workspace,
)
from ..responses import DescribeAppResponse, ListAppResponse


def our_app(app: Any) -> AppDef:
    """Return our AppDef."""
    return AppDef(app.name, [our_role(role) for role in app.roles], dict(app.metadata or {}))


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
