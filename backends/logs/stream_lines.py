"""Whole lines of a stream, for those who want neither records nor cursors."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from ...specs import BackendUnavailableError
from .line_assembler import LineAssembler
from .stream import Cursor, LogStream

# A log that was cut off is asked for again after so many seconds, twice as many each time, and for so long in all:
# an engine that is started anew takes some.
_FIRST_RETRY, _LAST_RETRY, _GIVE_UP = 0.1, 5.0, 120.0
# How often (s) an app is looked at whose replica has ended: at first, and at most.
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0
LATE = 1.0
"""Seconds that a line may be on its way."""


class StreamLines:
    """The lines of one replica, taken up again where its stream was cut off.

    ``close`` from any thread ends the iteration, a blocked read too.

    Args:
        connect: begins to read after a cursor.
        is_over: tells whether the app has ended; None where nothing is waited for.
        regex: only lines in which this is found.
        until: only lines up to this time, in seconds since the epoch.
    """

    def __init__(
        self,
        connect: Callable[[Cursor | None], LogStream],
        is_over: Callable[[], bool] | None,
        regex: re.Pattern[str] | None,
        until: float | None,
    ) -> None:
        self._connect = connect
        self._is_over = is_over
        self._regex = regex
        self._until = until
        self._stream = connect(None)
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
        self._ended = False
        self._lost_at: float | None = None
        self._retry = _FIRST_RETRY
        self._closed = threading.Event()
        self._alarm: threading.Timer | None = None
        if is_over is not None and until is not None:
            self._alarm = threading.Timer(max(0.0, until + LATE - time.time()), self._end_stream)
            self._alarm.daemon = True
            self._alarm.start()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, with its end where it has one.

        Raises:
            SchedulerError: the log cannot be read, or was removed.
        """
        while not self._lines:
            if self._ended or self._closed.is_set():
                self._release()
                raise StopIteration
            self._fill()
        return self._lines.popleft()

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()
        self._release()

    def _fill(self) -> None:
        try:
            record = next(self._stream, None)
        except BackendUnavailableError:
            if self._is_over is None or self._closed.is_set():
                raise
            self._reconnect()
            return
        self._lost_at, self._retry = None, _FIRST_RETRY
        if record is not None:
            self._take(self._assembler.add(record))
        elif not self._closed.is_set():
            self._take(self._assembler.rest())
            self._ended = True
            self._wait_for_the_app()

    def _reconnect(self) -> None:
        """Take the log up again after a while.

        Raises:
            BackendUnavailableError: the engine has been away for too long.
        """
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        elif now - self._lost_at > _GIVE_UP:
            raise
        self._closed.wait(self._retry)
        self._retry = min(2 * self._retry, _LAST_RETRY)
        stream = self._connect(self._stream.cursor)
        self._stream.close()
        self._stream = stream
        if self._closed.is_set():
            stream.close()

    def _wait_for_the_app(self) -> None:
        """Wait until the other replicas have ended too; what cannot be told is not waited for."""
        wait = _FIRST_LOOK
        while self._is_over is not None and not self._is_past_until() and not self._closed.is_set():
            try:
                if self._is_over():
                    return
            except BackendUnavailableError:
                wait = _LAST_LOOK
            self._closed.wait(wait)
            wait = min(2 * wait, _LAST_LOOK)

    def _take(self, lines: list[tuple[float | None, bytes]]) -> None:
        for at, data in lines:
            if self._until is not None and at is not None and at > self._until:
                self._ended = True
                return
            line = data.decode("utf-8", "replace")
            if self._regex is None or self._regex.search(line):
                self._lines.append(line)

    def _is_past_until(self) -> bool:
        return self._until is not None and time.time() > self._until + LATE

    def _end_stream(self) -> None:
        """Give what came until now: nothing that comes from now on is wanted."""
        self._ended = True
        self._stream.close()

    def _release(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._stream.close()
