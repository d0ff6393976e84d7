"""The components of the picker: builtins at once, files as they are read; pinned and recent ones first."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import describe_error
from ...base.trust import UntrustedError, trust_folder
from ...components.build import check_trusted
from ...components.finder import (
    component_key,
    each_listed,
    find,
    is_script_name,
    listed_by_key,
    name_here,
    read_component,
)
from ...components.model import ComponentSummary
from ...specs.errors import ComponentNotFoundException

if TYPE_CHECKING:
    from ...backends.history.journal import Journal, LaunchRecord
    from ...components.model import ComponentDoc, ComponentKind
    from ...specs.status import AppState

MOST_RECENT = 5
"""Components under the heading of recent launches."""

# Launches of one component that are read; each is a file.
_MOST_LAUNCHES = 1000


@dataclass(frozen=True)
class LastLaunch:
    """The last launch of a component.

    Attributes:
        at: seconds since the epoch.
        state: its last known state.
    """

    at: float
    state: AppState | None


@dataclass(frozen=True)
class Section:
    """Components under a heading: the title, and the keys of `component_key`."""

    title: str
    keys: tuple[str, ...]


def arranged(listed: Mapping[str, ComponentSummary], pinned: Sequence[str], recent: Sequence[str]) -> list[Section]:
    """Arrange all components in sections, each once.

    Args:
        listed: the components, in the order of their kinds.
        pinned: keys of the first section; unknown ones are ignored.
        recent: keys of launched components, the latest first.
    """
    first = tuple(key for key in dict.fromkeys(pinned) if key in listed)
    late = tuple(key for key in recent if key in listed and key not in first)[:MOST_RECENT]
    rest = tuple(key for key in listed if key not in first and key not in late)
    sections = [Section("Pinned", first), Section("Launched recently", late)]
    sections = [section for section in sections if section.keys]
    return [*sections, Section("Components" if sections else "", rest)]


def newest_launches(journal: Journal, patience: float = math.inf) -> dict[str, LaunchRecord]:
    """Return the newest launch of each component, the latest first.

    Args:
        journal: where launches are recorded.
        patience: seconds after which the rest is left out.
    """
    seen: set[tuple[str, str]] = set()

    def is_new(component: str, cwd: str) -> bool:
        # A key is expensive, and a journal may have thousands of launches of one component.
        known = (component, cwd) in seen
        seen.add((component, cwd))
        return not known

    found: dict[str, LaunchRecord] = {}
    for record in journal.launches(is_new, patience=patience):
        found.setdefault(component_key(record.component, record.cwd), record)
    return found


def find_named(name: str) -> tuple[str, ComponentSummary]:
    """Find a component that is named in full; return its key, and the component with an error if there is none."""
    try:
        key = component_key(name)
        found = listed_by_key(key)
        # As it is listed, unless it is of another folder. A name that begins with a dash is no argument.
        return key, replace(found, name=min(name, found.name, key=lambda one: (one.startswith("-"), len(one))))
    except Exception as failure:  # a path can be typed in any way
        kind: ComponentKind = "script" if is_script_name(name) else "file"
        return name, ComponentSummary(name, kind, Path(), 0, error=describe_error(failure))


def launches_of(key: str, journal: Journal, patience: float = math.inf) -> list[LaunchRecord]:
    """Return the latest launches of a component, newest first.

    Args:
        key: the component, as `component_key` calls it.
        journal: where launches are recorded.
        patience: see `newest_launches`.
    """
    ending = Path(key).name if is_script_name(key) else key.rpartition(":")[2]
    known: dict[tuple[str, str], bool] = {}

    def is_wanted(component: str, cwd: str) -> bool:
        if not component.endswith(ending):
            return False
        if (component, cwd) not in known:
            known[component, cwd] = component_key(component, cwd) == key
        return known[component, cwd]

    return journal.launches(is_wanted, _MOST_LAUNCHES, patience)


@dataclass(frozen=True)
class Described:
    """A component as it was read.

    Attributes:
        component: the component.
        doc: its documentation; None if it cannot be read.
        launches: its launches, newest first.
        error: why it cannot be launched; empty if it can.
        untrusted: set if its file belongs to another user: its folder has to be trusted before it runs.
    """

    component: ComponentSummary
    doc: ComponentDoc | None
    launches: list[LaunchRecord]
    error: str = ""
    untrusted: UntrustedError | None = None

    @property
    def last(self) -> LaunchRecord | None:
        """The newest launch from a form that the backend accepted: the form is filled with its values.

        Launches of a sweep are not: each has one value of a list, and the form keeps what it had before. Neither are
        those of the shell.
        """
        return next((one for one in self.launches if not (one.group or one.in_shell or one.error)), None)


def describe_component(
    component: ComponentSummary, journal: Journal, patience: float, trusted: Path | None
) -> Described:
    """Read a component and its launches without running it.

    Args:
        component: the component.
        journal: where launches are recorded.
        patience: see `newest_launches`.
        trusted: a folder to trust before.
    """
    launches = launches_of(component_key(component.name), journal, patience)
    try:
        if trusted is not None:
            trust_folder(trusted)
        doc = read_component(component.name)
        fault = next((finding for finding in doc.findings if finding.severity == "error"), None)
        untrusted = None if fault or is_script_name(doc.name) else _untrusted(doc.name)
    except Exception as failure:
        # The list has shorter words for what it found.
        error = component.error or describe_error(failure)
        return Described(replace(component, error=error), None, launches, error)
    error = f"{doc.path}:{fault.line}: {fault.description}" if fault else ""
    return Described(component, doc, launches, error, untrusted)


def _untrusted(name: str) -> UntrustedError | None:
    try:
        check_trusted(find(name))
    except UntrustedError as error:
        return error
    return None


# Seconds between two lists while many files are read; each pause is longer than the one before.
_PAUSE = 0.15
_LONGER = 1.5


def component_folders(chosen: Sequence[str]) -> list[Path]:
    """Return the folders with component files: the current one, and those of the settings."""
    return [Path(), *(Path(name).expanduser() for name in chosen)]


def growing_list(
    folders: Sequence[Path], pinned: Sequence[str], launches: Mapping[str, LaunchRecord]
) -> Iterator[dict[str, ComponentSummary]]:
    """Yield growing lists of components by their keys, the last one complete.

    Pinned and recently launched components are included from any folder; a pinned one that is gone has an error.

    Args:
        folders: the folders with component files.
        pinned: keys of components.
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
    yield {**listed, **{key: component for key, component in first.items() if key not in listed}, **gone}


def _keyed(part: list[ComponentSummary]) -> dict[str, ComponentSummary]:
    return {component_key(component.name): component for component in part}


def _found_elsewhere(pinned: Sequence[str], launches: Mapping[str, LaunchRecord]) -> dict[str, ComponentSummary]:
    """Find pinned and recent components of files and modules, and scripts, in any folder."""
    found: dict[str, ComponentSummary] = {}
    recent = 0
    for key in (*pinned, *launches):
        if not _has_file(key) or key in found or (key not in pinned and recent >= MOST_RECENT):
            continue
        try:
            found[key] = listed_by_key(key)
        except ComponentNotFoundException:
            continue
        recent += key not in pinned
    return found


def _gone(key: str) -> ComponentSummary:
    error = "it no longer exists: unpin it, or restore it"
    kind: ComponentKind = "script" if is_script_name(key) else "file" if ":" in key else "plugin"
    return ComponentSummary(name_here(key), kind, Path(), 0, error=error)


def _has_file(key: str) -> bool:
    return ":" in key or is_script_name(key)
