"""The logs of a described job, one for each replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backends.api import DescribeAppResponse, Stream
from ..backends.logs.replica_log import ReplicaLog

if TYPE_CHECKING:
    from ..backends.runner import Runner


def replica_logs(runner: Runner, handle: str, described: DescribeAppResponse) -> list[ReplicaLog]:
    """Return the log of every replica of ``described``, in the order of its roles.

    Replicas are numbered through all roles, so that each has a number of its own in the pane.
    """
    logs: list[ReplicaLog] = []
    for role in described.roles:
        for k in range(role.num_replicas):
            paths = {stream: runner.log_path(handle, role.name, k, stream) for stream in Stream}
            logs.append(
                ReplicaLog(
                    role.name,
                    k,
                    combined=paths[Stream.COMBINED],
                    stdout=paths[Stream.STDOUT],
                    stderr=paths[Stream.STDERR],
                )
            )
    return logs
