"""Command lines of the builtin components: the usual ones, and others made at random from builtin_calls.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from support.tables import toml_table

_FILE = toml_table(Path(__file__).with_name("builtin_calls.toml"))
COMPONENTS: dict[str, Any] = _FILE["components"]


def _values(name: str, argument: str) -> list[str]:
    return {**_FILE["values"], **COMPONENTS[name].get("values", {})}[argument]


def usual_call(name: str) -> list[str]:
    """Return the command line with only what a component needs."""
    return [f"--{one}={_values(name, one)[0]}" for one in COMPONENTS[name].get("needs", [])]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a component and a command line: what it needs nearly always, a few others, and the rest."""
    name = draw(st.sampled_from(sorted(COMPONENTS)))
    needs, others = COMPONENTS[name].get("needs", []), COMPONENTS[name]["others"]
    chosen = draw(st.lists(st.sampled_from([*needs, *others]), max_size=4, unique=True))
    needed = [one for one in needs if one not in chosen and draw(st.integers(0, 9))]
    argv = [f"--{one}={draw(st.sampled_from(_values(name, one)))}" for one in [*needed, *chosen]]
    return name, argv + (draw(st.sampled_from(_FILE["rests"])) if "rest" in COMPONENTS[name] else [])
