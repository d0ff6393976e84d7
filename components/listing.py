"""Lists components: builtins at once, then those of installed packages and of files, as they are read."""

from __future__ import annotations

import ast
import logging
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..specs import ComponentLoadError
from ..specs.files import read_file
from .docstrings import first_sentence
from .finder import Component, builtins, find, plugins
from .lint import lint_definition
from .model import ComponentSummary
from .source import read_source

_log = logging.getLogger(__name__)


def list_components(folders: Sequence[Path] = ()) -> list[ComponentSummary]:
    """List the builtins, the components of installed packages, and those of the Python files in folders.

    Unusable ones are listed with their error: a file that mentions AppDef but is not Python, a component that breaks a
    rule, an entry point without components, a folder that cannot be read.

    Args:
        folders: Folders to search, without those below them.
    """
    return list(chain.from_iterable(each_listed(folders)))


def each_listed(folders: Sequence[Path] = ()) -> Iterator[list[ComponentSummary]]:
    """Yield the list in parts: the builtins, which take no time, those of packages, then those of each file."""
    yield [summary(component) for component in builtins()]
    yield _list_packages()
    seen: set[str] = set()
    for folder in folders:
        if (real := os.path.realpath(folder)) not in seen:
            seen.add(real)
            yield from _list_folder(folder)


def summary(component: Component) -> ComponentSummary:
    """Make the list entry of a component.

    Raises:
        ComponentLoadError: Its file is not Python.
        ComponentNotFoundException: Its file does not have it.
    """
    node = component.definition
    faults = [fault for fault in lint_definition(component.source, node) if fault.severity == "error"]
    return ComponentSummary(
        name=component.name,
        kind=component.kind,
        path=component.path,
        line=faults[0].line if faults else node.lineno,
        summary=first_sentence(ast.get_docstring(node)),
        error=faults[0].description if faults else None,
    )


def component_key(name: str, folder: str | Path = "") -> str:
    """Make the name of a component that does not depend on the current folder: a file's gets its absolute path.

    Args:
        name: The name that it was found by.
        folder: The folder in which it was found; the current folder if empty.
    """
    place, colon, function = name.rpartition(":")
    if not colon or not (place.endswith(".py") or "/" in place):
        return name
    path = Path(place).expanduser()
    try:
        return f"{os.path.normpath(Path(folder or Path.cwd()) / path)}:{function}"
    except OSError:  # the current folder is gone
        return name


def name_here(key: str) -> str:
    """Convert a `component_key` to the name that a person would type in the current folder."""
    place, colon, function = key.rpartition(":")
    return f"{shown_path(Path(place))}:{function}" if colon and place.startswith("/") else key


def listed_by_key(key: str) -> ComponentSummary:
    """Make the list entry of the component with a `component_key`.

    Raises:
        ComponentNotFoundException: It no longer exists.
    """
    name = name_here(key)
    try:
        return summary(find(name))
    except ComponentLoadError as error:
        return ComponentSummary(name, "file", Path(error.path), error.line or 0, error=error.reason)


def shown_path(path: Path) -> str:
    """Return a path as a person would type it in the current folder."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _list_packages() -> list[ComponentSummary]:
    failed: list[ComponentSummary] = []

    def note(name: str, reason: str) -> None:
        _log.warning("components of %s: %s", name, reason)
        failed.append(ComponentSummary(name, "plugin", Path(), 0, error=reason))

    return [*(summary(component) for component in plugins(note)), *failed]


def _list_folder(folder: Path) -> Iterator[list[ComponentSummary]]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".py"))
    except OSError as error:
        reason = f"the folder cannot be read ({error.strerror}): create it, or correct component_folders in config.toml"
        yield [ComponentSummary(str(folder), "file", folder, 0, error=reason)]
        return
    for name in names:
        yield _list_file(folder / name)


def _list_file(path: Path) -> list[ComponentSummary]:
    shown = shown_path(path)
    try:
        # Larger files, of more than 1 MB, are generated.
        if b"AppDef" not in read_file(path):
            return []
        source = read_source(path)
    except OSError:
        return []
    except ComponentLoadError as error:
        return [ComponentSummary(shown, "file", path, error.line or 0, error=error.reason)]
    components = [Component(f"{shown}:{node.name}", "file", path, node.name) for node in source.components]
    return [summary(component) for component in components]
