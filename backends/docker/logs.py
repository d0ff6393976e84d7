"""The logs of replicas: as lines, and as records that can be taken up again."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime

from ...specs import BackendUnavailableError
from ...specs.errors import one_of
from ..api import LogIterator, Stream, line_pattern
from ..logs.line_assembler import LineAssembler
from ..logs.stream import Cursor, LogStream, TimeCursor
from .containers import find_containers, find_replica
from .engine import Engine
from .log_stream import DockerLogStream

# A log that was cut off is asked for again after so many seconds, twice as many each time, and for so long in all:
# an engine that is started anew takes some.
_FIRST_RETRY, _LAST_RETRY, _GIVE_UP = 0.1, 5.0, 120.0
# How often (s) an app is looked at whose replica has ended: at first, and at most.
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0
# Seconds that a line may be on its way.
_LATE = 1.0
_OVER = ("exited", "dead")


def open_stream(
    engine: Engine,
    app_id: str,
    role: str,
    k: int,
    streams: Stream | None = None,
    cursor: Cursor | None = None,
    tail: int | None = None,
) -> LogStream:
    """Return the log of one replica as it comes; see `Scheduler.log_stream`."""
    place = cursor if isinstance(cursor, TimeCursor) else None
    return DockerLogStream(engine, app_id, role, k, stream_of(streams), place, tail)


def read_lines(
    engine: Engine,
    app_id: str,
    role: str,
    k: int = 0,
    regex: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    should_tail: bool = False,
    streams: Stream | str | None = None,
) -> LogIterator:
    """Return the lines of one replica; see `Scheduler.log_iter`.

    Raises:
        ValueError: there is no such stream, role or replica, the message lists the valid ones; or the expression is
            malformed.
        JobNotFoundError: there is no such app.
        BackendUnavailableError: the engine cannot be reached.
    """
    stream = stream_of(streams)
    pattern = line_pattern(regex)
    find_replica(engine, app_id, role, k)
    first = None if since is None else int(since.timestamp() * 10**6) * 1000
    last = None if until is None else until.timestamp()
    # What lies in the past is there already.
    follow = should_tail and (last is None or time.time() < last + _LATE)

    def connect(cursor: TimeCursor | None) -> DockerLogStream:
        return DockerLogStream(
            engine, app_id, role, k, stream, cursor, since=first, follow=follow, says_restarts=False, together=0
        )

    def is_over() -> bool:
        return all(one.get("State") in _OVER for one in find_containers(engine, app_id))

    return DockerLogIterator(connect, is_over if follow else None, pattern, last)


def stream_of(streams: Stream | str | None) -> Stream:
    """Return the stream that is asked for.

    Raises:
        ValueError: there is none of that name; the message lists the valid ones.
    """
    try:
        return Stream.COMBINED if streams is None else Stream(streams)
    except ValueError:
        raise ValueError(f"there is no stream {streams}. Valid: {one_of(item.value for item in Stream)}") from None


class DockerLogIterator:
    """The lines of one replica; ``close`` from any thread ends the iteration, a blocked read too.

    Args:
        connect: begins to read after a cursor.
        is_over: tells whether the app has ended; None where nothing is waited for.
        regex: only lines in which this is found.
        until: only lines up to this time, in seconds since the epoch.
    """

    def __init__(
        self,
        connect: Callable[[TimeCursor | None], DockerLogStream],
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
            self._alarm = threading.Timer(max(0.0, until + _LATE - time.time()), self._end_stream)
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
        return self._until is not None and time.time() > self._until + _LATE

    def _end_stream(self) -> None:
        """Give what came until now: nothing that comes from now on is wanted."""
        self._ended = True
        self._stream.close()

    def _release(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._stream.close()
