"""Where torchx-tui deliberately does something else than TorchX: the entries of differences.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.tables import toml_table


@dataclass(frozen=True)
class Difference:
    """One entry; differences.toml describes the fields."""

    area: str
    name: str
    theirs: str
    ours: str
    why: str
    kind: str
    example: str = ""
    gives: tuple[str, ...] = ()


DIFFERENCES = [
    Difference(area["name"], **entry)
    for area in toml_table(Path(__file__).with_name("differences.toml"))["area"]
    for entry in area["differences"]
]
