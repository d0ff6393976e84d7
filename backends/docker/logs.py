"""The logs of replicas: as lines, and as records that can be taken up again."""

from __future__ import annotations

import time
from datetime import datetime

from ...logs.source.stream import Cursor, LogStream, TimeCursor
from ...specs.errors import join_names
from ..api import LogIterator, Stream, line_pattern
from ..docker_engine.client import Engine
from ..shared.stream_lines import LATE, StreamLines
from .containers import find_containers, find_replica
from .log_stream import DockerLogStream

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
    follow = should_tail and (last is None or time.time() < last + LATE)

    def connect(cursor: Cursor | None, follow: bool) -> DockerLogStream:
        place = cursor if isinstance(cursor, TimeCursor) else None
        return DockerLogStream(
            engine, app_id, role, k, stream, place, since=first, follow=follow, says_restarts=False, together=0
        )

    def is_over() -> bool:
        return all(one.get("State") in _OVER for one in find_containers(engine, app_id))

    return StreamLines(connect, is_over if follow else None, pattern, last)


def stream_of(streams: Stream | str | None) -> Stream:
    """Return the stream that is asked for.

    Raises:
        ValueError: there is none of that name; the message lists the valid ones.
    """
    try:
        return Stream.COMBINED if streams is None else Stream(streams)
    except ValueError:
        raise ValueError(f"there is no stream {streams}. Valid: {join_names(item.value for item in Stream)}") from None
