"""The bytes of one replica's log as they grow: each run of bytes with its stream and time."""

from __future__ import annotations

from pathlib import Path

from ...specs import SchedulerError
from ..logs.chunks import ChunkIndex, stream_lengths
from ..logs.log_file import LogFile
from ..logs.parting import copied_lengths
from ..logs.stream import Record

_READ = 1 << 20
_STREAMS = (("stdout.log", "o"), ("stderr.log", "e"))


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

    def read(self) -> list[Record]:
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
        return [Record(data, found.written_at, self._stream)] if data else []

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
        self._is_whole = False
        self._seen = False

    def read(self) -> list[Record]:
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
            Record(data[low - start : high - start], chunk.time, chunk.stream)
            for low, high, chunk in self._chunks.newer(start, self._position)
        ]

    def rest(self, folder: Path) -> list[FilePieces]:
        """Return what a supervisor that was killed could not bring over from both streams any more."""
        if self._index.look() is not None:
            lengths = stream_lengths(self._index, self._position)
        elif self._is_whole:
            return []
        else:  # TorchX writes no index
            paths = {letter: folder / name for name, letter in _STREAMS}
            found = copied_lengths(self._file, paths, self._position) if self._position else {"o": 0, "e": 0}
            self._is_whole = found is None
            if found is None:
                return []
            lengths = found
        return [FilePieces(folder / name, letter, lengths[letter]) for name, letter in _STREAMS]

    def close(self) -> None:
        """Release both files."""
        self._file.close()
        self._index.close()
