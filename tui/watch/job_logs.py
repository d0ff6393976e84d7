"""The logs of a described job, one for each replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog


def replica_logs(runner: Runner, handle: str, described: DescribeAppResponse) -> list[ReplicaLog]:
    """Return the log of every replica of ``described``, in the order of its roles.

    Replicas are numbered through all roles, so that each has a number of its own in the pane.
    """
    return [runner.replica_log(handle, role.name, k) for role in described.roles for k in range(role.num_replicas)]
