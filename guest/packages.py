"""Packages that register components, in this environment and in that of the project. Nothing is run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import describe_error
from ..base.files import current_folder, modified_ns
from ..base.modules import SearchPath, module_path, submodules
from .environment import Environment
from .interpreter import Interpreter, choose_interpreter, own_interpreter
from .settings import guest_settings

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

ENTRY_POINT_GROUP = "torchx.components"
# Links in a damaged package may lead around for ever.
_MAX_MODULES = 10_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComponentPackage:
    """The modules of an entry point.

    Args:
        prefix: What the names of its components begin with; empty for none.
        base: Its module.
        modules: The names and files of that module and of all below it.
    """

    prefix: str
    base: str
    modules: tuple[tuple[str, Path], ...]


def installed_packages(failed: Callable[[str, str], object]) -> Iterator[ComponentPackage]:
    """Yield the packages of this environment that register components.

    Args:
        failed: Called with an entry point without modules, or a package that cannot be read, and the reason.
    """
    return _packages(_entry_points(failed), None, failed)


def _packages(
    entries: Iterable[EntryPoint], where: SearchPath | None, failed: Callable[[str, str], object]
) -> Iterator[ComponentPackage]:
    for entry in entries:
        base = entry.value.partition(":")[0].strip()
        try:
            modules = tuple(islice(submodules(base, where), _MAX_MODULES))
        except Exception as error:  # finders of editable installs may raise anything
            failed(entry.name, f"its module {base} cannot be searched for: {describe_error(error)}")
            continue
        if modules:
            # TorchX's rule: a name that begins with an underscore adds no prefix.
            yield ComponentPackage("" if entry.name.startswith("_") else entry.name, base, modules)
        else:
            way = "reinstall its package, or remove it"
            if where is not None:
                way += ". Nothing is run to find it: FILE.py:COMPONENT names one that is elsewhere"
            failed(entry.name, f"its module {base} is missing: {way}")


def _entry_points(failed: Callable[[str, str], object]) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions, entry_points

    try:
        yield from entry_points(group=ENTRY_POINT_GROUP)
        return
    except Exception as error:  # one damaged file makes all fail: read them one by one
        _log.warning("entry points: %s", describe_error(error))
    for distribution in distributions():
        try:
            yield from distribution.entry_points.select(group=ENTRY_POINT_GROUP)
        except Exception as error:
            failed(
                _distribution_name(distribution),
                f"its entry points cannot be read: {describe_error(error)}: install it again",
            )


def _distribution_name(distribution: Distribution) -> str:
    try:
        return distribution.metadata["Name"] or "a package"
    except Exception:
        return "a package"


# The environment of the project. Its interpreter is not run: whoever wrote the project could run anything by it.


def project_interpreter() -> Interpreter | None:
    """Choose the interpreter of the project in the current folder; None where that is ours."""
    folder = current_folder()
    if folder is None:
        return None
    chosen = choose_interpreter(folder / "component.py", guest_settings().python)
    return None if chosen.path == own_interpreter().path else chosen


@dataclass
class _Listing:
    packages: list[ComponentPackage]
    problems: list[tuple[str, str]]
    # The folders that it was read from, and when they changed.
    folders: dict[str, int]


_listings: dict[str, _Listing] = {}


def packages_of(interpreter: Interpreter, failed: Callable[[str, str], object]) -> list[ComponentPackage]:
    """List the packages of another environment that register components, as `installed_packages` does of ours.

    Its files are read again only when a folder that packages are in has changed.
    """
    listing = _listings.get(interpreter.path)
    if listing is None or any(modified_ns(folder) != modified for folder, modified in listing.folders.items()):
        problems: list[tuple[str, str]] = []
        note = lambda name, reason: problems.append((name, reason))  # noqa: E731
        environment = Environment(interpreter.path)
        where = environment.search_path()
        folders = {folder: modified_ns(folder) for folder in where.folders}
        packages = list(_packages(environment.entry_points(ENTRY_POINT_GROUP, note), where, note))
        folders |= {
            folder: modified_ns(folder)
            for folder in {str(path.parent) for package in packages for _, path in package.modules}
        }
        listing = _listings[interpreter.path] = _Listing(packages, problems, folders)
    for name, reason in listing.problems:
        failed(name, reason)
    return listing.packages


def module_path_of(interpreter: Interpreter, module: str) -> Path | None:
    """Find the file of a module in another environment; None if there is none."""
    return module_path(module, Environment(interpreter.path).search_path())
