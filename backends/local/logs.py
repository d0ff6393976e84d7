"""What must hold before a replica's log can be read, and how its reader learns that nothing more comes."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from ...logs.source.chunks import ChunkIndex, stream_lengths
from ...logs.source.log_file import LogFile
from ...logs.source.parting import copied_lengths
from ...logs.source.stream import Record
from ...specs import JobNotFoundError, SchedulerError
from ...specs.errors import join_names
from ..shared.stream_lines import LineAssembler
from ..types import Stream
from .record import Run

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
        found = self._file.stat()
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
        found = self._file.stat()
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
        if self._index.stat() is not None:
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


# How long to wait for more: short after something came, longer when it has been quiet for 2 s and for 30 s.
_WAITS = ((2.0, 0.02), (30.0, 0.05), (float("inf"), 0.2))
_LETTERS = {Stream.STDOUT: "o", Stream.STDERR: "e"}


class Outlook(Protocol):
    """What is to be known of the app that writes."""

    over: bool
    """Nothing is written any more."""

    supervised: bool
    """combined.log grows."""


class LocalLogIterator:
    """The lines of one replica.

    ``close`` from any thread ends the iteration, a blocked read too. ``iterator[50]`` goes to the line of that number,
    counted from 0 among those that qualify, and returns it; the next one follows it.

    Args:
        folder: the replica's folder.
        stream: which output.
        look: tells how the app is doing.
        regex: only lines in which this is found.
        since: only lines from this time on, in epoch seconds.
        until: only lines up to this time, in epoch seconds.
        should_tail: wait for more until nothing is written any more.
    """

    def __init__(
        self,
        folder: Path,
        stream: Stream,
        look: Callable[[], Outlook],
        *,
        regex: re.Pattern[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        should_tail: bool = False,
    ) -> None:
        self._folder = folder
        self._stream = stream
        self._look = look
        self._regex = regex
        self._since = since
        self._until = until
        self._should_tail = should_tail
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        letter = _LETTERS.get(self._stream)
        # Times are in the index of combined.log alone.
        timed = self._since is not None or self._until is not None
        self._letters = letter or "oec"
        self._combined = CombinedPieces(self._folder) if timed or letter is None else None
        self._files = [] if self._combined else [FilePieces(self._folder / f"{self._stream.value}.log", self._letters)]
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
        self._line_number = 0
        self._ended = False
        self._active_at = time.monotonic()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._lines:
            if self._ended or self._closed.is_set():
                self._release()
                raise StopIteration
            self._fill()
        self._line_number += 1
        return self._lines.popleft()

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError(f"line {number}: lines are counted from 0")
        if number < self._line_number:
            self._release()
            self._begin()
        for line in self:
            if self._line_number == number + 1:
                return line
        raise IndexError(f"line {number}: there are {self._line_number}")

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()

    def _fill(self) -> None:
        """Read once; wait, or end, when there was nothing to read."""
        outlook = self._look()  # before reading: what is over has nothing to add after that
        pieces = self._read(outlook)
        if pieces:
            self._active_at = time.monotonic()
            for piece in pieces:
                if piece.stream in self._letters:
                    self._take(self._assembler.add(piece))
        elif outlook.over or not self._should_tail or self._is_past_until():
            self._take(self._assembler.rest())
            self._ended = True
        else:
            quiet = time.monotonic() - self._active_at
            self._closed.wait(next(wait for limit, wait in _WAITS if quiet < limit))

    def _read(self, outlook: Outlook) -> list[Record]:
        if self._combined and not self._files:
            pieces = self._combined.read()
            if not pieces and (outlook.over or not outlook.supervised):
                self._files = self._combined.rest(self._folder)
            else:
                return pieces
        return [piece for file in self._files for piece in file.read()]

    def _take(self, lines: list[tuple[float | None, bytes]]) -> None:
        for at, data in lines:
            if self._since is not None and at is not None and at < self._since:
                continue
            if self._until is not None and at is not None and at > self._until:
                self._ended = True
                return
            line = data.decode("utf-8", "replace")
            if self._regex is None or self._regex.search(line):
                self._lines.append(line)

    def _is_past_until(self) -> bool:
        # A second of room: a line may be on its way into combined.log.
        return self._until is not None and time.time() > self._until + 1.0

    def _release(self) -> None:
        for source in (self._combined, *self._files):
            if source:
                source.close()


# The state file is read again after this long: sooner while the reader is new, as the job may be, and short.
_LOOK_SECONDS, _SOON_SECONDS = 0.1, 0.02
_NEW_SECONDS = 2.0


def check_log(run: Run, role_name: str, k: int, streams: Stream | str | None) -> Stream:
    """Return the stream to read.

    Raises:
        ValueError: there is no such stream, role or replica; the message lists the valid ones.
        SchedulerError: the log was removed.
    """
    try:
        stream = Stream.COMBINED if streams is None else Stream(streams)
    except ValueError:
        raise ValueError(f"there is no stream {streams}. Valid: {join_names(item.value for item in Stream)}") from None
    if not run.document:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: {run.reason}")
    if run.log_folder is None:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: its processes do not tell where TorchX keeps it")
    roles: dict[str, list[int]] = {}
    for entry in run.replicas:
        roles.setdefault(entry["role"], []).append(entry["id"])
    if role_name not in roles:
        raise ValueError(f"{run.app_id} has no role {role_name}. Its roles: {join_names(roles)}")
    if k not in roles[role_name]:
        last = len(roles[role_name]) - 1
        raise ValueError(f"{role_name} has no replica {k}. Valid: {f'0 to {last}' if last else '0'}")
    started = next(entry["pid"] for entry in run.replicas if (entry["role"], entry["id"]) == (role_name, k))
    folder = run.replica_folder(role_name, k)
    names = ("combined", "stdout") if stream == Stream.COMBINED else (stream.value,)
    if started and not any(LogFile(folder / f"{name}.log").stat() for name in names):
        raise SchedulerError(f"the log was removed: {folder / names[0]}.log")
    return stream


def log_outlook(find: Callable[[str], Run | None], app_id: str) -> Callable[[], Outlook]:
    """Return a function that tells how an app that ``find`` finds is doing, at most some time ago.

    It raises `JobNotFoundError` once the app is gone.
    """
    began = time.monotonic()
    looked_at = 0.0
    last: Run | None = None

    def look() -> Outlook:
        nonlocal looked_at, last
        now = time.monotonic()
        if last is None or now - looked_at > (_SOON_SECONDS if now - began < _NEW_SECONDS else _LOOK_SECONDS):
            last = find(app_id)
            looked_at = now
        if last is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return last

    return look
