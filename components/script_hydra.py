"""Reads the overrides that a script of Hydra takes: the keys of its YAML file, and the files of its config groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.files import is_file, is_folder, read_file
from .model import REQUIRED, Computed
from .script_arguments import ScriptArgument, value_type
from .script_evaluator import Call, Scope

_MAX_BYTES = 32_000
_MAX_CHOICES, _MAX_DEPTH = 100, 4
_SUFFIXES = (".yaml", ".yml")


def read_hydra(call: Call, path: Path, scope: Scope) -> tuple[list[ScriptArgument], list[str]]:
    """Return the overrides of a script, and what cannot be read of its configuration.

    Args:
        call: The call of `hydra.main`.
        path: The script's file.
        scope: The script's names.
    """
    folder, name = call.get(0, "config_path"), call.get(1, "config_name")
    if not isinstance(name, str):
        return [], ["the configuration of Hydra, which has no config_name here"]
    base = path.parent / (folder if isinstance(folder, str) else "")
    file = next((file for suffix in ("", *_SUFFIXES) if is_file(file := base / f"{name}{suffix}")), None)
    if file is None:
        return [], [f"the configuration {name}, which is no file in {base}"]
    unread: list[str] = []
    found: dict[str, ScriptArgument] = {}
    for argument in _of_file(base, file, unread, "", set()):
        found.setdefault(argument.name, argument)
    return list(found.values()), unread


def _of_file(base: Path, file: Path, unread: list[str], package: str, seen: set[Path]) -> Iterator[ScriptArgument]:
    """Yield the overrides of a file: groups first, then its keys, then those of the files that it includes."""
    data = _load(file, unread)
    if not isinstance(data, dict) or file in seen or len(seen) > 20:
        return
    seen.add(file)
    included: list[tuple[Path, str]] = []
    defaults = data.pop("defaults", ())
    for item in defaults if isinstance(defaults, list) else ():
        if isinstance(item, dict) and len(item) == 1:
            group, option = next(iter(item.items()))
            words = str(group).split()
            is_override = "override" in words
            group = words[-1].partition("@")[0] if words else ""
            if group.partition("/")[0] == "hydra" or not group:
                continue
            option = option.removesuffix(".yaml") if isinstance(option, str) else option
            choices = _files_of(base / group)
            made = value_type(
                "str", "group", optional=option is None, choices=choices if option in (None, *choices) else ()
            )
            default = REQUIRED if option == "???" else option if isinstance(option, str) else None
            if not package:
                yield ScriptArgument(group, "override", made, default, "A group of the configuration")
            if isinstance(option, str) and not is_override:
                below = ".".join(part for part in (package, *group.split("/")) if part)
                included.append((base / group / f"{option}.yaml", below))
        elif isinstance(item, str) and item != "_self_":
            included.append(
                (base / f"{item}.yaml", ".".join(part for part in (package, *item.split("/")[:-1]) if part))
            )
    yield from _of_mapping(data, f"{package}." if package else "", 0)
    for path, below in included:
        if is_file(path):
            # Names in a file are relative to its folder.
            yield from _of_file(path.parent, path, unread, below, seen)


def _of_mapping(data: Mapping[Any, Any], prefix: str, depth: int) -> Iterator[ScriptArgument]:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if name == "hydra" or key in ("_target_", "_partial_", "_recursive_", "_convert_"):
            continue
        if isinstance(value, dict) and value:
            if depth < _MAX_DEPTH:
                yield from _of_mapping(value, f"{name}.", depth + 1)
        elif isinstance(value, str) and value == "???":
            yield ScriptArgument(name, "override", value_type("str"), REQUIRED)
        elif isinstance(value, (list, dict)) or (isinstance(value, str) and "${" in value):
            yield ScriptArgument(name, "override", value_type("str", type(value).__name__), Computed(str(value)))
        elif isinstance(value, (bool, int, float, str)):
            yield ScriptArgument(name, "override", value_type(type(value).__name__), value, arity=1)
        else:
            yield ScriptArgument(name, "override", value_type("str", optional=True), None)


def _load(file: Path, unread: list[str]) -> Any:
    import yaml

    try:
        return yaml.load(read_file(file, _MAX_BYTES), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or type(error).__name__
        unread.append(f"the configuration {file.name} ({reason})")
        return None


def _files_of(folder: Path) -> tuple[str, ...]:
    """Return the options of a config group."""
    if not is_folder(folder):
        return ()
    try:
        return tuple(sorted(path.stem for path in folder.iterdir() if path.suffix in _SUFFIXES))[:_MAX_CHOICES]
    except OSError:
        return ()
