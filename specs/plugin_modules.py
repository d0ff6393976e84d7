"""Where packages that are written for TorchX register what they have: entry points, and modules of `torchx_plugins`.

Nothing of them is imported to find them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .module_files import module_spec

NAMESPACE = "torchx_plugins"
SOURCES_VARIABLE = "TORCHX_PLUGINS_SOURCE"
_NAMESPACE_BIT, _ENTRY_POINT_BIT = 1, 2


def plugin_sources() -> tuple[bool, bool]:
    """Return whether the modules of `torchx_plugins` are looked at, and whether the entry points are.

    It is what `TORCHX_PLUGINS_SOURCE` says in TorchX: the sum of 1 for the modules and 2 for the entry points. Both
    where it is not set, or malformed (`sources_fault`).
    """
    given = os.environ.get(SOURCES_VARIABLE, "3")
    chosen = 3 if sources_fault() else int(given)
    return bool(chosen & _NAMESPACE_BIT), bool(chosen & _ENTRY_POINT_BIT)


def sources_fault() -> str:
    """Return what is wrong with `TORCHX_PLUGINS_SOURCE`, empty where nothing is."""
    given = os.environ.get(SOURCES_VARIABLE, "3")
    try:
        valid = 0 <= int(given) <= 3
    except ValueError:
        valid = False
    if valid:
        return ""
    return f"{SOURCES_VARIABLE} is {given!r}: want 0 (none), 1 (torchx_plugins), 2 (entry points) or 3 (both)"


def namespace_modules(part: str) -> Iterator[tuple[str, Path]]:
    """Give the names and files of the public modules of one part of `torchx_plugins`, in order.

    Args:
        part: such as ``schedulers``.
    """
    # Several packages may have a portion of it each.
    spec = module_spec(NAMESPACE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield from _modules_in(f"{NAMESPACE}.{part}", Path(folder, part))


def _modules_in(package: str, folder: Path) -> Iterator[tuple[str, Path]]:
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
        elif path.is_dir():
            if (path / "__init__.py").is_file():
                yield name, path / "__init__.py"
            yield from _modules_in(name, path)
