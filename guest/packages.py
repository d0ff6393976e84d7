"""Packages that register components: in this environment, and in that of the project. Nothing of them is run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ..base.errors import describe_error
from ..base.files import current_folder, modified_ns
from ..base.modules import SearchPath, module_path, submodules
from .environment import Environment, entry_points
from .interpreter import Interpreter, choose_interpreter, own_interpreter
from .settings import guest_settings

ENTRY_POINT_GROUP = "torchx.components"
Report = Callable[[str, str], object]
"""Is called with an entry point or module that cannot be used, and the reason."""
# Links in a damaged package may form a circle.
_MAX_MODULES = 10_000


@dataclass(frozen=True)
class ComponentPackage:
    """The modules of an entry point.

    Args:
        prefix: The start of its components' names.
        base: Its module.
        modules: The names and files of that module and of all below it.
    """

    prefix: str
    base: str
    modules: tuple[tuple[str, Path], ...]


@dataclass
class _Listing:
    packages: list[ComponentPackage] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    # The modification time of each folder that was read.
    folders: dict[str, int] = field(default_factory=dict)


_listings: dict[str, _Listing] = {}


def project_interpreter() -> Interpreter | None:
    """Choose the interpreter of the project in the current folder; None if it is that of torchx-tui."""
    folder = current_folder()
    if folder is None:
        return None
    chosen = choose_interpreter(folder / "component.py", guest_settings().python)
    return None if chosen.path == own_interpreter().path else chosen


def component_packages(interpreter: Interpreter | None, failed: Report) -> Iterator[ComponentPackage]:
    """Yield the packages of an environment that register components.

    Args:
        interpreter: That of the environment, which is read again only if one of its folders has changed; None for
            this environment.
        failed: Called with an entry point that has no modules, or a package that cannot be read, and the reason.
    """
    if interpreter is None:
        listing = _read(None, sys.path)
    else:
        listing = _listings.get(interpreter.path, _Listing())
        if not listing.folders or any(modified_ns(folder) != time for folder, time in listing.folders.items()):
            where = Environment(interpreter.path).search_path()
            listing = _listings[interpreter.path] = _read(where, where.folders)
    for name, reason in listing.problems:
        failed(name, reason)
    yield from listing.packages


def _read(where: SearchPath | None, folders: Iterable[str]) -> _Listing:
    listing = _Listing(folders={folder: modified_ns(folder) for folder in folders})
    note = lambda name, reason: listing.problems.append((name, reason))  # noqa: E731
    for entry in entry_points(folders, ENTRY_POINT_GROUP, note):
        base = entry.value.partition(":")[0].strip()
        try:
            modules = tuple(islice(submodules(base, where), _MAX_MODULES))
        except Exception as error:  # finders of editable installs may raise anything
            note(entry.name, f"its module {base} cannot be searched for: {describe_error(error)}")
            continue
        if modules:
            # TorchX's rule: a name that begins with an underscore adds no prefix.
            prefix = "" if entry.name.startswith("_") else entry.name
            listing.packages.append(ComponentPackage(prefix, base, modules))
            listing.folders |= {str(path.parent): modified_ns(str(path.parent)) for _, path in modules}
        else:
            way = "reinstall its package, or remove it"
            if where is not None:
                way += ". Import hooks are not run to find it: use FILE.py:COMPONENT if they would"
            note(entry.name, f"its module {base} is missing: {way}")
    return listing


def module_path_of(interpreter: Interpreter, module: str) -> Path | None:
    """Find the file of a module in another environment; None if there is none."""
    return module_path(module, Environment(interpreter.path).search_path())
