"""The bytes of one replica's log as they grow: each run of bytes with its stream and time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...specs import SchedulerError
from ..logs.chunks import ChunkIndex, stream_lengths
from ..logs.log_file import LogFile

_READ = 1 << 20


class Piece(NamedTuple):
    """Bytes of one stream (``o``, ``e``, or ``c`` where that is not known) and when they came, in epoch seconds."""

    stream: str
    time: float | None
    data: bytes


class FilePieces:
    """The pieces of one growing file.

    Args:
        path: the file; it may appear later.
        stream: the stream's letter.
        start: the first byte that is wanted.
    """

    def __init__(self, path: Path, stream: str, start: int = 0) -> None:
        self._file = LogFile(path)
        self._stream = stream
        self._position = start
        self._seen = False

    def read(self) -> list[Piece]:
        """Return what came since the last call, at most 1 MiB.

        Raises:
            SchedulerError: the file was there and is gone.
        """
        found = self._file.look()
        if found is None:
            if self._seen:
                raise SchedulerError(f"the log was removed: {self._file.path}")
            return []
        self._seen = True
        if found.size < self._position:
            self._position = 0  # someone truncated it
        data = self._file.read(self._position, _READ)
        self._position += len(data)
        return [Piece(self._stream, found.written_at, data)] if data else []

    def close(self) -> None:
        """Release the file."""
        self._file.close()


class CombinedPieces:
    """The pieces of combined.log by its index.

    Args:
        folder: the replica's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = LogFile(folder / "combined.log")
        self._index = LogFile(folder / "combined.index")
        self._chunks = ChunkIndex(self._index)
        self._position = 0
        self._seen = False

    def read(self) -> list[Piece]:
        """Return what came since the last call, at most 1 MiB.

        Raises:
            SchedulerError: the file was there and is gone.
        """
        found = self._file.look()
        if found is None:
            if self._seen:
                raise SchedulerError(f"the log was removed: {self._file.path}")
            return []
        self._seen = True
        size = min(found.size, self._position + _READ)
        data = self._file.read(self._position, size - self._position)
        start, self._position = self._position, self._position + len(data)
        return [
            Piece(chunk.stream, chunk.time, data[low - start : high - start])
            for low, high, chunk in self._chunks.newer(start, self._position)
        ]

    def rest(self, folder: Path) -> list[FilePieces]:
        """Return what a supervisor that was killed could not bring over from both streams any more."""
        index = LogFile(folder / "combined.index")
        lengths = stream_lengths(index, self._position)
        index.close()
        return [
            FilePieces(folder / name, letter, lengths[letter])
            for name, letter in (("stdout.log", "o"), ("stderr.log", "e"))
        ]

    def close(self) -> None:
        """Release both files."""
        self._file.close()
        self._index.close()


@dataclass
class LineAssembler:
    """Makes whole lines of the pieces of both streams, however they were cut."""

    _parts: dict[str, list[bytes]] = field(default_factory=dict)
    _began: dict[str, float | None] = field(default_factory=dict)

    def add(self, piece: Piece) -> list[tuple[float | None, bytes]]:
        """Return the lines that end in a piece, each with the time of its first byte."""
        lines = []
        start = 0
        while start < len(piece.data):
            parts = self._parts.setdefault(piece.stream, [])
            if not parts:
                self._began[piece.stream] = piece.time
            end = piece.data.find(b"\n", start) + 1
            parts.append(piece.data[start : end or None])
            if end == 0:
                break
            lines.append((self._began[piece.stream], b"".join(parts)))
            parts.clear()
            start = end
        return lines

    def rest(self) -> list[tuple[float | None, bytes]]:
        """Return the last lines, which have no end."""
        rest = [(self._began[stream], b"".join(parts)) for stream, parts in self._parts.items() if parts]
        self._parts.clear()
        return rest
