"""The readers' common part: the points that they return, and how they follow a growing file."""

from __future__ import annotations

import abc
import logging
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from ...base.files import open_file

_log = logging.getLogger(__name__)

# Bytes of one file that are read at once.
READ_SIZE = 4 << 20


class Point(NamedTuple):
    """One value.

    Attributes:
        name: the metric's name in the file.
        step: its step.
        value: its value; may be nan or infinite.
        time: when it was written (seconds since the epoch); nan if that is not known.
    """

    name: str
    step: float
    value: float
    time: float = math.nan


class ForeignFileError(ValueError):
    """A file is not of the format that was recognised, or is broken."""


class MetricFile(abc.ABC):
    """A metric file, which its trainer may be writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""
        """Why it cannot be read; empty while it can."""
        self.total: float | None = None
        """The last step of the training, if the file has it."""
        self._is_broken = False

    def poll(self) -> tuple[list[Point], bool, bool]:
        """Read what was added since the last poll.

        Returns:
            the new points, whether all earlier ones are to be forgotten, and whether there is more to read at once.
        """
        if self._is_broken:
            return [], False, False
        reason = ""
        try:
            return self._poll()
        except FileNotFoundError:
            pass
        except OSError as error:
            # It may pass, as ESTALE on NFS does: the next poll tries again.
            reason = error.strerror or str(error)
        except ForeignFileError as error:
            reason, self._is_broken = str(error), True
        except Exception as error:  # hostile bytes cost their own file only
            _log.exception("%s cannot be read", self.path)
            reason, self._is_broken = f"{type(error).__name__}: {error}", True
        finally:
            self.failure = f"{self.path.name} cannot be read: {reason}" if reason else ""
        return [], False, False

    @abc.abstractmethod
    def _poll(self) -> tuple[list[Point], bool, bool]: ...


class GrowingFile(MetricFile):
    """A metric file to which records are appended; it is read from where the last poll ended."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._identity = (0, 0)
        self._begin()

    def _begin(self) -> None:
        """Forget what was read, and begin anew."""
        self._offset = 0

    def _poll(self) -> tuple[list[Point], bool, bool]:
        descriptor = open_file(self.path)
        try:
            status = os.fstat(descriptor)
            identity = (status.st_dev, status.st_ino)
            forget = self._offset > 0 and (
                identity != self._identity or status.st_size < self._offset or self._was_rewritten(descriptor)
            )
            if forget:
                self._begin()
            self._identity = identity
            data = os.pread(descriptor, READ_SIZE, self._offset)
            if data.count(0) == READ_SIZE:
                raise ForeignFileError("it has megabytes of empty space")
            points, consumed = self._parse(data)
            # A record longer than one read is skipped once all of it is there.
            if consumed > len(data) and self._offset + consumed > status.st_size:
                consumed = 0
            if not consumed and len(data) == READ_SIZE:
                raise ForeignFileError(f"it has a record of more than {READ_SIZE >> 20} MB")
            self._offset += consumed
            return points, forget, consumed > 0 and self._offset < status.st_size
        finally:
            os.close(descriptor)

    @abc.abstractmethod
    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        """Return the points in the whole records that data begins with, and the size of these records."""

    def _was_rewritten(self, descriptor: int) -> bool:
        """Return whether the file's beginning changed, so that all of it is to be read again."""
        return False


def to_number(value: Any) -> float | None:
    """Convert a JSON value or a cell; None if it is not a number. HF's version 5 writes numbers as texts."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
