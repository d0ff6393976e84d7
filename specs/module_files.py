"""Where the source of a module is, without importing it or the packages around it, and how it is parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def module_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module by its dotted name, or None where there is none.

    `importlib.util.find_spec` would import the packages above it.
    """
    search: list[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        if not all(parts[:depth]):
            return None
        spec = PathFinder.find_spec(".".join(parts[:depth]), search)
        if spec is None:
            return _from_other_finders(parts[0]) if depth == 1 == len(parts) else None
        search = list(spec.submodule_search_locations or [])
    return spec


def module_path(name: str) -> Path | None:
    """Return the file of a module's Python source, or None."""
    spec = module_spec(name)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def submodules(name: str) -> Iterator[tuple[str, Path]]:
    """Give the names and files of a module and, where it is a package, of all modules below it."""
    spec = module_spec(name)
    if spec is None:
        return
    if spec.origin and spec.origin.endswith(".py"):
        yield name, Path(spec.origin)
    for folder in spec.submodule_search_locations or []:
        for path in sorted(Path(folder).iterdir()):
            is_package = (path / "__init__.py").is_file()
            if is_package or (path.suffix == ".py" and path.name != "__init__.py"):
                yield from submodules(f"{name}.{path.stem}")


def _from_other_finders(name: str) -> ModuleSpec | None:
    """Return the spec of a top-level module that only an editable install's own finder knows."""
    from importlib.util import find_spec

    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


def parsing(function: Callable[[], T]) -> T:
    """Return what a function returns that parses source code, and may be called again.

    CPython before 3.11.9 raises SystemError where two threads parse at once.
    """
    for _ in range(4):
        try:
            return function()
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise
    return function()
