"""The thread that reads one stream into a spool: it resumes a broken stream, and waits while the disk is full."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ...base.backoff import Backoff
from ...specs.errors import NotAllowedError
from ..source.stream import Cursor, LogStream, Record
from .replica_spool import ReplicaSpool

_log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.5
"""Seconds until a broken stream is opened again, doubled each time."""
MAX_RETRY_S = 30.0
"""The most seconds until a broken stream is opened again."""
REPORT_LOSS_AFTER_S = 2.0
"""The loss of a stream is reported after so long (s); most come back sooner."""
# A full disk is tried again after so long (s), twice as long each time.
_FIRST_DISK_RETRY_S = 0.05
MAX_DISK_RETRY_S = 5.0
"""The most seconds until a full disk is tried again."""
LIMIT_CHECK_BYTES = 65_536
"""Bytes between two checks of the limits."""
# The stream of a job that has ended is given up after so many failures.
_MAX_TRIES_WHEN_FINAL = 3
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class Origin(Protocol):
    """Where a replica's log comes from."""

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Open a stream after the cursor.

        Raises:
            NotImplementedError: the scheduler has no logs.
            ValueError: there is no such replica or stream.
            Exception: it cannot be read now.
        """
        ...

    def is_final(self) -> bool:
        """Tell whether the app has ended."""
        ...


class SpaceManager(Protocol):
    """Decides which segments are dropped to keep the limits."""

    def enforce_limits(self, spool: ReplicaSpool) -> None:
        """Drop segments if a spool that has grown exceeds a limit."""
        ...

    def free_space(self, spool: ReplicaSpool) -> bool:
        """Drop a segment because the disk is full; return whether there was one."""
        ...


class SpoolFeed:
    """Reads a stream into a spool until the log ends or it is closed.

    Args:
        spool: the spool to write to.
        origin: opens the stream.
        space: keeps the limits.
    """

    def __init__(self, spool: ReplicaSpool, origin: Origin, space: SpaceManager) -> None:
        self._spool = spool
        self._origin = origin
        self._space = space
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._stream: LogStream | None = None
        self._retries = Backoff(FIRST_RETRY_S, MAX_RETRY_S)
        self._failures = 0
        self._lost_at: float | None = None
        self._loss_reported = False
        self._trouble_reported = False
        self._bytes_unchecked = 0
        self._thread = threading.Thread(target=self._run, name=f"spool-{spool.name}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._spool.begin(self)
        self._thread.start()

    def close(self) -> None:
        """End the stream without waiting for the thread, which adds nothing after that."""
        self._stop.set()
        self._spool.leave(self)
        with self._lock:
            stream = self._stream
        if stream is not None:
            _close(stream)

    def join(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the thread's end; return whether it ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and not self._read_stream():
                self._failures += 1
                self._retries.wait(self._stop)
        except Exception:
            _log.exception("reading the log of %s failed", self._spool.name)
            self._spool.add_notice(f"{self._spool.name}: reading its log failed; torchx-tui.log says why")

    def _read_stream(self) -> bool:
        """Read a stream until it ends; return whether the log has ended with it."""
        stream: LogStream | None = None
        try:
            stream = self._origin.connect(self._spool.cursor)
            with self._lock:
                self._stream = stream
            if self._stop.is_set():
                return False
            for record in stream:
                self._report_reconnected()
                if not self._store(record, stream.cursor):
                    return False
            is_complete = stream.is_complete
        except Exception as error:
            if not _is_permanent(error):
                return self._handle_error(error)
            self._end(f"its log cannot be read: {error}")
            return True
        finally:
            if stream is not None:
                _close(stream)
        if self._stop.is_set() or not (is_complete or self._is_final()):
            return False
        return self._write(self._spool.flush) and self._end()

    def _end(self, why: str = "") -> bool:
        if why:
            self._spool.report_trouble(f"{self._spool.name}: {why}")
        self._spool.ended = True
        return True

    def _is_final(self) -> bool:
        try:
            return self._origin.is_final()
        except Exception:
            _log.debug("the state of %s is not known", self._spool.name, exc_info=True)
            return False

    # The stream

    def _handle_error(self, error: Exception) -> bool:
        """Report a stream that is lost for long; return whether it will not come back."""
        if self._stop.is_set():
            return False
        _log.debug("the log of %s broke off", self._spool.name, exc_info=True)
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        reason = str(error) or type(error).__name__
        if self._failures >= _MAX_TRIES_WHEN_FINAL and self._is_final():
            return self._end(f"the rest of its log cannot be read: {reason}")
        if now - self._lost_at > REPORT_LOSS_AFTER_S and not self._loss_reported:
            self._loss_reported = True
            self._spool.report_trouble(f"{self._spool.name}: its log broke off and will be resumed: {reason}")
        return False

    def _report_reconnected(self) -> None:
        if self._loss_reported:
            self._spool.trouble = ""
            self._spool.add_notice(f"{self._spool.name}: its log is available again and continues where it stopped")
        self._retries.reset()
        self._failures, self._lost_at, self._loss_reported = 0, None, False

    # The disk

    def _store(self, record: Record, cursor: Cursor | None) -> bool:
        """Add a record to the spool; return False if closed before."""
        if not self._write(lambda: self._spool.take(record, cursor, self)):
            return False
        self._bytes_unchecked += len(record.data)
        if self._bytes_unchecked >= LIMIT_CHECK_BYTES:
            self._bytes_unchecked = 0
            self._space.enforce_limits(self._spool)
        return True

    def _write(self, write: Callable[[], object]) -> bool:
        """Write, and wait for space as long as it takes; return False if closed before."""
        retries = Backoff(_FIRST_DISK_RETRY_S, MAX_DISK_RETRY_S)
        while not self._stop.is_set():
            try:
                write()
            except OSError as error:
                if error.errno in _DISK_FULL and self._space.free_space(self._spool):
                    continue
                self._report_disk_error(error)
                retries.wait(self._stop)
                continue
            self._report_disk_recovered()
            return True
        return False

    def _report_disk_error(self, error: OSError) -> None:
        if self._trouble_reported:
            return
        self._trouble_reported = True
        root = os.fspath(self._spool.folder.parent.parent)
        if error.errno in _DISK_FULL:
            message = f"the disk of {root} is full: reading waits, nothing is lost; free some space there"
        else:
            message = f"{root} cannot be written ({error.strerror}): reading waits and nothing is lost; fix that"
        self._spool.report_trouble(f"{message}, then reading continues")

    def _report_disk_recovered(self) -> None:
        if self._trouble_reported:
            self._trouble_reported = False
            self._spool.trouble = ""
            self._spool.add_notice(
                f"{os.fspath(self._spool.folder.parent.parent)} can be written again: reading continues"
            )


def _close(stream: LogStream) -> None:
    with suppress(Exception):
        stream.close()


def _is_permanent(error: Exception) -> bool:
    """Tell whether a retry is pointless: logs are not kept, not allowed, or there is no such replica.

    A truncated answer is a ValueError too, to JSON and to UTF-8, but the next one may be whole.
    """
    if isinstance(error, (json.JSONDecodeError, UnicodeError)):
        return False
    return isinstance(error, (NotImplementedError, NotAllowedError, ValueError))
