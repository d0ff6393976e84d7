"""Where the log of a replica is: in files, or in a spool that is filled from its scheduler."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from ..specs.handles import parse_app_handle
from .api import Scheduler, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..logs.source.replica_log import ReplicaLog
    from ..logs.source.stream import Cursor, LogStream
    from ..logs.spool.spools import LogSpools
    from .types import DescribeAppResponse


class ReplicaOrigin:
    """One replica's log at its scheduler.

    Args:
        scheduler: the job's scheduler.
        app_id: the job's id there.
        role_name: the role.
        k: the replica's number in the role.
        stream: which output.
        describe: gives what is known of the job now.
    """

    def __init__(
        self,
        scheduler: Scheduler[Any],
        app_id: str,
        role_name: str,
        k: int,
        stream: Stream,
        describe: Callable[[], DescribeAppResponse | None],
    ) -> None:
        self._scheduler = scheduler
        self._app_id = app_id
        self._role_name = role_name
        self._k = k
        self._stream = stream
        self._describe = describe

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Begin to read after the cursor; see `Scheduler.log_stream`."""
        streams = None if self._stream is Stream.COMBINED else self._stream
        return self._scheduler.log_stream(self._app_id, self._role_name, self._k, streams, cursor)

    def is_final(self) -> bool:
        """Whether the app has ended; one that its scheduler no longer knows has."""
        described = self._describe()
        return described is None or described.has_ended


def replica_logs(
    open_log: Callable[[str, str, int], ReplicaLog], handle: str, described: DescribeAppResponse
) -> list[ReplicaLog]:
    """Return the log of every replica of ``described``, in the order of its roles.

    Replicas are numbered through all roles, so that each has a number of its own in a view of all.

    Args:
        open_log: `Runner.replica_log`.
        handle: the job's handle.
        described: what its backend says of it.
    """
    opened = functools.cache(lambda role, k: open_log(handle, role, k))
    return [opened(*target) for target in log_targets(described, lambda role, k: opened(role, k).spool is None)]


def log_targets(described: DescribeAppResponse, has_file: Callable[[str, int], bool]) -> list[tuple[str, int]]:
    """Return the replicas of a job that have a log, by role and number.

    They are the replicas of its roles. A backend may report others, such as the tasks of an array or the steps of a
    batch script: then these are returned, up to the first without a log file.

    Args:
        described: the backend's description of the job.
        has_file: returns whether the log of a replica is a file.
    """
    asked = [(role.name, k) for role in described.roles for k in range(role.num_replicas)]
    told = [(status.role, replica.id) for status in described.roles_statuses for replica in status.replicas]
    if {*told} <= {*asked}:
        return asked
    return [*itertools.takewhile(lambda target: target in asked or has_file(*target), told)] or asked


def open_replica_log(
    scheduler: Scheduler[Any],
    handle: str,
    role_name: str,
    k: int,
    describe: Callable[[], DescribeAppResponse | None],
    spools: Callable[[], LogSpools],
) -> ReplicaLog:
    """Return where a replica's log is kept, see `Runner.replica_log`.

    Args:
        scheduler: the job's scheduler.
        handle: the job's handle.
        role_name: the role.
        k: the replica's number in the role.
        describe: gives what is known of the job now.
        spools: gives what logs are kept in that are no files here.
    """
    from ..logs.source.replica_log import ReplicaLog

    app_id = parse_app_handle(handle).app_id
    paths = {stream: scheduler.log_path(app_id, role_name, k, stream) for stream in Stream}
    if any(paths.values()):
        return ReplicaLog(role_name, k, paths[Stream.COMBINED], paths[Stream.STDOUT], paths[Stream.STDERR])
    from ..logs.spool.reader import SpooledLog

    # A scheduler with a `log_stream` of its own tells stdout from stderr within one stream.
    has_letters = type(scheduler).log_stream is not Scheduler.log_stream
    spool = SpooledLog(
        spools(),
        handle,
        role_name,
        k,
        lambda stream: ReplicaOrigin(scheduler, app_id, role_name, k, Stream(stream), describe),
        parted=not has_letters,
        streams={Stream.STDOUT, Stream.STDERR} <= set(scheduler.capabilities.log_streams),
    )
    return ReplicaLog(role_name, k, spool=spool)
