"""Packages that import their names from their modules at first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    Args:
        package: its name.
        names: the exported names, separated by spaces, by module, relative to the package. A name must not be that of
            a module of the package: importing the module would replace it.
    """
    homes = {name: module for module, exported in names.items() for name in exported.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package} has no attribute {name}")
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)
