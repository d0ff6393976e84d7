"""The files of a spool: one thread appends bytes, any thread reads those that are written."""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from ...base.files import is_missing
from ..source.log_file import FileState
from ..source.open_files import OPEN_FILES

# Bytes share an index record, and so a time, if they arrive within so many seconds and are at most so many: a row of
# the line index for each line would cost more than the line.
_RECORD_TIME_S = 0.1
_RECORD_SIZE = 512


class SpoolFile:
    """One file that grows at its end. Bytes whose writing failed are not part of it.

    Args:
        path: where it is created; an existing file is removed.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """The bytes that can be read."""
        self._written_at = time.time()
        self._lock = threading.Lock()
        self._descriptor = _make(path)
        self._finished = False

    def stat(self) -> FileState:
        """Return the file's state without asking the disk."""
        return FileState(self.size, 1, self._written_at)

    def opened_size(self) -> int:
        """Return the bytes that can be read."""
        return self.size

    def stored_end(self, start: int, end: int) -> int:
        """Return ``end``: a spool has no holes."""
        del start
        return end

    def append(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            OSError: they could not be written, and none of them is part of the file.
        """
        at = self.size
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, at)
            view, at = view[written:], at + written
        self.size = at
        self._written_at = time.time()

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes ``start`` to ``start + size``; none if the file is gone."""
        size = min(size, self.size - start)
        if size <= 0:
            return b""
        with self._lock:
            if self._descriptor >= 0:
                return _read(self._descriptor, start, size)
            try:
                descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return b""
            self._descriptor = descriptor
            data = _read(descriptor, start, size)
        OPEN_FILES.add(self)
        return data

    def is_removed(self) -> bool:
        """Tell whether somebody has removed an unfinished file; False of a finished one."""
        return not self._finished and os.fstat(self._descriptor).st_nlink == 0

    def restore(self) -> None:
        """Write the file anew where it was removed.

        Raises:
            OSError: it cannot be written there.
        """
        descriptor = _make(self.path)
        try:
            at = 0
            while at < self.size and (data := _read(self._descriptor, at, min(1 << 20, self.size - at))):
                at += os.pwrite(descriptor, data, at)
        except OSError:
            os.close(descriptor)
            self.path.unlink(missing_ok=True)
            raise
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = descriptor

    def finish(self) -> None:
        """Close the file for appending."""
        with self._lock:
            if not self._finished:
                self._finished = True
                os.close(self._descriptor)
                self._descriptor = -1

    def release(self) -> None:
        """Close a finished file until it is read again."""
        with self._lock:
            if self._finished and self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def close(self) -> None:
        """Close a finished file and stop counting it; it can be read again."""
        self.release()
        OPEN_FILES.discard(self)


class SpoolSegment:
    """A part of a spool: a file of bytes, and an index of when they arrived and from which stream.

    The index has the format of ``combined.index``; an unknown time is written as -1.

    Args:
        folder: the folder of the replica's spool.
        number: the segment's number in it, from 0.

    Raises:
        OSError: the files cannot be created.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.dropped = False
        """Whether its files are removed, or being removed."""
        self.finished = False
        """Whether nothing is appended to it any more."""
        self.lines = 0
        """How many lines end in it."""
        self.latest = -math.inf
        """The latest time in it (seconds since the epoch)."""
        self.is_whole = True
        """Whether its last line has ended."""
        self._last: tuple[float | None, str] | None = None
        self._last_start = 0
        self.index = SpoolFile(folder / f"{number:08}.index")
        try:
            self.data = SpoolFile(folder / f"{number:08}.log")
        except OSError:
            self.index.finish()
            self.index.path.unlink(missing_ok=True)
            raise

    @property
    def size(self) -> int:
        """The bytes that it takes on the disk."""
        return self.data.size + self.index.size

    def append(self, data: bytes, at: float | None, stream: str) -> None:
        """Add bytes of one stream.

        Raises:
            OSError: they could not be written, and none of them is part of the segment.
        """
        if not self._shares_record(at, stream):
            # Written before its bytes, so that all readable bytes have a record.
            self.index.append(f"{self.data.size} {-1 if at is None else at:.6f} {stream}\n".encode())
            self._last, self._last_start = (at, stream), self.data.size
        self.data.append(data)
        self.lines += data.count(b"\n")
        self.is_whole = data.endswith(b"\n")
        if at is not None:
            self.latest = max(self.latest, at)

    def finish(self) -> None:
        """Close it for appending."""
        self.data.finish()
        self.index.finish()
        self.finished = True

    def restore(self) -> None:
        """Write the files anew that somebody removed.

        Raises:
            OSError: they cannot be written there.
        """
        for file in (self.index, self.data):
            if file.is_removed():
                file.restore()

    @property
    def is_removed(self) -> bool:
        """Whether somebody has removed a file of it."""
        if self.finished:
            return is_missing(self.data.path)
        return self.data.is_removed() or self.index.is_removed()

    def release(self) -> None:
        """Close the files until they are read again."""
        self.data.close()
        self.index.close()

    def drop(self) -> None:
        """Remove the files."""
        self.dropped = True
        if not self.finished:
            self.finish()
        for file in (self.data, self.index):
            file.close()
            # If the disk fails, the file is left until the whole folder is removed.
            with suppress(OSError):
                file.path.unlink(missing_ok=True)

    def _shares_record(self, at: float | None, stream: str) -> bool:
        if self._last is None or self._last[1] != stream:
            return False
        before = self._last[0]
        if at is None or before is None or at == before:
            return at == before
        return 0 <= at - before < _RECORD_TIME_S and self.data.size - self._last_start < _RECORD_SIZE


def _make(path: Path) -> int:
    # A failed attempt may have left a file.
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _read(descriptor: int, start: int, size: int) -> bytes:
    try:
        data = os.pread(descriptor, size, start)
        while data and len(data) < size and (more := os.pread(descriptor, size - len(data), start + len(data))):
            data += more
    except OSError:
        return b""
    return data
