"""What a job is: AppDef and what belongs to it. Standard library only (and yaml, when a text is YAML).

Names are imported from their modules when first used, so that a program that needs the states alone loads nothing
else. No module here has the name of something that it exports: importing it would hide that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        AppDefError,
        ArgumentError,
        BackendUnavailableError,
        ComponentLoadError,
        ComponentNotFoundException,
        ComponentValidationException,
        ConfigError,
        InvalidRunConfigException,
        JobNotFoundError,
        LaunchCancelledError,
        LogUnreadableError,
        MalformedAppHandleException,
        MountError,
        NotAllowedError,
        ReadOnlyError,
        RoleOverrideError,
        SchedulerError,
        TorchXTuiError,
        UnknownAppException,
        UnknownResourceError,
        UnknownRoleError,
        UnknownSchedulerException,
    )
    from .handles import (
        AppHandle,
        ParsedAppHandle,
        in_context,
        make_app_handle,
        make_unique,
        normalize_str,
        parse_app_handle,
        random_id,
        split_context,
        torchx_handle,
    )
    from .mounts import BindMount, DeviceMount, Mount, MountType, VolumeMount, format_mounts, parse_mounts
    from .resource_names import get_named_resources, named_resource_names, named_resources, resource
    from .resources import NULL_RESOURCE, Resource
    from .roles import AppDef, AppDryRunInfo, RetryPolicy, Role, macros
    from .run_options import CfgVal, format_cfg, format_value, get_type_name, parse_bool, runopt, runopts
    from .serialize import appdef_from_dict, appdef_from_json, appdef_to_dict, appdef_to_json
    from .status import (
        ALL,
        MISSING,
        NA,
        NONE,
        UNKNOWN,
        AppState,
        AppStatus,
        AppStatusError,
        ReplicaState,
        ReplicaStatus,
        RoleStatus,
        is_started,
        is_terminal,
        may_follow,
    )
    from .torchx_names import TORCHX_CONTEXT_NAME, TORCHX_HOME, CapabilityKey, app_metadata, cases
    from .workspace import Workspace, copy_projects_with

_HOMES = {
    "roles": ("AppDef", "AppDryRunInfo", "RetryPolicy", "Role", "macros"),
    "errors": (
        "AppDefError",
        "ArgumentError",
        "BackendUnavailableError",
        "ComponentLoadError",
        "ComponentNotFoundException",
        "ComponentValidationException",
        "ConfigError",
        "InvalidRunConfigException",
        "JobNotFoundError",
        "LaunchCancelledError",
        "LogUnreadableError",
        "MalformedAppHandleException",
        "MountError",
        "NotAllowedError",
        "ReadOnlyError",
        "RoleOverrideError",
        "SchedulerError",
        "TorchXTuiError",
        "UnknownAppException",
        "UnknownResourceError",
        "UnknownRoleError",
        "UnknownSchedulerException",
    ),
    "run_options": (
        "CfgVal",
        "format_cfg",
        "format_value",
        "get_type_name",
        "parse_bool",
        "runopt",
        "runopts",
    ),
    "handles": (
        "AppHandle",
        "ParsedAppHandle",
        "in_context",
        "make_app_handle",
        "make_unique",
        "normalize_str",
        "parse_app_handle",
        "random_id",
        "split_context",
        "torchx_handle",
    ),
    "mounts": (
        "BindMount",
        "DeviceMount",
        "Mount",
        "MountType",
        "VolumeMount",
        "format_mounts",
        "parse_mounts",
    ),
    "resource_names": (
        "get_named_resources",
        "named_resource_names",
        "named_resources",
        "resource",
    ),
    "resources": (
        "NULL_RESOURCE",
        "Resource",
    ),
    "status": (
        "AppStatusError",
        "ALL",
        "AppState",
        "AppStatus",
        "MISSING",
        "NA",
        "NONE",
        "ReplicaState",
        "ReplicaStatus",
        "RoleStatus",
        "UNKNOWN",
        "is_started",
        "is_terminal",
        "may_follow",
    ),
    "serialize": (
        "appdef_from_dict",
        "appdef_from_json",
        "appdef_to_dict",
        "appdef_to_json",
    ),
    "torchx_names": (
        "CapabilityKey",
        "TORCHX_CONTEXT_NAME",
        "TORCHX_HOME",
        "app_metadata",
        "cases",
    ),
    "workspace": (
        "Workspace",
        "copy_projects_with",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ALL",
    "MISSING",
    "NA",
    "NONE",
    "NULL_RESOURCE",
    "TORCHX_CONTEXT_NAME",
    "TORCHX_HOME",
    "UNKNOWN",
    "AppDef",
    "AppDefError",
    "AppDryRunInfo",
    "AppHandle",
    "AppState",
    "AppStatus",
    "AppStatusError",
    "ArgumentError",
    "BackendUnavailableError",
    "BindMount",
    "CapabilityKey",
    "CfgVal",
    "ComponentLoadError",
    "ComponentNotFoundException",
    "ComponentValidationException",
    "ConfigError",
    "DeviceMount",
    "InvalidRunConfigException",
    "JobNotFoundError",
    "LaunchCancelledError",
    "LogUnreadableError",
    "MalformedAppHandleException",
    "Mount",
    "MountError",
    "MountType",
    "NotAllowedError",
    "ParsedAppHandle",
    "ReadOnlyError",
    "ReplicaState",
    "ReplicaStatus",
    "Resource",
    "RetryPolicy",
    "Role",
    "RoleOverrideError",
    "RoleStatus",
    "SchedulerError",
    "TorchXTuiError",
    "UnknownAppException",
    "UnknownResourceError",
    "UnknownRoleError",
    "UnknownSchedulerException",
    "VolumeMount",
    "Workspace",
    "app_metadata",
    "appdef_from_dict",
    "appdef_from_json",
    "appdef_to_dict",
    "appdef_to_json",
    "cases",
    "copy_projects_with",
    "format_cfg",
    "format_mounts",
    "format_value",
    "get_named_resources",
    "get_type_name",
    "in_context",
    "is_started",
    "is_terminal",
    "macros",
    "make_app_handle",
    "make_unique",
    "may_follow",
    "named_resource_names",
    "named_resources",
    "normalize_str",
    "parse_app_handle",
    "parse_bool",
    "parse_mounts",
    "random_id",
    "resource",
    "runopt",
    "runopts",
    "split_context",
    "torchx_handle",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
