"""The order of the components in the picker: pinned, then launched lately, then the others by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..components import component_key

if TYPE_CHECKING:
    from ..backends.journal import LaunchRecord
    from ..components import ComponentSummary
    from ..specs import AppState

MOST_RECENT = 5
"""How many components that were launched lately come first."""


@dataclass(frozen=True)
class LastLaunch:
    """The last launch of a component.

    Attributes:
        at: when, in seconds since the epoch.
        state: how it ended, or how it does; None where nobody knows.
    """

    at: float
    state: AppState | None


@dataclass(frozen=True)
class Section:
    """Components under a heading.

    Attributes:
        title: the heading, empty for none.
        keys: the components, as `component_key` calls them.
    """

    title: str
    keys: tuple[str, ...]


def arranged(listed: Mapping[str, ComponentSummary], pinned: Sequence[str], recent: Sequence[str]) -> list[Section]:
    """Return all components, each once.

    Args:
        listed: the components, in the order of their kinds.
        pinned: those to have first; of what is not listed nothing is said.
        recent: those that were launched, the latest first.
    """
    first = tuple(key for key in dict.fromkeys(pinned) if key in listed)
    late = tuple(key for key in recent if key in listed and key not in first)[:MOST_RECENT]
    rest = tuple(key for key in listed if key not in first and key not in late)
    sections = [Section("Pinned", first), Section("Launched lately", late)]
    sections = [section for section in sections if section.keys]
    return [*sections, Section("Components" if sections else "", rest)]


def newest_launches(records: Iterable[LaunchRecord]) -> dict[str, LaunchRecord]:
    """Return the newest launch of each component, the latest first.

    Args:
        records: the journal's, newest first.
    """
    seen: set[tuple[str, str]] = set()
    found: dict[str, LaunchRecord] = {}
    for record in records:
        # A key costs more than the thousands of launches of the same name in the same folder should.
        if record.component and (record.component, record.cwd) not in seen:
            seen.add((record.component, record.cwd))
            found.setdefault(component_key(record.component, record.cwd), record)
    return found


def launches_of(key: str, records: Iterable[LaunchRecord]) -> list[LaunchRecord]:
    """Return the launches of a component, in the order of the records.

    Args:
        key: the component, as `component_key` calls it.
        records: the journal's.
    """
    function = key.rpartition(":")[2]
    return [
        record
        for record in records
        if record.component.endswith(function) and component_key(record.component, record.cwd) == key
    ]
