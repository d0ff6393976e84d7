"""Reading files that somebody else may have put in place: never blocking, never more than a bound.

At the path of a state file, a config or a component there may be a named pipe, a device, or gigabytes. Everything that
reads such a file whole reads it here.
"""

from __future__ import annotations

import errno
import os
import stat

SMALL = 1 << 20
"""Bytes of a config, an ignore file, a note of ours: none that makes sense has more."""

SOURCE = 16 << 20
"""Bytes of a Python file."""

LARGE = 64 << 20
"""Bytes of what is kept of one job: its state file, which has a part for each replica, or its launch record."""

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_file(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading and return its descriptor, which the caller closes.

    Raises:
        OSError: the file cannot be opened, or is not a regular file; ``strerror`` is a phrase that can be shown.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError as error:  # a null byte in the path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path)) from error
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device that nothing drives
            raise _not_regular(os.stat(path).st_mode, path) from error  # noqa: PTH116 - no Path is needed
        raise
    try:
        if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
            raise _not_regular(mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_file(path: str | os.PathLike[str], limit: int = SMALL) -> bytes:
    """Return the content of a regular file.

    Args:
        path: the file.
        limit: the most bytes that it may have.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than the limit; ``strerror`` is a phrase
            that can be shown.
    """
    descriptor = open_file(path)
    try:
        parts: list[bytes] = []
        # The size of what the kernel makes up, as in /proc, is 0, and another process may still write.
        left = limit + 1 if os.fstat(descriptor).st_size <= limit else 0
        while left > 0 and (data := os.read(descriptor, min(left, 1 << 20))):
            parts.append(data)
            left -= len(data)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise OSError(errno.EFBIG, f"it has more than {_size(limit)}", os.fspath(path))
    return b"".join(parts)


def _not_regular(mode: int, path: str | os.PathLike[str]) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    return OSError(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))


def _size(count: int) -> str:
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count} bytes"
