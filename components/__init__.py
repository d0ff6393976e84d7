"""Where jobs come from: components, found and described without running them, and built into AppDefs.

Names are imported from their modules when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .build import build_app, check_trusted, interpreter_of
    from .command_line import parse_command_line, to_command_line
    from .finder import (
        Component,
        component_key,
        describe,
        each_listed,
        find,
        list_components,
        listed_by_key,
        name_here,
        read_component,
    )
    from .image import DEFAULT_IMAGE
    from .lint import validate
    from .model import REQUIRED, ComponentDoc, ComponentSummary, Computed, LinterMessage, Parameter, ValueType
    from .role_overrides import ROLE_FIELDS, check_role_field, override_roles, read_overrides, role_texts
    from .sbatch_script import ScriptLine, differing_lines, is_script_name, lines_with_changes, read_script
    from .standalone import get_builtin_source
    from .values import check_argument, parse_value, to_text

_HOMES = {
    "build": ("build_app", "check_trusted", "interpreter_of"),
    "command_line": ("parse_command_line", "to_command_line"),
    "finder": (
        "Component",
        "component_key",
        "describe",
        "each_listed",
        "find",
        "list_components",
        "listed_by_key",
        "name_here",
        "read_component",
    ),
    "image": ("DEFAULT_IMAGE",),
    "lint": ("validate",),
    "model": ("REQUIRED", "ComponentDoc", "ComponentSummary", "Computed", "LinterMessage", "Parameter", "ValueType"),
    "role_overrides": ("ROLE_FIELDS", "check_role_field", "override_roles", "read_overrides", "role_texts"),
    "sbatch_script": ("ScriptLine", "differing_lines", "is_script_name", "lines_with_changes", "read_script"),
    "standalone": ("get_builtin_source",),
    "values": ("check_argument", "parse_value", "to_text"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DEFAULT_IMAGE",
    "REQUIRED",
    "ROLE_FIELDS",
    "Component",
    "ComponentDoc",
    "ComponentSummary",
    "Computed",
    "LinterMessage",
    "Parameter",
    "ScriptLine",
    "ValueType",
    "build_app",
    "check_argument",
    "check_role_field",
    "check_trusted",
    "component_key",
    "describe",
    "differing_lines",
    "each_listed",
    "find",
    "get_builtin_source",
    "interpreter_of",
    "is_script_name",
    "lines_with_changes",
    "list_components",
    "listed_by_key",
    "name_here",
    "override_roles",
    "parse_command_line",
    "parse_value",
    "read_component",
    "read_overrides",
    "read_script",
    "role_texts",
    "to_command_line",
    "to_text",
    "validate",
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
