"""Finding and parsing the source of modules without importing them, and the modules of `torchx_plugins`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from .files import is_file, is_folder

if TYPE_CHECKING:
    import ast

Modules = Iterator[tuple[str, Path]]
"""The names and files of modules."""
NAMESPACE = "torchx_plugins"
SOURCES_VARIABLE = "TORCHX_PLUGINS_SOURCE"
_NAMESPACE_BIT, _ENTRY_POINT_BIT = 1, 2
# CPython before 3.11.9 raises SystemError where two threads parse at once. Textual, which parses the parameters of
# actions, takes no lock.
_parsing = threading.Lock()
_TRIES = 5


def plugin_sources() -> tuple[bool, bool]:
    """Return whether plugins are read from the modules of `torchx_plugins`, and from entry points.

    `TORCHX_PLUGINS_SOURCE` chooses, as in TorchX: the sum of 1 for the modules and 2 for the entry points. Both are
    read if it is not set, or malformed (see `plugin_sources_error`).
    """
    given = os.environ.get(SOURCES_VARIABLE, "3")
    chosen = 3 if plugin_sources_error() else int(given)
    return bool(chosen & _NAMESPACE_BIT), bool(chosen & _ENTRY_POINT_BIT)


def plugin_sources_error() -> str:
    """Describe what is wrong with `TORCHX_PLUGINS_SOURCE`; empty if nothing is."""
    given = os.environ.get(SOURCES_VARIABLE, "3")
    try:
        valid = 0 <= int(given) <= 3
    except ValueError:
        valid = False
    if valid:
        return ""
    return f"{SOURCES_VARIABLE} is {given!r}: use 0 (none), 1 (torchx_plugins), 2 (entry points) or 3 (both)"


def namespace_modules(part: str) -> Modules:
    """Yield the names and files of the public modules of one part of `torchx_plugins`, in order.

    Args:
        part: such as ``schedulers``.
    """
    # Each of several packages may have a portion of the namespace.
    spec = module_spec(NAMESPACE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield from _modules_in(f"{NAMESPACE}.{part}", Path(folder, part))


@dataclass(frozen=True)
class SearchPath:
    """The search path for modules of another environment.

    Args:
        folders: The entries of its ``sys.path``.
        mapped: Files and folders of single top-level modules, by name, as editable installs have them.
    """

    folders: tuple[str, ...]
    mapped: Mapping[str, str] = field(default_factory=dict)


def module_spec(name: str, where: SearchPath | None = None) -> ModuleSpec | None:
    """Find the spec of a module by its dotted name; None if there is none.

    `importlib.util.find_spec` would import the packages above it.

    Args:
        name: The module.
        where: The environment; this one if None.
    """
    search = None if where is None else list(where.folders)
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        if not all(parts[:depth]):
            return None
        if depth == 1 and where is not None and parts[0] in where.mapped:
            spec = _mapped_spec(parts[0], Path(where.mapped[parts[0]]))
        else:
            spec = _find_spec(".".join(parts[:depth]), search)
        if spec is None and depth == 1 and where is None:
            spec = _from_other_finders(parts[0])
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or [])
    return spec


def module_path(name: str, where: SearchPath | None = None) -> Path | None:
    """Find the file of a module's Python source; None if there is none."""
    spec = module_spec(name, where)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def submodules(name: str, where: SearchPath | None = None) -> Modules:
    """Yield the names and files of a module and, if it is a package, of all modules below it."""
    spec = module_spec(name, where)
    if spec is None:
        return
    if spec.origin and spec.origin.endswith(".py"):
        yield name, Path(spec.origin)
    for module in iter_modules(spec.submodule_search_locations or [], f"{name}."):
        yield from submodules(module.name, where)


def parse_source(text: str | bytes, path: Path | str = "<text>") -> ast.Module:
    """Parse source code; see `ast.parse` for what it raises."""
    import ast

    with _parsing:
        for _ in range(_TRIES - 1):
            with suppress(SystemError):
                return ast.parse(text, str(path))
        return ast.parse(text, str(path))


def _modules_in(package: str, folder: Path) -> Modules:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        name = f"{package}.{path.stem}"
        if path.name.startswith("_") or "." in path.stem:
            continue
        if path.suffix == ".py":
            yield name, path
        elif is_folder(path):
            if is_file(path / "__init__.py"):
                yield name, path / "__init__.py"
            yield from _modules_in(name, path)


def _find_spec(name: str, search: list[str] | None) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(name, search)
    except KeyError:
        # Of a folder without `__init__.py`, whose spec follows the path of the package above it, which is not imported.
        spec = ModuleSpec(name, None, is_package=True)
        places = [Path(folder, name.rpartition(".")[2]) for folder in search or []]
        spec.submodule_search_locations = [str(place) for place in places if is_folder(place)]
        return spec


def _mapped_spec(name: str, path: Path) -> ModuleSpec | None:
    folder = path if is_folder(path) else None
    file = path / "__init__.py" if folder else path
    return spec_from_file_location(name, file, submodule_search_locations=[str(folder)] if folder else None)


def _from_other_finders(name: str) -> ModuleSpec | None:
    """Find the spec of a top-level module that only an editable install's own finder knows."""
    from importlib.util import find_spec

    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None
