"""Reads the overrides that a script of Hydra takes: the keys of its YAML file, and its config groups."""

from __future__ import annotations

import posixpath
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from ..base.bounded_yaml import load_yaml
from ..base.files import read_file
from .model import REQUIRED, Computed
from .script_arguments import ScriptArgument, make_argument
from .script_syntax import Call
from .values import to_text

_MAX_BYTES, _MAX_FILES = 32_000, 32
_MAX_CHOICES, _MAX_DEPTH, _MAX_KEYS = 100, 8, 2_000
# The text of a list: one of a few aliases may have billions of items.
_LISTS = reprlib.Repr()
_LISTS.maxlevel, _LISTS.maxlist, _LISTS.maxdict, _LISTS.maxstring, _LISTS.maxother = 2, 40, 40, 100, 100
_PACKAGE = re.compile(rb"^# *@package +([\w.]+)", re.MULTILINE)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads ``1e-3`` as a number, as OmegaConf does and YAML 1.1 does not."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_hydra(call: Call, path: Path) -> tuple[list[ScriptArgument], list[str]]:
    """Return the overrides of a script, and what cannot be read of its configuration.

    Args:
        call: The call of `hydra.main`.
        path: The script's file.
    """
    folder, name = call.value("config_path", 0), call.value("config_name", 1)
    if not isinstance(name, str):
        return [], ["the configuration of Hydra, which has no config_name here"]
    reader = _Reader(path.parent / (folder if isinstance(folder, str) else ""))
    reader.read("", name.removesuffix(".yaml"), "", "")
    return list(reader.arguments.values()), reader.notes


class _Reader:
    """Reads a configuration with the files that its list of defaults includes.

    Args:
        folder: The folder of the configuration.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: set[Path] = set()
        self.arguments: dict[str, ScriptArgument] = {}
        self.notes: list[str] = []

    def read(self, group: str, option: str, package: str, chosen: str) -> None:
        """Read a file: its config groups, the files that they choose, then its own keys, which win.

        Args:
            group: The folder of the file in that of the configuration.
            option: The file's name, without its suffix.
            package: Where its keys are, with dots; empty for the top.
            chosen: The group and option that choose the file; empty for the first one.
        """
        name = f"{group}/{option}.yaml".lstrip("/")
        if ".." in Path(name).parts:
            self.notes.append(f"the configuration {name}, which is in another folder")
            return
        file = self._folder / name
        if file in self._files or len(self._files) >= _MAX_FILES:
            return
        self._files.add(file)
        try:
            text = read_file(file, _MAX_BYTES)
            data = load_yaml(text, _Loader)
        except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
            self.notes.append(f"the configuration {name} ({error})")
            return
        if not isinstance(data, dict):
            return
        if chosen and (header := _PACKAGE.search(text)):
            package = "" if header[1] == b"_global_" else header[1].decode()
        defaults = data.pop("defaults", ())
        for item in defaults if isinstance(defaults, list) else ():
            self._include(group, item, package, chosen)
        for item in islice(self._keys(data, f"{package}." if package else "", 0, chosen), _MAX_KEYS):
            known = self.arguments.get(item.name, item)
            if known.default != item.default:
                # Which one wins depends on the version of Hydra and on _self_.
                item = replace(item, default=Computed(f"{to_text(known.default)} or {to_text(item.default)}"))
            self.arguments[item.name] = item

    def _include(self, parent: str, item: Any, package: str, chosen: str) -> None:
        """Read an item of a list of defaults: `{group: option}`, or the name of a file."""
        if isinstance(item, str) and item != "_self_":
            path, _, at = _below(parent, item).partition("@")
            group, _, option = path.rpartition("/")
            self.read(group, option, at or (package if group == parent else group.replace("/", ".")), chosen)
        group, option = next(iter(item.items())) if isinstance(item, dict) and item else ("", None)
        is_override = str(group).startswith("override ")
        group, _, at = str(group).rpartition(" ")[2].partition("@")
        group = _below(parent, group)
        if not group or group.partition("/")[0] == "hydra" or ".." in group.split("/"):
            return
        option = option.removesuffix(".yaml") if isinstance(option, str) else None
        choices = tuple(sorted(path.stem for path in (self._folder / group).glob("*.yaml")))[:_MAX_CHOICES]
        name = f"{group}@{at}" if at else group
        self.arguments[name] = make_argument(
            name, "group", option, style="override", choices=choices, help="A config group"
        )
        if option and not is_override:
            own = "" if at == "_global_" else at.removeprefix("_global_.") or group.replace("/", ".")
            self.read(group, option, own, f"{group}={option}")

    def _keys(self, data: Mapping[Any, Any], prefix: str, depth: int, chosen: str) -> Iterator[ScriptArgument]:
        for key, value in data.items():
            name = f"{prefix}{key}"
            if name == "hydra" or key in ("_target_", "_partial_", "_recursive_", "_convert_"):
                continue
            if isinstance(value, dict) and value:
                if depth < _MAX_DEPTH:
                    yield from self._keys(value, f"{name}.", depth + 1, chosen)
                else:
                    self.notes.append(f"the keys below {name}")
            else:
                is_known = value is None or (isinstance(value, (str, int, float)) and "${" not in str(value))
                kind = "str" if value is None else type(value).__name__
                known = value if is_known else Computed(_LISTS.repr(value) if kind == "list" else str(value))
                default = REQUIRED if value == "???" else known
                if chosen and default is not REQUIRED:
                    # Another option of the group may have another one.
                    default = Computed(f"{'null' if default is None else to_text(default)} ({chosen})")
                yield make_argument(name, kind, default, style="override", optional=value is None)


def _below(parent: str, name: str) -> str:
    """Return the path of a group or file in the configuration's folder; a leading slash begins there."""
    return posixpath.join(parent, name).strip("/")
