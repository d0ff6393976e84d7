"""Stacks of a stalled job and their conclusion, for the screens and for notifications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError
from .conclusion import Conclusion, conclude
from .kept import keep_take, kept_takes
from .take import Take, take_stacks

if TYPE_CHECKING:
    from ...backends.runner import Runner

logger = logging.getLogger(__name__)


def find_stalled(runner: Runner, handle: str, since: float, *, may_take: bool) -> tuple[Take, Conclusion] | None:
    """Return the latest snapshot since a job stalled, with its conclusion; None if no rank could be read.

    Args:
        runner: gives access to the job's scheduler.
        handle: the job's handle.
        since: time of its last step (seconds since the epoch).
        may_take: if there is no such snapshot, take and keep one without stopping processes.
    """
    kept = [take for take in kept_takes(handle, 1) if take.at >= since]
    if not kept and not may_take:
        return None
    try:
        take = kept[0] if kept else take_stacks(runner, handle, stop=False)
    except (TorchXTuiError, ValueError) as error:
        logger.info("no stacks of %s: %s", handle, error)
        return None
    if not take.ways:
        return None
    if not kept:
        keep_take(take)
    return take, conclude(take)
