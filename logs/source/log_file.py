"""A log file read by position, by several threads, without ever blocking on what is no file."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import NamedTuple, Protocol

from ...specs.files import open_file

# Runs of stored bytes of one file that are looked at for where the last one ends.
_MOST_EXTENTS = 100_000


class FileState(NamedTuple):
    """What a look at a file's entry tells: its size in bytes, its inode and when it was last written (epoch s)."""

    size: int
    inode: int
    written_at: float


class Readable(Protocol):
    """What lines are cut from."""

    def read(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``start``."""
        ...


class GrowingFile(Readable, Protocol):
    """What lines are followed in."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    def look(self) -> FileState | None:
        """Return its state now, None if there is none."""
        ...

    def opened_size(self) -> int:
        """Return the bytes of what is read from, wherever that is by now; 0 if nothing is open."""
        ...

    def stored_end(self, start: int, end: int) -> int:
        """Return where the last bytes between two offsets end that are stored: behind them is a hole, which reads as
        zeros; ``start`` where all is a hole."""
        ...

    def close(self) -> None:
        """Release the descriptor."""
        ...


class LogFile:
    """One file of a log; it may be missing, grow, be cut short or be replaced while it is read.

    Args:
        path: the file.
        keep_open: hold the descriptor between reads; off where there are more files than descriptors.
    """

    def __init__(self, path: Path, *, keep_open: bool = True) -> None:
        self.path = path
        self._keep_open = keep_open
        self._lock = threading.Lock()
        self._descriptor = -1
        self._inode = 0
        self._closed = False

    def look(self) -> FileState | None:
        """Return the state of the file that is at the path now, or None if there is no regular file."""
        try:
            found = self.path.stat()
        except (OSError, ValueError):
            return None
        return FileState(found.st_size, found.st_ino, found.st_mtime) if stat.S_ISREG(found.st_mode) else None

    def is_longer(self, size: int) -> bool:
        """Return whether the file that is at the path now has a byte at an offset, which its state may not say yet.

        A network file system tells sizes some seconds late, but opens a file as it is.
        """
        try:
            descriptor = open_file(self.path)
        except (OSError, ValueError):
            return False
        try:
            return bool(os.pread(descriptor, 1, size))
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes ``start`` to ``start + size`` of the file first opened; fewer at its end or on an error."""
        with self._lock:
            descriptor = self._open()
            if descriptor < 0:
                return b""
            try:
                data = os.pread(descriptor, size, start)
                # One read gives at most 2 GB, and less on some network file systems.
                while data and len(data) < size and (more := os.pread(descriptor, size - len(data), start + len(data))):
                    data += more
            except OSError:
                return b""
            finally:
                if not self._keep_open:
                    self._release()
            return data

    def opened_size(self) -> int:
        """Return the bytes of the file that is open, even if it is no longer at the path; 0 if none is open."""
        with self._lock:
            return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def stored_end(self, start: int, end: int) -> int:
        """Return where the last stored bytes end; ``end`` where the file system does not tell, see lseek(2)."""
        with self._lock:
            descriptor = self._open()
            if descriptor < 0:
                return end
            try:
                return _stored_end(descriptor, start, end)
            except OSError:
                return end
            finally:
                if not self._keep_open:
                    self._release()

    def close(self) -> None:
        """Release the descriptor; later reads give nothing."""
        with self._lock:
            self._closed = True
            self._release()

    def _open(self) -> int:
        if self._descriptor >= 0 or self._closed:
            return self._descriptor
        try:
            descriptor = open_file(self.path)
        except OSError:
            return -1
        found = os.fstat(descriptor)
        if self._inode not in (0, found.st_ino):
            os.close(descriptor)
            return -1
        self._descriptor, self._inode = descriptor, found.st_ino
        return descriptor

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _stored_end(descriptor: int, start: int, end: int) -> int:
    found = start
    for _ in range(_MOST_EXTENTS):
        try:
            data = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the file's end
                return found
            raise
        if data >= end:
            return found
        start = found = min(end, os.lseek(descriptor, data, os.SEEK_HOLE))
        if start == end:
            break
    return end


class Notices:
    """Our own remarks among the lines, such as that a file was cut: lines kept in memory, read like a file."""

    def __init__(self) -> None:
        self._text = bytearray()

    def add(self, sentence: str) -> tuple[int, int]:
        """Keep a line; return where it starts and ends."""
        start = len(self._text)
        self._text += sentence.encode() + b"\n"
        return start, len(self._text)

    def read(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``start``."""
        return bytes(self._text[start : start + size])
