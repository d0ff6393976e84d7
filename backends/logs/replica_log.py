"""Where the log of one replica is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .spools import SpooledLog


@dataclass(frozen=True)
class ReplicaLog:
    """The files that hold what one replica printed.

    ``combined`` is the stream of both, with ``combined.index`` beside it where the supervisor wrote one; ``stdout`` and
    ``stderr`` are read where there is no combined file, where one of them alone is asked for, and for what the
    supervisor could not add to the combined file any more. Files may appear later. Where there are no such files, the
    scheduler is asked, and what it says is kept in a spool.

    Attributes:
        role: the role's name.
        replica: the replica's number in its role.
        spool: where the log is kept that is no file on this machine.
    """

    role: str
    replica: int
    combined: Path | None = None
    stdout: Path | None = None
    stderr: Path | None = None
    spool: SpooledLog | None = field(default=None, compare=False, repr=False)

    @property
    def has_streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        return self.stdout is not None or self.stderr is not None or (self.spool is not None and self.spool.streams)

    @property
    def index(self) -> Path | None:
        """The path of ``combined.index``: which bytes of the combined file came when, from which stream."""
        return None if self.combined is None else self.combined.with_suffix(".index")
