"""The stacks of a stalled job, for the screens and for notifications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError
from .collect import take_snapshot
from .conclusion import Conclusion, conclude
from .kept import keep_snapshot, kept_snapshots
from .snapshot import StackSnapshot

if TYPE_CHECKING:
    from ...backends.runner import Runner

logger = logging.getLogger(__name__)


def find_stalled(
    runner: Runner, handle: str, since: float, *, may_take: bool
) -> tuple[StackSnapshot, Conclusion] | None:
    """Return the latest snapshot since a job stalled, with its conclusion; None if no rank could be read.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        since: time of its last step (seconds since the epoch).
        may_take: if there is no such snapshot, take and keep one without stopping processes.
    """
    kept = [snapshot for snapshot in kept_snapshots(handle, 1) if snapshot.at >= since]
    if not kept and not may_take:
        return None
    try:
        snapshot = kept[0] if kept else take_snapshot(runner, handle, stop=False)
    except (TorchXTuiError, ValueError) as error:
        logger.info("no stacks of %s: %s", handle, error)
        return None
    if not snapshot.ways:
        return None
    if not kept:
        keep_snapshot(snapshot)
    return snapshot, conclude(snapshot)
