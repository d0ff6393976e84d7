"""One entry of the table of differences from TorchX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["upstream fault", "addition", "generation"]


@dataclass(frozen=True)
class Difference:
    """One deliberate difference.

    Args:
        area: What was compared.
        name: What tells the difference from others of its area.
        theirs: What TorchX does.
        ours: What is done here.
        why: Why that is better.
        kind: `upstream fault`, where TorchX goes wrong; `addition`, where it refuses what has a meaning here;
            `generation`, where its releases differ among themselves.
    """

    area: str
    name: str
    theirs: str
    ours: str
    why: str
    kind: Kind
