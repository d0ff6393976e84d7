"""The thread that reads one stream into a spool and resumes it when it breaks."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import Protocol

from ...base.backoff import Backoff
from ...specs.errors import NotAllowedError, UnknownReplicaError
from ..source.stream import Cursor, LogStream
from .spool import Spool, SpoolWriteError

_log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.5
"""Seconds until a broken stream is opened again, doubled each time."""
MAX_RETRY_S = 30.0
"""The most seconds until a broken stream is opened again."""
REPORT_LOSS_AFTER_S = 2.0
"""Seconds until the loss of a stream is reported; most come back sooner."""
# The stream of a job that has ended is given up after this many failures.
_MAX_TRIES_WHEN_FINAL = 3
_PERMANENT = (NotImplementedError, NotAllowedError, UnknownReplicaError)


class Origin(Protocol):
    """Where a replica's log comes from."""

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Open a stream after the cursor.

        Raises:
            NotImplementedError: the scheduler has no logs.
            NotAllowedError: this user may not read them.
            UnknownReplicaError: there is no such replica or stream; it may come with the first record, too.
            Exception: it cannot be read now.
        """
        ...

    def is_final(self) -> bool:
        """Tell whether the app has ended."""
        ...


class Feed:
    """Reads a stream into a spool until the log ends or it is closed."""

    def __init__(self, spool: Spool, origin: Origin) -> None:
        self._spool = spool
        self._origin = origin
        self._stop = threading.Event()
        self._stream: LogStream | None = None
        self._retries = Backoff(FIRST_RETRY_S, MAX_RETRY_S)
        self._failures = 0
        self._lost_at: float | None = None
        self._loss_reported = False
        self._thread = threading.Thread(target=self._run, name=f"spool-{spool.name}", daemon=True)

    def start(self) -> None:
        self._spool.begin(self)
        self._thread.start()

    def close(self) -> None:
        """End the stream without waiting for the thread."""
        self._stop.set()
        _close(self._stream)

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and not self._read_stream():
                self._failures += 1
                self._retries.wait(self._stop)
        except SpoolWriteError as error:
            # Without the replica's name: the notices of all replicas are shown as one.
            self._end(str(error))
        except Exception:
            _log.exception("reading the log of %s failed", self._spool.name)
            self._end(f"{self._spool.name}: reading its log failed; torchx-tui.log says why")

    def _read_stream(self) -> bool:
        """Read a stream until it ends; return whether the log has ended with it."""
        try:
            self._spool.drop_removed()
            # `close` finds the stream, or the stream finds that it was closed.
            self._stream = stream = self._origin.connect(self._spool.cursor)
            if self._stop.is_set():
                return False
            for record in stream:
                self._report_recovery()
                self._spool.take(record, stream.cursor, self)
                if self._stop.is_set():
                    return False
            is_complete = stream.is_complete
        except SpoolWriteError:
            raise
        except Exception as error:
            return self._handle_error(error)
        finally:
            _close(self._stream)
        if self._stop.is_set() or not (is_complete or self._is_final()):
            return False
        self._spool.flush()
        return self._end()

    def _end(self, trouble: str = "") -> bool:
        if trouble:
            self._spool.report(trouble, lasts=True)
        self._spool.ended = True
        return True

    def _is_final(self) -> bool:
        try:
            return self._origin.is_final()
        except Exception:
            _log.debug("the state of %s is not known", self._spool.name, exc_info=True)
            return False

    def _handle_error(self, error: Exception) -> bool:
        """Report a stream that is lost for long; return whether it will not come back."""
        name, reason = self._spool.name, str(error) or type(error).__name__
        if self._stop.is_set():
            return False
        if isinstance(error, _PERMANENT):
            return self._end(f"{name}: its log cannot be read: {reason}")
        _log.debug("the log of %s broke off", name, exc_info=True)
        if self._failures >= _MAX_TRIES_WHEN_FINAL and self._is_final():
            return self._end(f"{name}: the rest of its log cannot be read: {reason}")
        self._lost_at = self._lost_at or time.monotonic()
        if time.monotonic() - self._lost_at > REPORT_LOSS_AFTER_S and not self._loss_reported:
            self._loss_reported = True
            self._spool.report(f"{name}: its log broke off and will be resumed: {reason}", lasts=True)
        return False

    def _report_recovery(self) -> None:
        if self._loss_reported:
            found = f"{self._spool.name}: its log is available again and continues where it stopped"
            self._spool.report(found, lasts=False)
        self._retries.reset()
        self._failures, self._lost_at, self._loss_reported = 0, None, False


def _close(stream: LogStream | None) -> None:
    if stream is not None:
        with suppress(Exception):
            stream.close()
