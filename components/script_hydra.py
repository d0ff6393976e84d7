"""Reads the overrides that a script of Hydra takes: the keys of its YAML file, and its config groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.files import read_file
from .model import REQUIRED, Computed
from .script_arguments import ScriptArgument, make_argument
from .script_syntax import Call

_MAX_BYTES = 32_000
_MAX_CHOICES, _MAX_DEPTH = 100, 4


def read_hydra(call: Call, path: Path) -> tuple[list[ScriptArgument], list[str]]:
    """Return the overrides of a script, and what cannot be read of its configuration.

    Args:
        call: The call of `hydra.main`.
        path: The script's file.
    """
    import yaml

    folder, name = call.value("config_path", 0), call.value("config_name", 1)
    if not isinstance(name, str):
        return [], ["the configuration of Hydra, which has no config_name here"]
    base = path.parent / (folder if isinstance(folder, str) else "")
    file = base / f"{name.removesuffix('.yaml')}.yaml"
    try:
        data = yaml.load(read_file(file, _MAX_BYTES), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        return [], [f"the configuration {file.name} ({error})"]
    if not isinstance(data, dict):
        return [], []
    defaults = data.pop("defaults", ())
    found = {item.name: item for item in _groups(base, defaults if isinstance(defaults, list) else ())}
    return list((found | {item.name: item for item in _keys(data, "", 0)}).values()), []


def _groups(base: Path, defaults: Iterable[Any]) -> Iterator[ScriptArgument]:
    """Yield the config groups of a list of defaults, with the files of each as choices."""
    for item in defaults:
        group, option = next(iter(item.items())) if isinstance(item, dict) and item else ("", None)
        group = str(group).rpartition(" ")[2].partition("@")[0]
        if group and group.partition("/")[0] != "hydra":
            option = option if isinstance(option, str) else None
            choices = tuple(sorted(path.stem for path in (base / group).glob("*.yaml")))[:_MAX_CHOICES]
            yield make_argument(group, "group", option, style="override", choices=choices, help="A config group")


def _keys(data: Mapping[Any, Any], prefix: str, depth: int) -> Iterator[ScriptArgument]:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if name == "hydra" or key in ("_target_", "_partial_", "_recursive_", "_convert_"):
            continue
        if isinstance(value, dict) and value:
            if depth < _MAX_DEPTH:
                yield from _keys(value, f"{name}.", depth + 1)
        else:
            is_known = value is None or (isinstance(value, (str, int, float)) and "${" not in str(value))
            default = REQUIRED if value == "???" else value if is_known else Computed(str(value))
            yield make_argument(name, "str" if value is None else type(value).__name__, default, style="override")
