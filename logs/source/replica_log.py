"""Where the log of one replica is kept, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from .log_file import Readable
from .segment import Segment

StreamName = Literal["combined", "stdout", "stderr"]
LETTERS: dict[StreamName, str] = {"combined": "oec", "stdout": "o", "stderr": "e"}


class Polled(NamedTuple):
    """What one poll found.

    Attributes:
        fresh: new segments.
        grown: segments whose last line went on.
        more: whether there is more to read at once.
        dropped: the numbers of files that are gone, with what was in them.
        skipped: whether lines went that nobody had read.
        why_dropped: why files went, in words.
        notes: what is to be said among the lines.
    """

    fresh: list[Segment]
    grown: list[Segment]
    more: bool
    dropped: tuple[int, ...] = ()
    skipped: bool = False
    why_dropped: str = ""
    notes: tuple[str, ...] = ()


class LogReader(Protocol):
    """Reads one replica's log as segments: what was there, and what comes."""

    log: ReplicaLog

    def connect(self) -> None:
        """Begin to read, so that what was there can come before `open`."""

    @property
    def caught_up(self) -> bool:
        """Whether the lines that were there at the beginning have probably come."""
        ...

    def open(self) -> list[Iterator[Segment]]:
        """Start at the end; return what is before it, the latest segments first, a file each."""
        ...

    def poll(self) -> Polled:
        """Read what came since."""
        ...

    @property
    def settled(self) -> bool:
        """Whether all of the log is there and read."""
        ...

    def close(self) -> None:
        """Read no more."""


class Streamed(Protocol):
    """A log that is no file on this machine: it is read from its scheduler, and kept."""

    @property
    def streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        ...

    def reader(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], Segment],
    ) -> LogReader:
        """Return a reader of the log.

        Args:
            log: the replica's log, whose spool this is.
            stream: which stream is wanted.
            register: takes a file and gives its number.
            say: makes a segment of a sentence of ours.
        """
        ...


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
    spool: Streamed | None = field(default=None, compare=False, repr=False)

    @property
    def has_streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        return self.stdout is not None or self.stderr is not None or (self.spool is not None and self.spool.streams)

    @property
    def index(self) -> Path | None:
        """The path of ``combined.index``: which bytes of the combined file came when, from which stream."""
        return None if self.combined is None else self.combined.with_suffix(".index")
