"""Packages that register components, in this environment and in that of the project: both ends. Nothing is imported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..specs.errors import describe_error
from ..specs.files import current_folder, modified_ns
from ..specs.modules import module_path, submodules
from .interpreter import Interpreter, choose_interpreter, own_interpreter
from .settings import guest_settings

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

ENTRY_POINT_GROUP = "torchx.components"

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
    for entry in _entry_points(failed):
        base = entry.value.partition(":")[0].strip()
        try:
            modules = tuple(submodules(base))
        except Exception as error:  # finders of editable installs may raise anything
            failed(entry.name, f"its module {base} cannot be searched for: {describe_error(error)}")
            continue
        if modules:
            # TorchX's rule: a name that begins with an underscore adds no prefix.
            yield ComponentPackage("" if entry.name.startswith("_") else entry.name, base, modules)
        else:
            failed(entry.name, f"its module {base} is missing: reinstall its package, or remove it")


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


# The environment of the project


def project_interpreter() -> Interpreter | None:
    """Choose the interpreter of the project in the current folder; None where that is ours."""
    folder = current_folder()
    if folder is None:
        return None
    chosen = choose_interpreter(folder / "component.py", guest_settings.python)
    return None if chosen.path == own_interpreter().path else chosen


@dataclass
class _Listing:
    packages: list[ComponentPackage] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    # The folders that it was read from, and when they changed.
    folders: dict[str, int] = field(default_factory=dict)


_listings: dict[str, _Listing] = {}


def packages_of(interpreter: Interpreter, failed: Callable[[str, str], object]) -> list[ComponentPackage]:
    """List the packages of another environment that register components, as `installed_packages` does of ours.

    Its interpreter is asked in a guest, again only when a folder that packages are in has changed.
    """
    listing = _listings.get(interpreter.path)
    if listing is None or any(modified_ns(folder) != modified for folder, modified in listing.folders.items()):
        data = _ask(interpreter, {"packages": True}, failed)
        if not data:
            return []
        listing = _listings[interpreter.path] = _Listing(
            [
                ComponentPackage(prefix, base, tuple((module, Path(path)) for module, path in modules))
                for prefix, base, modules in data["packages"]
            ],
            [(name, reason) for name, reason in data["problems"]],
            dict(data["folders"]),
        )
    for name, reason in listing.problems:
        failed(name, reason)
    return listing.packages


def module_path_of(interpreter: Interpreter, module: str) -> Path | None:
    """Find the file of a module in another environment; None if there is none."""
    path = _ask(interpreter, {"module": module}, lambda name, reason: _log.warning("%s: %s", name, reason)).get("path")
    return Path(path) if path else None


def _ask(interpreter: Interpreter, request: dict[str, Any], failed: Callable[[str, str], object]) -> dict[str, Any]:
    from .host import GuestError, guests

    try:
        return guests.ask(interpreter, "", request).data
    except GuestError as error:
        failed(str(interpreter), str(error))
        return {}


def describe_packages() -> dict[str, Any]:
    """List the packages of this environment as plain data, in the guest."""
    import sys

    problems: list[tuple[str, str]] = []
    packages = list(installed_packages(lambda name, reason: problems.append((name, reason))))
    folders = {str(path.parent) for package in packages for _, path in package.modules} | set(filter(None, sys.path))
    return {
        "loaded": True,
        "packages": [[item.prefix, item.base, [[name, str(path)] for name, path in item.modules]] for item in packages],
        "problems": problems,
        "folders": {folder: modified_ns(folder) for folder in folders},
    }


def describe_module(name: str) -> dict[str, Any]:
    """Find the file of a module of this environment, in the guest."""
    path = module_path(name)
    return {"loaded": True, "path": str(path) if path else ""}
