"""Lists the components for the picker, in a thread: the builtins at once, files as they are read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...components import ComponentSummary, component_key, each_listed, listed_by_key, name_here
from ...specs import ComponentNotFoundException
from .component_order import MOST_RECENT

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord

# Seconds between two lists while many files are read; each later one is longer, and comes after a longer pause.
_PAUSE = 0.15
_LONGER = 1.5


def component_folders(chosen: Sequence[str]) -> list[Path]:
    """Return where files of components are looked for: the current folder, and those that the settings name."""
    return [Path(), *(Path(name).expanduser() for name in chosen)]


def growing_list(
    folders: Sequence[Path], pinned: Sequence[str], launches: Mapping[str, LaunchRecord]
) -> Iterator[dict[str, ComponentSummary]]:
    """Give the components that are known by now, by their keys; each time all of them, at last every one.

    Those that are pinned or were launched lately are there wherever their files are; one that is pinned and gone says
    so.

    Args:
        folders: where files of components are.
        pinned: components, as `component_key` calls them.
        launches: the newest launch of each component, the latest first.
    """
    first = {**_found_elsewhere(pinned, launches)}
    parts = each_listed(folders)
    listed = _keyed(next(parts))
    yield {**listed, **first}
    told, pause = time.monotonic(), _PAUSE
    for part in parts:
        listed.update(_keyed(part))
        if time.monotonic() - told > pause:
            yield {**listed, **first}
            told, pause = time.monotonic(), pause * _LONGER
    gone = {key: _gone(key) for key in pinned if key not in listed and key not in first}
    yield {**listed, **{key: one for key, one in first.items() if key not in listed}, **gone}


def _keyed(part: list[ComponentSummary]) -> dict[str, ComponentSummary]:
    return {component_key(one.name): one for one in part}


def _found_elsewhere(pinned: Sequence[str], launches: Mapping[str, LaunchRecord]) -> dict[str, ComponentSummary]:
    """Return components of files and modules that may be in no folder that is listed."""
    found: dict[str, ComponentSummary] = {}
    recent = 0
    for key in (*pinned, *launches):
        if ":" not in key or key in found or (key not in pinned and recent >= MOST_RECENT):
            continue
        try:
            found[key] = listed_by_key(key)
        except ComponentNotFoundException:
            continue
        recent += key not in pinned
    return found


def _gone(key: str) -> ComponentSummary:
    error = "it is no more: unpin it, or bring it back"
    return ComponentSummary(name_here(key), "file" if ":" in key else "plugin", Path(), 0, error=error)
