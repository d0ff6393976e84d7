"""AppDefs of TorchX itself, which components written for it return, as ours."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..specs import (
    AppDef,
    AppDefError,
    BindMount,
    DeviceMount,
    Mount,
    Resource,
    RetryPolicy,
    Role,
    VolumeMount,
    Workspace,
)

_MOUNTS: dict[str, type[Mount]] = {"BindMount": BindMount, "VolumeMount": VolumeMount, "DeviceMount": DeviceMount}
# Taken over by other means than their value as it is.
_APART = ("retry_policy", "resource", "mounts", "workspace", "overrides")


def adopted(app: Any) -> AppDef:
    """Return an AppDef of ours for what a component returned.

    Args:
        app: An AppDef of ours, or one of any version of TorchX, which is told by its class's name.

    Raises:
        AppDefError: It is neither.
    """
    if isinstance(app, AppDef):
        return app
    if type(app).__name__ != "AppDef" or not hasattr(app, "roles"):
        raise AppDefError(f"a component returns AppDef, this one returned {type(app).__name__}")
    return AppDef(name=app.name, roles=[_role(role) for role in app.roles], metadata=dict(app.metadata))


def _role(foreign: Any) -> Role:
    names = [field.name for field in fields(Role) if field.name not in _APART and hasattr(foreign, field.name)]
    role = Role(**{name: getattr(foreign, name) for name in names})
    role.retry_policy = RetryPolicy(getattr(foreign.retry_policy, "value", foreign.retry_policy))
    role.resource = _same_fields(Resource, foreign.resource)
    role.mounts = [_mount(mount) for mount in getattr(foreign, "mounts", [])]
    workspace = getattr(foreign, "workspace", None)
    if workspace is not None:
        role.workspace = Workspace(dict(getattr(workspace, "projects", {})))
    return role


def _mount(foreign: Any) -> Mount:
    kind = _MOUNTS.get(type(foreign).__name__)
    if kind is None:
        raise AppDefError(f"a mount of the kind {type(foreign).__name__} is not known")
    return _same_fields(kind, foreign)


def _same_fields(kind: Any, foreign: Any) -> Any:
    return kind(**{field.name: getattr(foreign, field.name) for field in fields(kind) if hasattr(foreign, field.name)})
