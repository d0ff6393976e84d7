"""What a launch was made from, kept for the history and for launching it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What stands before an argument's name among what config gave; run options have no dots in their names.
ARGUMENT_PREFIX = "component."


@dataclass(frozen=True)
class LaunchOrigin:
    """What a launch was made from.

    Attributes:
        component: the component's name, empty where the AppDef came from elsewhere.
        arguments: its arguments as text, by parameter; those at their defaults are left out.
        overrides: what was changed in the AppDef's roles, as text, by role and field; see `components.override_roles`.
        relaunch_of: the journal id of the launch that this one repeats.
        group: what several launches of one sweep share, empty for a launch of its own.
        config: what config gave to it, as text: ``scheduler``, run options, and arguments as ``component.NAME``.
    """

    component: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    relaunch_of: str = ""
    group: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
