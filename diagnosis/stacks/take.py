"""Take the stacks of a job and conclude from them, for screens, the shell and notifications."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError
from .collect import take_snapshot
from .conclusion import Conclusion, conclude
from .kept import keep_snapshot, kept_snapshots
from .rank_errors import read_rank_errors
from .snapshot import StackSnapshot

if TYPE_CHECKING:
    from ...backends.runner import Runner

logger = logging.getLogger(__name__)

PAUSE_S = 2.0
"""Seconds between two snapshots, which tell a job that hangs from a slow one."""


def take_stacks(
    runner: Runner,
    handle: str,
    *,
    role: str = "",
    native: bool = False,
    stop: bool = True,
    earlier: StackSnapshot | None = None,
) -> tuple[StackSnapshot, Conclusion]:
    """Take and keep a snapshot of a job; see `take_snapshot` for the other arguments and the errors.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        role: the role; empty for the first one.
        native: read frames of C and C++, too.
        stop: use py-spy, which stops each process for some milliseconds.
        earlier: a snapshot some seconds before, to compare with; only the new one is kept.
    """
    snapshot = take_snapshot(runner, handle, role=role, native=native, stop=stop)
    found = conclude(snapshot, earlier, read_rank_errors(runner, snapshot))
    if snapshot.ranks:
        keep_snapshot(replace(snapshot, pace=found.pace), instead_of=earlier)
    return snapshot, found


def find_stalled(
    runner: Runner, handle: str, since: float, *, may_take: bool
) -> tuple[StackSnapshot, Conclusion] | None:
    """Return the latest snapshot since a job stalled, with its conclusion; None if no rank could be read.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        since: time of its last step (seconds since the epoch).
        may_take: if there is no such snapshot, take one without stopping processes.
    """
    for snapshot in kept_snapshots(handle, 1):
        if snapshot.at >= since and snapshot.ways:
            return snapshot, conclude(snapshot)
    if not may_take:
        return None
    try:
        snapshot, found = take_stacks(runner, handle, stop=False)
    except (TorchXTuiError, ValueError) as error:
        logger.info("no stacks of %s: %s", handle, error)
        return None
    return (snapshot, found) if snapshot.ways else None
