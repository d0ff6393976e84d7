"""Where the spools get the logs of a scheduler's replicas from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..specs import parse_app_handle
from .api import Scheduler, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .logs.replica_log import ReplicaLog
    from .logs.spools import LogSpools
    from .logs.stream import Cursor, LogStream
    from .runner import Runner


class ReplicaOrigin:
    """One replica's log at its scheduler.

    Args:
        runner: the door to the scheduler.
        handle: the job's handle.
        role_name: the role.
        k: the replica's number in the role.
        stream: which output.
    """

    def __init__(self, runner: Runner, handle: str, role_name: str, k: int, stream: Stream) -> None:
        self._runner = runner
        self._handle = handle
        self._role_name = role_name
        self._k = k
        self._stream = stream

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Begin to read after the cursor; see `Scheduler.log_stream`."""
        name, _, app_id = parse_app_handle(self._handle)
        streams = None if self._stream is Stream.COMBINED else self._stream
        return self._runner.scheduler(name).log_stream(app_id, self._role_name, self._k, streams, cursor)

    def is_final(self) -> bool:
        """Whether the app has ended; one that its scheduler no longer knows has."""
        described = self._runner.describe(self._handle)
        return described is None or described.has_ended


def gives_letters(scheduler: Scheduler[Any]) -> bool:
    """Whether the scheduler tells stdout from stderr within one stream: it has a `log_stream` of its own."""
    return type(scheduler).log_stream is not Scheduler.log_stream


def open_replica_log(
    runner: Runner, spools: Callable[[], LogSpools], handle: str, role_name: str, k: int
) -> ReplicaLog:
    """Return where a replica's log is kept, see `Runner.replica_log`.

    Args:
        runner: the door to the scheduler.
        spools: gives what logs are kept in that are no files here.
        handle: the job's handle.
        role_name: the role.
        k: the replica's number in the role.
    """
    from .logs.replica_log import ReplicaLog

    paths = {stream: runner.log_path(handle, role_name, k, stream) for stream in Stream}
    if any(paths.values()):
        return ReplicaLog(role_name, k, paths[Stream.COMBINED], paths[Stream.STDOUT], paths[Stream.STDERR])
    from .logs.spools import SpooledLog

    name, _, _ = parse_app_handle(handle)
    scheduler = runner.scheduler(name)
    return ReplicaLog(
        role_name,
        k,
        spool=SpooledLog(
            spools(),
            handle,
            role_name,
            k,
            lambda stream: ReplicaOrigin(runner, handle, role_name, k, Stream(stream)),
            parted=not gives_letters(scheduler),
            streams={Stream.STDOUT, Stream.STDERR} <= set(scheduler.capabilities.log_streams),
        ),
    )
