"""Changes to the roles of an AppDef, as texts of a form or a command line: more replicas, another image, more memory.

A text replaces the component's whole value: `env` is all of the environment, `args` are all arguments.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.errors import join_names
from ..specs.errors import AppDefError, ArgumentError, MountError, RoleOverrideError, UnknownResourceError
from ..specs.mounts import format_mounts, parse_mounts
from ..specs.resource_names import get_named_resources, named_resources
from ..specs.resources import RESOURCE_NAME_TAG, Resource
from ..specs.roles import AppDef, RetryPolicy, Role
from ..specs.status import MISSING
from ..specs.workspace import Workspace
from .model import Parameter, ValueType
from .values import parse_value, to_text

_RESOURCE_NUMBERS = ("cpu", "gpu", "memMB")


_MINIMUMS = {"num_replicas": 1, "cpu": 0, "gpu": 0, "memMB": 0, "max_retries": 0}


def _field(name: str, help: str, kind: str = "str", *items: str, choices: Sequence[str] = ()) -> Parameter:
    written = f"{kind}[{', '.join(items)}]" if items else kind
    return Parameter(name, "keyword_only", ValueType(kind, written, items, choices=tuple(choices)), help=help)


ROLE_FIELDS: dict[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        _field("num_replicas", "How many replicas of this role run.", "int"),
        _field("image", "The container image, or on this machine a folder, that the replicas run in."),
        _field("resource", "A named resource, such as gpu.small; empty for the figures below."),
        _field("cpu", "CPU cores of each replica.", "int"),
        _field("gpu", "GPUs of each replica.", "int"),
        _field("memMB", "Memory of each replica, in MB.", "int"),
        _field("env", "All environment variables of the role.", "dict", "str", "str"),
        _field("mounts", "What replicas see of their host: type=bind,src=/data,dst=/data,readonly.", "list", "str"),
        _field("max_retries", "How often a failed replica is restarted.", "int"),
        _field("retry_policy", "What is restarted after a failure.", choices=[policy.value for policy in RetryPolicy]),
        _field("workspace", "Local folders that travel with this role: a path, or {/a: a, /b: b}."),
        _field("entrypoint", "The program to run."),
        Parameter("args", "var_positional", ValueType("str", "str"), (), "Its arguments, quoted as in a shell."),
    )
}
"""The fields of a role that can be changed, in the order of a form."""


def role_texts(role: Role) -> dict[str, str]:
    """Format every field of `ROLE_FIELDS`; a field that the role does not set is empty."""
    resource = role.resource
    return {
        "num_replicas": str(role.num_replicas),
        "image": role.image,
        "resource": resource.get_resource_name() or "",
        **{name: str(getattr(resource, name)) if getattr(resource, name) >= 0 else "" for name in _RESOURCE_NUMBERS},
        "env": to_text(role.env),
        "mounts": format_mounts(role.mounts),
        "max_retries": str(role.max_retries),
        "retry_policy": RetryPolicy(role.retry_policy).value,
        "workspace": _workspace_text(role.workspace),
        "entrypoint": "" if role.entrypoint == MISSING else role.entrypoint,
        "args": shlex.join(str(arg) for arg in role.args),
    }


def read_overrides(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Parse the changes of a command line, by role and field.

    Args:
        texts: each `ROLE.FIELD=VALUE`; of several for a field the last counts.

    Raises:
        RoleOverrideError: a text has another form, or names an unknown field.
    """
    overrides: dict[str, dict[str, str]] = {}
    for text in texts:
        place, sign, value = text.partition("=")
        role, dot, name = place.rpartition(".")
        if not (sign and dot and role):
            # The value may be secret, so it is not in the message.
            raise RoleOverrideError(place, "", "use ROLE.FIELD=VALUE, such as trainer.num_replicas=4")
        _get_field(role, name)
        overrides.setdefault(role, {})[name] = value
    return overrides


