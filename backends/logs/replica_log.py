"""Where the log of one replica is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReplicaLog:
    """The files that hold what one replica printed.

    ``combined`` is the stream of both, with ``combined.index`` beside it where the supervisor wrote one; ``stdout`` and
    ``stderr`` are read where there is no combined file, where one of them alone is asked for, and for what the
    supervisor could not add to the combined file any more. Files may appear later.

    Attributes:
        role: the role's name.
        replica: the replica's number in its role.
    """

    role: str
    replica: int
    combined: Path | None = None
    stdout: Path | None = None
    stderr: Path | None = None

    @property
    def index(self) -> Path | None:
        """The path of ``combined.index``: which bytes of the combined file came when, from which stream."""
        return None if self.combined is None else self.combined.with_suffix(".index")
