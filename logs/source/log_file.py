"""A log file read by position, by several threads. Anything but a regular file is refused without blocking."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import NamedTuple, Protocol

from ...base.files import open_file
from .open_files import OPEN_FILES

# Extents of one sparse file that are examined to find where the last one ends.
_MAX_EXTENTS = 100_000


class FileState(NamedTuple):
    """A file's size in bytes, its inode and when it was last written (seconds since the epoch)."""

    size: int
    inode: int
    written_at: float


class Readable(Protocol):
    """Something that lines are read from by position."""

    def read(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``start``."""
        ...


class GrowingFile(Readable, Protocol):
    """A file that is followed while it grows."""

    @property
    def path(self) -> Path:
        """The file's path."""
        ...

    def stat(self) -> FileState | None:
        """Return its state now, None if it is missing."""
        ...

    def opened_size(self) -> int:
        """Return the size of the file that is open, wherever that is by now; 0 if none is open."""
        ...

    def stored_end(self, start: int, end: int) -> int:
        """Find the end of the last stored bytes between two offsets; ``start`` where all of it is a hole.

        What follows it is a hole, which reads as zeros.
        """
        ...

    def close(self) -> None:
        """Release the descriptor."""
        ...


def why_unreadable(path: Path) -> str:
    """Say that a file that exists cannot be read, and why, such as a named pipe; empty if it can be read."""
    try:
        os.close(open_file(path))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"the log cannot be read: {path}: {error.strerror}"
    return ""


class LogFile:
    """One file of a log; it may be missing, grow, be truncated or be replaced while it is read.

    Args:
        path: the file.
        keep_open: keep the descriptor open between reads, as long as `OPEN_FILES` has room for it.
    """

    def __init__(self, path: Path, *, keep_open: bool = True) -> None:
        self.path = path
        self._keep_open = keep_open
        self._lock = threading.Lock()
        self._descriptor = -1
        self._inode = 0
        self._closed = False

    def stat(self) -> FileState | None:
        """Return the state of the file that is at the path now, or None if there is no regular file."""
        try:
            status = self.path.stat()
        except (OSError, ValueError):
            return None
        return FileState(status.st_size, status.st_ino, status.st_mtime) if stat.S_ISREG(status.st_mode) else None

    def is_longer(self, size: int) -> bool:
        """Tell whether the file at the path is longer than ``size``, which its state may not show yet.

        A network file system reports sizes some seconds late, but opens a file as it is.
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
        try:
            with self._lock:
                descriptor = self._open()
                if descriptor < 0:
                    return b""
                data = os.pread(descriptor, size, start)
                # One read gives at most 2 GB, and less on some network file systems.
                while data and len(data) < size and (more := os.pread(descriptor, size - len(data), start + len(data))):
                    data += more
                return data
        except OSError:
            return b""
        finally:
            self._end_read()

    def opened_size(self) -> int:
        """Return the size of the file that is open, even if it is no longer at the path; 0 if none is open."""
        with self._lock:
            return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def stored_end(self, start: int, end: int) -> int:
        """Find where the last stored bytes end; ``end`` if the file system does not report holes, see lseek(2)."""
        try:
            with self._lock:
                descriptor = self._open()
                return end if descriptor < 0 else _stored_end(descriptor, start, end)
        except OSError:
            return end
        finally:
            self._end_read()

    def close(self) -> None:
        """Release the descriptor; later reads give nothing."""
        with self._lock:
            self._closed = True
        self.release()
        OPEN_FILES.discard(self)

    def release(self) -> None:
        """Release the descriptor until the next read."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _open(self) -> int:
        if self._descriptor >= 0 or self._closed:
            return self._descriptor
        try:
            descriptor = open_file(self.path)
        except OSError:
            return -1
        inode = os.fstat(descriptor).st_ino
        if self._inode not in (0, inode):
            os.close(descriptor)
            return -1
        self._descriptor, self._inode = descriptor, inode
        return descriptor

    def _end_read(self) -> None:
        if not self._keep_open:
            self.release()
        elif self._descriptor >= 0:
            OPEN_FILES.add(self)


def _stored_end(descriptor: int, start: int, end: int) -> int:
    stored_end = start
    for _ in range(_MAX_EXTENTS):
        try:
            data = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the file's end
                return stored_end
            raise
        if data >= end:
            return stored_end
        start = stored_end = min(end, os.lseek(descriptor, data, os.SEEK_HOLE))
        if start == end:
            break
    return end


class NoticeFile:
    """Our own notices among the lines, such as that a file was truncated: kept in memory, read like a file."""

    def __init__(self) -> None:
        self._text = bytearray()

    def add(self, sentence: str) -> tuple[int, int]:
        """Add a line; return where it starts and ends."""
        start = len(self._text)
        self._text += sentence.encode() + b"\n"
        return start, len(self._text)

    def read(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``start``."""
        return bytes(self._text[start : start + size])
