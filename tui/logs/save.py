"""Saving a log to a file: as it is shown, all of it, or as it was printed."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from ...base.files import is_folder, path_exists
from ...logs.lines.merge import MergedLog
from ...logs.text.sanitize import format_size
from ..format import count
from .export import ExportError
from .session import AnyLog
from .text import LineForm, printed_parts, whole_lines

SaveKind = Literal["shown", "all", "printed"]

# How long older lines are indexed in one step (s), and how many bytes are gathered for one write.
_STEP = 0.05
_WRITE = 262_144
# The most time (s) that replicas which are not read yet, and are no files, have to give what is there.
_CATCH_UP = 10.0


@dataclass(frozen=True)
class Saved:
    """What was written.

    Attributes:
        path: the file.
        lines: how many lines.
        size: how many bytes.
    """

    path: Path
    lines: int
    size: int

    def __str__(self) -> str:
        return f"Saved {count(self.lines, 'line')}, {format_size(self.size)}, to {self.path}"


def save_path(text: str) -> Path:
    """Return the file that a person means by a path, ``~`` expanded.

    Raises:
        ExportError: it cannot be a file.
    """
    try:
        path = Path(text.strip()).expanduser().absolute()
        in_folder = is_folder(path.parent)
        found = _stat(path)
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"{text} is not a path: {_reason(error)}") from None
    if not text.strip():
        raise ExportError("type the path of a file")
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise ExportError(f"{path} is a folder: add the name of a file")
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise ExportError(f"{path} is not a regular file: choose another name")
    if not in_folder:
        raise ExportError(f"there is no folder {path.parent}: create it first, or choose another one")
    return path


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def save(
    log: AnyLog, path: Path, form: LineForm | None, *, replace: bool = False
) -> Generator[float | None, None, Saved]:
    """Write a log to a file; work for a `LogExport`.

    The file is complete or as it was before: on an error, and when it is stopped, nothing is left.

    Args:
        log: the log, not opened yet; it is closed in the end.
        path: the file.
        form: how each line is written; None for what was printed, byte for byte.
        replace: whether a file that is there may be replaced.

    Raises:
        ExportError: the file cannot be written, or is there and must not be replaced.
    """
    try:
        file, partial = _created(path, replace)
        try:
            with file:
                lines, size = yield from _written(file, log, form)
                file.flush()
                os.fsync(file.fileno())
            if partial != path:
                partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return Saved(path, lines, size)
    except FileExistsError:
        raise ExportError(f"{path} exists now: save again to replace it") from None
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {_reason(error)}; the partial file was removed") from None
    finally:
        log.close()


def _created(path: Path, replace: bool) -> tuple[BinaryIO, Path]:
    """Open a file to write to: a new one, or one beside that takes the place of the old one in the end."""
    if not replace or not path_exists(path):
        return path.open("xb"), path
    target = path.resolve()
    descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
    return os.fdopen(descriptor, "wb"), Path(beside)


def _written(file: BinaryIO, log: AnyLog, form: LineForm | None) -> Generator[float | None, None, tuple[int, int]]:
    log.connect()
    latest = time.monotonic() + _CATCH_UP
    while not log.caught_up and time.monotonic() < latest:
        time.sleep(_STEP)
        yield None
    log.open()
    while log.read_older(_STEP):
        yield None
    first, end, *_ = log.bounds()
    wanted = max(1, end - first)
    lines = size = 0
    for data, more in _gathered(_encoded(log, first, end, form) if form else printed_parts(_whole(log))):
        file.write(data)
        lines, size = lines + more, size + len(data)
        yield lines / wanted
    return lines, size


def _whole(log: AnyLog) -> MergedLog:
    return log if isinstance(log, MergedLog) else log.log


def _encoded(log: AnyLog, first: int, end: int, form: LineForm) -> Iterator[tuple[bytes, int]]:
    for line in whole_lines(log, first, end):
        yield form.text(line).encode() + b"\n", 1


def _gathered(parts: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Join parts until they are worth a write."""
    gathered: list[bytes] = []
    size = lines = 0
    for data, more in parts:
        gathered.append(data)
        size, lines = size + len(data), lines + more
        if size >= _WRITE:
            yield b"".join(gathered), lines
            gathered, size, lines = [], 0, 0
    yield b"".join(gathered), lines


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
