"""Every name that the documentation of TorchX states: the parts of documented.toml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.tables import toml_table


@dataclass(frozen=True)
class Documented:
    """One name; documented.toml describes the fields."""

    name: str
    what: str = "not here"
    here: str = ""
    says: str = ""
    kind: str = ""
    why: str = ""
    adds: Sequence[str] = ()
    gives_default: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """One part of the documentation, and the generation of TorchX that it describes."""

    title: str
    generation: str
    names: list[Documented]


PARTS = [
    Part(part["title"], part["generation"], [Documented(**entry) for entry in part["names"]])
    for part in toml_table(Path(__file__).with_name("documented.toml"))["part"]
]
