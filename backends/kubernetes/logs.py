"""The logs of replicas: as lines, and as records that can be taken up again."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from ..api import LogIterator, Stream, line_pattern
from ..logs.stream import Cursor, LogStream, PartsCursor
from ..logs.stream_lines import LATE, StreamLines
from .log_stream import KubernetesLogStream
from .replica_pods import find_pod_name, replica_pods

if TYPE_CHECKING:
    from .api_server import ApiServer


def open_stream(
    server: ApiServer,
    app_id: str,
    role: str,
    k: int = 0,
    streams: Stream | str | None = None,
    cursor: Cursor | None = None,
    tail: int | None = None,
) -> LogStream:
    """Return the log of one replica as it comes; see `Scheduler.log_stream`.

    Raises:
        ValueError: there is no such stream.
    """
    _check_stream(streams)
    return KubernetesLogStream(server, app_id, role, k, cursor if isinstance(cursor, PartsCursor) else None, tail)


def read_lines(
    server: ApiServer,
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
        SchedulerError: the server cannot be reached, or may not tell.
    """
    _check_stream(streams)
    pattern = line_pattern(regex)
    pods = replica_pods(server)
    find_pod_name(pods.look(server, app_id, time.monotonic()), app_id, role, k)
    first = None if since is None else int(since.timestamp() * 10**6) * 1000
    last = None if until is None else until.timestamp()
    # What lies in the past is there already.
    follow = should_tail and (last is None or time.time() < last + LATE)

    def connect(cursor: Cursor | None, follow: bool) -> KubernetesLogStream:
        place = cursor if isinstance(cursor, PartsCursor) else None
        return KubernetesLogStream(server, app_id, role, k, place, since=first, follow=follow, says=False, together=0)

    def is_over() -> bool:
        return pods.look(server, app_id, time.monotonic()).has_ended

    return StreamLines(connect, is_over if follow else None, pattern, last)


def _check_stream(streams: Stream | str | None) -> None:
    # A runtime marks each line with its stream, but servers do not pass that on.
    if streams not in (None, Stream.COMBINED):
        name = streams.value if isinstance(streams, Stream) else streams
        raise ValueError(f"Kubernetes keeps no stream {name} of its own. Valid: {Stream.COMBINED.value}")
