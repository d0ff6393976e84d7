"""The thread that follows a log which is on screen."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .filtering import FilteredLog
from .log_thread import LogThread
from .merge import ARRIVAL_WINDOW, MergedLog

_log = logging.getLogger(__name__)

# Lines that are indexed before the first notification: the last page of any screen.
_FIRST_PAGE_LINES = 500
# How long older lines are indexed between two polls for new ones (s).
_SLICE_S = 0.02
# After the job's end the files must be quiet for so long (s), since the last lines may still be written, and are
# watched for at most so long (s).
_QUIET_AFTER_END_S = 0.5
_MAX_WAIT_AFTER_END_S = 5.0
# How long to wait (s) for the existing lines of logs that are streams, so that they are merged by time.
_CATCH_UP_TIMEOUT_S = 2.0


def poll_interval(quiet: float) -> float:
    """Return the seconds until the next poll of the files, after ``quiet`` seconds without a change."""
    if quiet < 2:
        return 0.02
    if quiet < 10:
        return 0.04
    if quiet < 60:
        return 0.1
    return ARRIVAL_WINDOW


class LogFollower(LogThread):
    """Reads a log in a daemon thread of its own, as it grows, until it ends or is closed.

    Args:
        log: the log; the thread opens it, reads it and closes its files.
        on_change: called in the thread when lines changed or the end was reached; not again before `acknowledge`.
        is_final: called in the thread, tells whether the job has ended; without it the log is followed for ever.
    """

    def __init__(
        self,
        log: MergedLog | FilteredLog,
        on_change: Callable[[], object],
        is_final: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__("log-follower", on_change)
        self.log = log
        self.opened = False
        """Whether the last page has been read."""
        self.ended = False
        """Whether the job has ended and all its lines are known."""
        self.failure = ""
        """Why the log can no longer be read; empty while it can."""
        self._is_final = is_final
        self._next: MergedLog | FilteredLog | None = None
        self._done = threading.Event()

    def switch_to(self, log: MergedLog | FilteredLog) -> None:
        """Follow another view of the log from now on: a filtered one, or the log itself again."""
        self._next = log
        self._wake.set()

    def close(self) -> None:
        """End the thread without waiting for it; from now on it touches only its own files."""
        super().close()
        # Whichever ends last, this or the thread, closes the files: closing while it reads could block on a slow disk.
        if self._done.is_set():
            self.log.close()

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            _log.exception("reading a log failed")
            self.failure = f"the log cannot be read any more: {error}"
            self._unacknowledged.clear()
            self._notify()
        finally:
            self._done.set()
            if self._stop.is_set():
                self.log.close()

    def _follow(self) -> None:
        log = self.log
        log.connect()
        deadline = time.monotonic() + _CATCH_UP_TIMEOUT_S
        while not log.caught_up and time.monotonic() < deadline and not self._stop.wait(_SLICE_S):
            pass
        log.open()
        older = log.read_older(1.0, _FIRST_PAGE_LINES)
        self.opened = True
        self._notify()
        changed_at = time.monotonic()
        pending = False
        while not self._stop.is_set():
            if self._next is not None:
                self.log, self._next = self._next, None
                log, older, pending = self.log, True, True
            changed, more = log.poll()
            now = time.monotonic()
            if changed:
                changed_at = now
            was_older = older
            if older:
                older = log.read_older(_SLICE_S)
            pending = not self._notify() if changed or was_older or pending else False
            if not (older or more) and self._has_ended(now - changed_at):
                self.ended = True
                self._unacknowledged.clear()
                self._notify()
                return
            if not (more or older):
                self._wake.wait(poll_interval(now - changed_at))
                self._wake.clear()

    def _has_ended(self, quiet: float) -> bool:
        if quiet < _QUIET_AFTER_END_S or self._is_final is None or not self._is_final():
            return False
        return self.log.fully_read or (quiet > _MAX_WAIT_AFTER_END_S and not self.log.reports_end)
