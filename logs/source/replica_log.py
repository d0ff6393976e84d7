"""Where the log of one replica is stored, and the interface of its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from .log_file import GrowingFile, Readable
from .segment import LogSegment

StreamName = Literal["combined", "stdout", "stderr"]
LETTERS: dict[StreamName, str] = {"combined": "oec", "stdout": "o", "stderr": "e"}


class PollResult(NamedTuple):
    """The result of one poll.

    Attributes:
        fresh: new segments.
        grown: segments whose last line grew.
        more: whether there is more to read at once.
        dropped: the numbers of files that were dropped.
        skipped: whether lines were dropped before they were read.
        why_dropped: the reason why files were dropped.
        notes: notices to add among the lines.
    """

    fresh: list[LogSegment]
    grown: list[LogSegment]
    more: bool
    dropped: tuple[int, ...] = ()
    skipped: bool = False
    why_dropped: str = ""
    notes: tuple[str, ...] = ()


class LogReader(Protocol):
    """Reads one replica's log as segments: those that exist, then those that arrive."""

    log: ReplicaLog

    def connect(self) -> None:
        """Begin to read a stream, so that existing lines can arrive before `open`."""

    @property
    def caught_up(self) -> bool:
        """Whether the lines that existed at the beginning have probably arrived."""
        ...

    def open(self) -> list[Iterator[LogSegment]]:
        """Start at the end; return the segments before it, the latest first, one iterator a file."""
        ...

    def poll(self) -> PollResult:
        """Read what was added since."""
        ...

    @property
    def fully_read(self) -> bool:
        """Whether all of the log has arrived and is read."""
        ...

    def close(self) -> None:
        """Stop reading."""


class RemoteLog(Protocol):
    """A log that is streamed from its scheduler into a spool."""

    @property
    def streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        ...

    def reader(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Readable], int],
        say: Callable[[str], LogSegment],
    ) -> LogReader:
        """Return a reader of the log.

        Args:
            log: the replica's log, whose spool this is.
            stream: which stream is wanted.
            register: takes a file and returns its number.
            say: adds a notice and returns its segment.
        """
        ...

    def newest(self) -> GrowingFile | None:
        """Return the newest file of the spool; None if the stream has no reader. Does not open the stream."""
        ...


@dataclass(frozen=True)
class ReplicaLog:
    """The files with the output of one replica.

    ``combined`` has both streams, with ``combined.index`` beside it where the supervisor wrote one. ``stdout`` and
    ``stderr`` are read where there is no combined file, where one of them alone is wanted, and for what the supervisor
    could no longer add to the combined file. Files may appear later. Where there are no such files, the log is streamed
    from the scheduler into a spool.

    Attributes:
        role: the role's name.
        replica: the replica's number in its role.
        spool: the spooled log, if it is not a file on this machine.
    """

    role: str
    replica: int
    combined: Path | None = None
    stdout: Path | None = None
    stderr: Path | None = None
    spool: RemoteLog | None = field(default=None, compare=False, repr=False)

    @property
    def has_streams(self) -> bool:
        """Whether stdout and stderr can be told apart."""
        return self.stdout is not None or self.stderr is not None or (self.spool is not None and self.spool.streams)

    @property
    def index(self) -> Path | None:
        """The path of ``combined.index``: when the bytes of the combined file were written, and to which stream."""
        return None if self.combined is None else self.combined.with_suffix(".index")
