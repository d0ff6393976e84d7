"""A replica's stream on disk: a current and a previous file, each with an index of times and streams."""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.files import is_missing, private_folder
from ..source.log_file import FileState, LogFile

if TYPE_CHECKING:
    from ..source.stream import Cursor, Record

HOLD_PARTIAL_LINE_S = 1.0
"""How long a line without its end is held (s), so that the other stream's lines do not split it."""
CAUGHT_UP_AFTER_S = 0.3
"""A stream that has been quiet for this long (s) has sent the lines that existed when it began."""
# Bytes share an index record, and so a time, within these limits: a row of the line index for each line would cost
# more than the line.
_RECORD_TIME_S = 0.1
_RECORD_BYTES = 512
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class SpoolWriteError(Exception):
    """A spool cannot be written; the message says what to do."""


class SpoolFile(LogFile):
    """A file that one thread appends to. Bytes whose writing failed are not part of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.size = 0
        self._written_at = time.time()

    def stat(self) -> FileState:
        return FileState(self.size, 1, self._written_at)

    def read(self, start: int, size: int) -> bytes:
        return super().read(start, min(size, self.size - start)) if start < self.size else b""

    def append(self, data: bytes) -> None:
        with self._lock:
            is_closed = self._descriptor < 0
            descriptor, at, rest = self._open(), self.size, memoryview(data)
            while rest:
                written = os.pwrite(descriptor, rest, at)
                rest, at = rest[written:], at + written
            self.size, self._written_at = at, time.time()
        if is_closed:
            self._end_read()

    def close(self) -> None:
        """Release the descriptor; the writer and other readers open the file again."""
        self.release()

    def remove(self) -> None:
        """Remove the file; later reads give nothing."""
        super().close()
        # A file that stays goes with the whole folder.
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _open(self) -> int:
        if self._descriptor < 0 and not self._closed:
            # It is created once: after a removal, the bytes before ``size`` would be zeros.
            create = 0 if self._inode else os.O_CREAT
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | create, 0o600)
            self._inode = os.fstat(self._descriptor).st_ino
        return self._descriptor


class SpoolPart:
    """One file of a spool and its index, which has the format of ``combined.index``; an unknown time is -1."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.data = SpoolFile(folder / f"{number}.log")
        self.index = SpoolFile(folder / f"{number}.index")
        self.lines = 0
        self.latest = -math.inf
        """The latest time of a line (seconds since the epoch)."""
        self.is_whole = True
        """Whether the last line has ended."""
        self._record: tuple[int, float | None, str] | None = None

    @property
    def size(self) -> int:
        return self.data.size + self.index.size

    def append(self, data: bytes, at: float | None, stream: str) -> None:
        if not self._shares_record(at, stream):
            # Written before its bytes, so that all readable bytes have a record.
            self.index.append(f"{self.data.size} {-1 if at is None else at:.6f} {stream}\n".encode())
            self._record = (self.data.size, at, stream)
        self.data.append(data)
        self.lines += data.count(b"\n")
        self.is_whole = data.endswith(b"\n")
        self.latest = max(self.latest, -math.inf if at is None else at)

    def _shares_record(self, at: float | None, stream: str) -> bool:
        if self._record is None or self._record[2] != stream:
            return False
        start, before, _ = self._record
        if at is None or before is None or at == before:
            return at == before
        return 0 <= at - before < _RECORD_TIME_S and self.data.size - start < _RECORD_BYTES


