"""The thread that reads one stream into a spool: it takes it up where it broke off, and waits while a disk is full."""

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

from ...specs import NotAllowedError
from ...specs.backoff import jittered
from ..source.stream import Cursor, LogStream, Record
from .replica_spool import ReplicaSpool

_log = logging.getLogger(__name__)

# A stream that broke off is asked for again after so many seconds, twice as many each time.
_FIRST_RETRY = 0.5
_LAST_RETRY = 30.0
# A stream that is back sooner (s) was not lost for longer than a moment.
_MOMENT = 2.0
# How often (s) at the latest a full disk is tried again.
_DISK_RETRY = 5.0
# Bytes between two looks at the caps.
_LOOK_AT_CAPS = 65_536
# A final job's stream that failed so often has nothing more to give.
_LAST_TRIES = 3
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Origin(Protocol):
    """Where a replica's log comes from."""

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Begin to read after the cursor.

        Raises:
            NotImplementedError: the scheduler has no logs.
            ValueError: there is no such replica or stream.
            Exception: it cannot be read at present.
        """
        ...

    def is_final(self) -> bool:
        """Whether the app has ended."""
        ...


class Room(Protocol):
    """Who decides which segments go."""

    def grew(self, spool: ReplicaSpool) -> None:
        """Look at the caps."""
        ...

    def make_room(self, spool: ReplicaSpool) -> bool:
        """Drop a segment because the disk is full; tell whether there was one."""
        ...


class SpoolFeed:
    """Reads a stream into a spool until the log ends or it is closed.

    Args:
        spool: where to.
        origin: where from.
        room: who keeps the caps.
    """

    def __init__(self, spool: ReplicaSpool, origin: Origin, room: Room) -> None:
        self._spool = spool
        self._origin = origin
        self._room = room
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._stream: LogStream | None = None
        self._failures = 0
        self._lost_at: float | None = None
        self._told_lost = False
        self._told_trouble = False
        self._unlooked = 0
        self._thread = threading.Thread(target=self._run, name=f"spool-{spool.name}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._spool.begin(self)
        self._thread.start()

    def close(self) -> None:
        """End the stream; the thread is not waited for, and adds nothing any more."""
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
                pause = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(self._failures, 10))
                self._failures += 1
                self._stop.wait(jittered(pause))
        except Exception:
            _log.exception("reading the log of %s failed", self._spool.name)
            self._spool.say(f"{self._spool.name}: reading its log failed; the log file of this program says why")

    def _read_stream(self) -> bool:
        """Read a stream until it ends; return whether that was the end of the log."""
        stream: LogStream | None = None
        try:
            stream = self._origin.connect(self._spool.cursor)
            with self._lock:
                self._stream = stream
            if self._stop.is_set():
                return True
            for record in stream:
                self._note_back()
                if not self._store(record, stream.cursor):
                    return True
            is_complete = stream.is_complete
        except Exception as error:
            if not _is_for_good(error):
                return self._note_lost(error)
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
            self._spool.say_trouble(f"{self._spool.name}: {why}")
        self._spool.ended = True
        return True

    def _is_final(self) -> bool:
        try:
            return self._origin.is_final()
        except Exception:
            _log.debug("the state of %s is not known", self._spool.name, exc_info=True)
            return False

    # The stream

    def _note_lost(self, error: Exception) -> bool:
        """Say so when a stream stays away; return whether it will not come back."""
        if self._stop.is_set():
            return True
        _log.debug("the log of %s broke off", self._spool.name, exc_info=True)
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        reason = str(error) or type(error).__name__
        if self._failures >= _LAST_TRIES and self._is_final():
            return self._end(f"the rest of its log cannot be read: {reason}")
        if now - self._lost_at > _MOMENT and not self._told_lost:
            self._told_lost = True
            self._spool.say_trouble(f"{self._spool.name}: its log is cut off and will be taken up again: {reason}")
        return False

    def _note_back(self) -> None:
        if self._told_lost:
            self._spool.trouble = ""
            self._spool.say(f"{self._spool.name}: its log is back, and goes on where it was cut off")
        self._failures, self._lost_at, self._told_lost = 0, None, False

    # The disk

    def _store(self, record: Record, cursor: Cursor | None) -> bool:
        """Add a record to the spool; return False when closed before that could be done."""
        if not self._write(lambda: self._spool.take(record, cursor, self)):
            return False
        self._unlooked += len(record.data)
        if self._unlooked >= _LOOK_AT_CAPS:
            self._unlooked = 0
            self._room.grew(self._spool)
        return True

    def _write(self, write: Callable[[], object]) -> bool:
        """Write, and wait for room as long as it takes; return False when closed before."""
        wait = 0.05
        while not self._stop.is_set():
            try:
                write()
            except OSError as error:
                if error.errno in _FULL and self._room.make_room(self._spool):
                    continue
                self._tell_trouble(error)
                self._stop.wait(wait)
                wait = min(2 * wait, _DISK_RETRY)
                continue
            self._trouble_is_over()
            return True
        return False

    def _tell_trouble(self, error: OSError) -> None:
        if self._told_trouble:
            return
        self._told_trouble = True
        root = os.fspath(self._spool.folder.parent.parent)
        if error.errno in _FULL:
            words = f"the disk of {root} is full: reading waits, nothing is lost; free some space there"
        else:
            words = f"{root} cannot be written ({error.strerror}): reading waits, nothing is lost; mend that"
        self._spool.say_trouble(f"{words}, then it goes on by itself")

    def _trouble_is_over(self) -> None:
        if self._told_trouble:
            self._told_trouble = False
            self._spool.trouble = ""
            self._spool.say(f"{os.fspath(self._spool.folder.parent.parent)} can be written again: reading goes on")


def _close(stream: LogStream) -> None:
    with suppress(Exception):
        stream.close()


def _is_for_good(error: Exception) -> bool:
    """Return whether asking again leads nowhere: logs are not kept, not allowed, or there is no such replica.

    An answer that came in part is a ValueError as well, to JSON and to UTF-8; the next one may be whole.
    """
    if isinstance(error, (json.JSONDecodeError, UnicodeError)):
        return False
    return isinstance(error, (NotImplementedError, NotAllowedError, ValueError))
