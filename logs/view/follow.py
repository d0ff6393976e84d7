"""The thread that reads the logs that are on screen."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .filtering import FilteredLog
from .log_thread import LogThread
from .merge import ARRIVAL_WINDOW, MergedLog

_log = logging.getLogger(__name__)

# Lines that are indexed before the first word of them: the last page of any screen.
_PAGE = 500
# How long older lines are indexed between two looks for new ones (s).
_SLICE = 0.02
# After the job's end the files are watched for so long without growing (s): the last lines are on their way.
_SETTLE = 0.5
_ENDED_WITHIN = 5.0
# The most time (s) that logs which are no files have to give what was there, so that it is merged by time.
_CATCH_UP = 2.0


def poll_interval(quiet: float) -> float:
    """Return the seconds to the next look at the files after ``quiet`` seconds without a change."""
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
        on_change: called in the thread when there are other lines, or the end was reached; not again before `seen`.
        is_final: tells, called in the thread, whether the job has ended; without it the log is followed for ever.
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
        """Whether the job has ended and every line of it is known."""
        self.failure = ""
        """Why the log can no longer be read, in words; empty while it can."""
        self._is_final = is_final
        self._next: MergedLog | FilteredLog | None = None
        self._done = threading.Event()

    def turn_to(self, log: MergedLog | FilteredLog) -> None:
        """Read another view of the log from now on: what a filter lets through of it, or the log itself again."""
        self._next = log
        self._wake.set()

    def close(self) -> None:
        """End the thread; it is not waited for, and touches nothing but its own files any more."""
        super().close()
        # Whoever comes second closes the files; while the thread reads, closing them could wait for a slow disk.
        if self._done.is_set():
            self.log.close()

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            _log.exception("reading a log failed")
            self.failure = f"the log cannot be read any more: {error}"
            self._told.clear()
            self._tell_change()
        finally:
            self._done.set()
            if self._stop.is_set():
                self.log.close()

    def _follow(self) -> None:
        log = self.log
        log.connect()
        latest = time.monotonic() + _CATCH_UP
        while not log.caught_up and time.monotonic() < latest and not self._stop.wait(_SLICE):
            pass
        log.open()
        older = log.read_older(1.0, _PAGE)
        self.opened = True
        self._tell_change()
        changed_at = time.monotonic()
        untold = False
        while not self._stop.is_set():
            if self._next is not None:
                self.log, self._next = self._next, None
                log, older, untold = self.log, True, True
            changed, more = log.poll()
            now = time.monotonic()
            if changed:
                changed_at = now
            was_older = older
            if older:
                older = log.read_older(_SLICE)
            untold = not self._tell_change() if changed or was_older or untold else False
            if not (older or more) and self._has_ended(now - changed_at):
                self.ended = True
                self._told.clear()
                self._tell_change()
                return
            if not (more or older):
                self._wake.wait(poll_interval(now - changed_at))
                self._wake.clear()

    def _has_ended(self, quiet: float) -> bool:
        if quiet < _SETTLE or self._is_final is None or not self._is_final():
            return False
        return self.log.settled or (quiet > _ENDED_WITHIN and not self.log.settles)