class Spool:
    """The last part of one replica's stream. One feed at a time adds to it; any thread reads it.

    Args:
        folder: the folder of its files.
        name: the replica as it is shown, such as ``trainer/3``.
        file_bytes: returns the size at which the current file becomes the previous one.
        limit: the limit behind that size, as a clause of a notice.
    """

    def __init__(self, folder: Path, name: str, file_bytes: Callable[[], int], limit: str) -> None:
        self.folder = folder
        self.name = name
        self.parts: tuple[SpoolPart, ...] = ()
        """The previous and the current file; fewer in the beginning."""
        self.first = 0
        """The number of the oldest part, or of the next one where there is none."""
        self.dropped_lines = 0
        self.dropped_until = -math.inf
        """The latest time of a dropped line (seconds since the epoch)."""
        self.why_dropped = ""
        self.ended = False
        """Whether nothing more comes: the log is complete, or `trouble` says why not."""
        self.trouble = ""
        """Why nothing is added now, as a sentence; it is the last notice too."""
        self.notices: list[str] = []
        self._file_bytes = file_bytes
        self._limit = limit
        self._lock = threading.Lock()
        self._cursor: Cursor | None = None
        self._held: dict[str, tuple[float | None, bytes, float]] = {}
        self._writer: object = None
        self._began_at, self._writing_at = math.inf, math.inf
        self._latest = -math.inf

    @property
    def size(self) -> int:
        """The bytes on the disk."""
        return sum(part.size for part in self.parts)

    @property
    def is_complete(self) -> bool:
        """Whether a retry is pointless: a log that ended in trouble is tried again."""
        return self.ended and not self.trouble

    @property
    def caught_up(self) -> bool:
        """Whether the lines that existed when the stream began have probably arrived."""
        return self.has_all_until(self._began_at - 1, CAUGHT_UP_AFTER_S)

    def has_all_until(self, when: float, quiet: float) -> bool:
        """Tell whether all lines until a time (seconds since the epoch) have probably arrived, or never will.

        Args:
            when: the time.
            quiet: a stream that has been quiet for this long (s) has no more of them.
        """
        if self.ended or self.trouble or self._latest >= when:
            return True
        return time.monotonic() - self._writing_at > quiet

    def begin(self, writer: object) -> None:
        """Refuse records of other writers from now on. It does not wait for a slow disk."""
        self._writer = writer
        self._began_at, self._writing_at = time.time(), time.monotonic()
        self.ended, self.trouble = False, ""

    def drop_removed(self) -> None:
        """Drop the files if somebody removed them, so that readers and writer begin anew."""
        with self._lock:
            if self.parts and is_missing(self.parts[-1].data.path):
                while self.parts:
                    self._drop(f"{os.fspath(self.folder)} was removed")

    @property
    def cursor(self) -> Cursor | None:
        """Where the stream is resumed."""
        # A record of the writer before may be on its way to the disk.
        with self._lock:
            return self._cursor

    def take(self, record: Record, cursor: Cursor | None, writer: object) -> None:
        """Add a record of the current writer; hold a line without its end.

        Raises:
            SpoolWriteError: the disk is full, or the folder cannot be written.
        """
        with self._lock:
            if writer is not self._writer:
                return
            now = time.monotonic()
            at, rest, since = self._held.get(record.stream, (record.time, b"", now))
            data = rest + record.data if rest else record.data
            whole = data.rfind(b"\n") + 1
            if whole:
                self._append(data[:whole], at, record.stream)
                at, since = record.time, now
            if whole < len(data):
                self._held[record.stream] = (at, data[whole:], since)
            else:
                self._held.pop(record.stream, None)
            self._cursor = cursor
            self._writing_at = now
            if record.time is not None:
                self._latest = max(self._latest, record.time)

    def flush(self, older_than: float = 0.0, *, wait: bool = True) -> None:
        """Add the lines that have been held for a time.

        Args:
            older_than: the time in seconds.
            wait: wait for a record that is being written; else do nothing.

        Raises:
            SpoolWriteError: the disk is full, or the folder cannot be written.
        """
        if not self._lock.acquire(blocking=wait):
            return
        try:
            for stream, (at, data, since) in tuple(self._held.items()):
                if time.monotonic() - since >= older_than:
                    self._append(data, at, stream)
                    del self._held[stream]
        finally:
            self._lock.release()

    def drop_oldest(self, part: SpoolPart, why: str) -> None:
        """Remove a file if it is still the oldest: the writer may have removed it meanwhile."""
        with self._lock:
            if self.parts[:1] == (part,):
                self._drop(why)

    def report(self, sentence: str, *, lasts: bool) -> None:
        """Add a notice to show among the lines; one that lasts is shown to later readers too."""
        self.trouble = sentence if lasts else ""
        self.notices.append(sentence)

    def _append(self, data: bytes, at: float | None, stream: str) -> None:
        try:
            if not self.parts or self._is_full(len(data)):
                self._rotate()
            self.parts[-1].append(data, at, stream)
        except OSError as error:
            raise SpoolWriteError(self._describe(error)) from error

    def _is_full(self, more: int) -> bool:
        current, limit = self.parts[-1], self._file_bytes()
        # A line without an end is split eventually: it may be a progress bar that never ends.
        return 0 < current.size > (limit if current.is_whole else 2 * limit) - more

    def _rotate(self) -> None:
        """Drop the previous file; the current one becomes the previous one."""
        private_folder(self.folder)
        if len(self.parts) > 1:
            self._drop(self._limit)
        self.parts = (*self.parts, SpoolPart(self.folder, self.first + len(self.parts)))

    def _drop(self, why: str) -> None:
        part, *rest = self.parts
        self.dropped_lines += part.lines
        self.dropped_until = max(self.dropped_until, part.latest)
        self.why_dropped = why
        self.first, self.parts = part.number + 1, tuple(rest)
        part.data.remove()
        part.index.remove()

    def _describe(self, error: OSError) -> str:
        root = os.fspath(self.folder.parent.parent)
        fault, remedy = f"{root} cannot be written ({error.strerror})", "Make it writable"
        if error.errno in _DISK_FULL:
            fault, remedy = f"The disk of {root} is full", "Free some space"
        return f"{fault}: the rest of the log is not read. {remedy}, then open the log again."
