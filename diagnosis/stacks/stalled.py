"""The finding of a stalled job: where its ranks stand, the same for the screens and for notifications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...specs import TorchXTuiError
from .conclusion import Conclusion, conclude
from .kept import keep_take, kept_takes
from .take import Take, take_stacks

if TYPE_CHECKING:
    from ...backends.runner import Runner

logger = logging.getLogger(__name__)


def find_stalled(runner: Runner, handle: str, since: float, *, may_take: bool) -> tuple[Take, Conclusion] | None:
    """Return the last stacks since a job stalls and what they mean; None where no rank was read.

    Args:
        runner: asks the job's scheduler.
        handle: the job.
        since: when it made its last step (seconds since the epoch).
        may_take: take and keep new stacks, in ways that stop no process, where there are none since.
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
