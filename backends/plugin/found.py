"""Finds the schedulers of other packages: entry points, and modules of `torchx_plugins`. Nothing is imported for it."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...base.errors import describe_error
from ...base.files import read_file
from ...base.modules import namespace_modules, parse_source, plugin_sources

ENTRY_POINT_GROUP = "torchx.schedulers"
GUEST_GROUP = "torchx_tui.guest_schedulers"
"""The group of schedulers of our contract that live in a process of their own, as those written for TorchX do."""
NAMESPACE_PART = "schedulers"
_REGISTER = re.compile(r"\bregister\.scheduler$")


@dataclass(frozen=True)
class FoundScheduler:
    """A scheduler that was found, not yet imported.

    Args:
        name: what it is called.
        group: where it is registered.
        module: the module that makes it.
        attribute: the factory in that module, with dots where it is within something; empty where the module has one
            of the decorator's ``name``.
        package: the distribution that it came with, as far as that is known.
    """

    name: str
    group: str
    module: str
    attribute: str = ""
    package: str = ""

    @property
    def origin(self) -> str:
        """The module, factory and package, for messages."""
        path = f"{self.module}:{self.attribute}" if self.attribute else self.module
        return f"{path} of {self.package}" if self.package else path

    def load(self) -> Any:
        """Import its module; return the factory."""
        module = importlib.import_module(self.module)
        return functools.reduce(getattr, filter(None, self.attribute.split(".")), module)


@dataclass(frozen=True)
class Unreadable:
    """Something that should register schedulers, and cannot be read.

    Args:
        where: the module or package.
        why: what is wrong with it, and what to do.
    """

    where: str
    why: str


def found_schedulers() -> tuple[list[FoundScheduler], list[Unreadable]]:
    """Return the schedulers of TorchX's, one of each name, and what could not be read.

    An entry point wins over a module of `torchx_plugins`, as in TorchX.
    """
    by_namespace, by_entry_point = plugin_sources()
    unreadable: list[Unreadable] = []
    found: dict[str, FoundScheduler] = {}
    for entry in schedulers_in_group(ENTRY_POINT_GROUP, unreadable) if by_entry_point else ():
        found.setdefault(entry.name, entry)
    for entry in _in_namespace(unreadable) if by_namespace else ():
        if found.setdefault(entry.name, entry) is not entry:
            where = found[entry.name]
            why = (
                f"{entry.name} is registered by {where.origin} ({where.group}) as well, which wins: remove one of them"
            )
            unreadable.append(Unreadable(entry.module, why))
    return list(found.values()), unreadable


def schedulers_in_group(group: str, unreadable: list[Unreadable]) -> Iterator[FoundScheduler]:
    """Yield the schedulers of a group of entry points; add to ``unreadable`` why they cannot be read."""
    # It takes 20 ms and more to import.
    from importlib.metadata import entry_points

    try:
        points = list(entry_points(group=group))
    except Exception as error:  # one damaged file takes all of them along
        unreadable.append(Unreadable("entry points", f"{describe_error(error)}: install the package again"))
        return
    for point in points:
        package = point.dist.name if point.dist else ""
        module, _, attribute = point.value.partition("[")[0].partition(":")
        yield FoundScheduler(point.name, group, module.strip(), attribute.strip(), package)


def _in_namespace(unreadable: list[Unreadable]) -> Iterator[FoundScheduler]:
    for module, path in namespace_modules(NAMESPACE_PART):
        try:
            text = read_file(path)
            tree = parse_source(text, path)
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unreadable.append(Unreadable(module, f"{path} is not Python: {describe_error(error)}"))
            continue
        for name, attribute in _registered(tree):
            yield FoundScheduler(name, f"torchx_plugins.{NAMESPACE_PART}", module, attribute, str(path))


def _registered(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name that each ``@register.scheduler()`` registers, and that of its function or class."""
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and _REGISTER.search(ast.unparse(decorator.func)):
                given = [word.value for word in decorator.keywords if word.arg == "name"] or decorator.args[:1]
                name = given[0].value if given and isinstance(given[0], ast.Constant) else None
                yield str(name or node.name), node.name
