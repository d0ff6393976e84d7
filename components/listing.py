"""The list of components: builtins at once, then those of installed packages and of files, as they are read."""

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

logger = logging.getLogger(__name__)


def list_components(folders: Sequence[Path] = ()) -> list[ComponentSummary]:
    """Return the builtins, those of installed packages, and those of the Python files in folders.

    What cannot be used is there with its error: a file that mentions AppDef but is not Python, a component that breaks
    a rule, an entry point that gives nothing, a folder that cannot be read.

    Args:
        folders: Looked at without the folders below them.
    """
    return list(chain.from_iterable(each_listed(folders)))


def each_listed(folders: Sequence[Path] = ()) -> Iterator[list[ComponentSummary]]:
    """Give the same a part at a time: the builtins, which take no time, the packages', then those of each file."""
    yield [summary(component) for component in builtins()]
    yield _of_packages()
    seen: set[str] = set()
    for folder in folders:
        if (real := os.path.realpath(folder)) not in seen:
            seen.add(real)
            yield from _in_folder(folder)


def summary(component: Component) -> ComponentSummary:
    """Return the line of the list for a component.

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
    """Return what a component is called wherever one stands: a file's with its whole path, any other as it is.

    Args:
        name: What it was found by.
        folder: Where that was; the current folder if empty.
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
    """Return what a person would type here for what `component_key` gave."""
    place, colon, function = key.rpartition(":")
    return f"{shown_path(Path(place))}:{function}" if colon and place.startswith("/") else key


def listed_by_key(key: str) -> ComponentSummary:
    """Return the line of the list for what `component_key` gave.

    Raises:
        ComponentNotFoundException: It is no more.
    """
    name = name_here(key)
    try:
        return summary(find(name))
    except ComponentLoadError as error:
        return ComponentSummary(name, "file", Path(error.path), error.line or 0, error=error.reason)


def shown_path(path: Path) -> str:
    """Return a path as a person would type it here."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _of_packages() -> list[ComponentSummary]:
    failed: list[ComponentSummary] = []

    def note(name: str, reason: str) -> None:
        logger.warning("components of %s: %s", name, reason)
        failed.append(ComponentSummary(name, "plugin", Path(), 0, error=reason))

    return [*(summary(component) for component in plugins(note)), *failed]


def _in_folder(folder: Path) -> Iterator[list[ComponentSummary]]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".py"))
    except OSError as error:
        reason = f"the folder cannot be read ({error.strerror}): create it, or correct component_folders in config.toml"
        yield [ComponentSummary(str(folder), "file", folder, 0, error=reason)]
        return
    for name in names:
        yield _in_file(folder / name)


def _in_file(path: Path) -> list[ComponentSummary]:
    shown = shown_path(path)
    try:
        # What has more than 1 MB was generated.
        if b"AppDef" not in read_file(path):
            return []
        source = read_source(path)
    except OSError:
        return []
    except ComponentLoadError as error:
        return [ComponentSummary(shown, "file", path, error.line or 0, error=error.reason)]
    components = [Component(f"{shown}:{node.name}", "file", path, node.name) for node in source.components]
    return [summary(component) for component in components]