def override_roles(app: AppDef, overrides: Mapping[str, Mapping[str, str]]) -> AppDef:
    """Return a copy of an app with changes in its roles.

    Args:
        app: The AppDef of a component.
        overrides: Texts by role and field.

    Raises:
        RoleOverrideError: There is no such role or field, or a text is not valid for it.
    """
    if not any(overrides.values()):
        return app
    changed = copy.deepcopy(app)
    for name, texts in overrides.items():
        if name not in changed:
            names = join_names(role.name for role in changed.roles)
            raise RoleOverrideError(name, "", f"the app has no such role. Its roles: {names}")
        for role in changed.roles:
            if role.name == name:
                _override(role, texts)
    return changed


def check_role_field(name: str, text: str) -> str:
    """Describe what is wrong with the text of a field; empty if it is valid.

    A named resource is checked once all of them are loaded: that runs code of packages, which may take long.
    """
    if name == "resource" and not named_resources.is_loaded:
        return ""
    try:
        _parse_field("", name, text)
    except RoleOverrideError as error:
        return error.reason
    return ""


def _override(role: Role, texts: Mapping[str, str]) -> None:
    for field in texts:
        _get_field(role.name, field)
    # A named resource first: cpu, gpu and memMB change it.
    for field in ROLE_FIELDS:
        if field not in texts:
            continue
        value = _parse_field(role.name, field, texts[field])
        if field == "resource":
            role.resource = value or role.resource
        elif field in _RESOURCE_NUMBERS:
            role.resource = _with_number(role.resource, field, value)
        else:
            setattr(role, field, value)
        # An override by the component would win. Copies of a role share the dict, so it is replaced.
        attribute = "resource" if field in _RESOURCE_NUMBERS else field
        role.overrides = {name: maker for name, maker in role.overrides.items() if name != attribute}


def _with_number(resource: Resource, name: str, value: int) -> Resource:
    tags = {key: tag for key, tag in resource.tags.items() if key != RESOURCE_NAME_TAG}
    changes: dict[str, Any] = {name: value, "tags": tags}
    return replace(Resource.copy(resource), **changes)


def _get_field(role: str, field: str) -> Parameter:
    parameter = ROLE_FIELDS.get(field)
    if parameter is None:
        raise RoleOverrideError(role, field, f"there is no such field. Valid fields: {', '.join(ROLE_FIELDS)}")
    return parameter


def _parse_field(role: str, field: str, text: str) -> Any:
    parameter = _get_field(role, field)
    if field in _RESOURCE_NUMBERS and not text.strip():
        return -1
    try:
        value = _PARSERS[field](text) if field in _PARSERS else parse_value(parameter, text.strip())
    except (ArgumentError, MountError, AppDefError, UnknownResourceError) as error:
        raise RoleOverrideError(role, field, getattr(error, "reason", str(error))) from error
    minimum = _MINIMUMS.get(field)
    if minimum is not None and value < minimum:
        raise RoleOverrideError(role, field, f"use {minimum} or more, not {value}")
    if field == "entrypoint" and not value:
        raise RoleOverrideError(role, field, "use a program to run")
    return value


def _parse_resource(text: str) -> Resource | None:
    if not text.strip():
        return None
    from ..guest.resources import load_named_resources

    load_named_resources()
    return get_named_resources(text.strip())


def _workspace_text(workspace: Workspace | None) -> str:
    """Format a workspace as `Workspace.from_str` parses it."""
    if not workspace:
        return ""
    project = next(iter(workspace.projects))
    if workspace.is_unmapped_single_project() and _parses_to(project, workspace):
        return project
    import yaml

    return yaml.safe_dump(workspace.projects, default_flow_style=True, width=10**6).strip()


def _parses_to(text: str, workspace: Workspace) -> bool:
    # Some paths have another meaning in YAML: `/data #2`, `*`.
    try:
        return Workspace.from_str(text) == workspace
    except AppDefError:
        return False


_PARSERS: dict[str, Callable[[str], Any]] = {
    "args": lambda text: [*parse_value(ROLE_FIELDS["args"], text)],
    "mounts": lambda text: parse_mounts([part for part in text.split(",") if part.strip()]),
    "resource": _parse_resource,
    "retry_policy": lambda text: RetryPolicy(parse_value(ROLE_FIELDS["retry_policy"], text.strip())),
    "workspace": lambda text: Workspace.from_str(text.strip()) or None,
}
