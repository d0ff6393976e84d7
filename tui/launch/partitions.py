"""Partitions with room for a launch: free nodes, limits, and when the backend would start it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...backends.abilities import SuggestsPartitions
from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import clock, cut, duration
from ..ui.palette import Text

if TYPE_CHECKING:
    from ...backends.api import PartitionStatus
    from ...backends.runner import Runner
    from .plan import LaunchPlan


@dataclass(frozen=True)
class PartitionsFound:
    """Partitions for a launch, the best first; or the error.

    Attributes:
        partitions: the partitions.
        error: why there are none.
        at: when the backend was asked, in seconds since the epoch.
    """

    partitions: Sequence[PartitionStatus] = ()
    error: str = ""
    at: float = 0.0


def find_partitions(runner: Runner, plan: LaunchPlan) -> PartitionsFound:
    """Ask the backend for the partitions of a launch; it may take seconds."""
    at = time.time()
    try:
        app = plan.app()
        scheduler = runner.scheduler(plan.scheduler)
        partitions = scheduler.partitions(app, plan.cfg) if isinstance(scheduler, SuggestsPartitions) else []
    except Exception as error:
        return PartitionsFound(error=describe_error(error), at=at)
    return PartitionsFound(partitions, at=at)


def partitions_text(found: PartitionsFound | None) -> Text:
    """Return a table of partitions; None while the backend is asked."""
    if found is None:
        return Text("Waiting for the backend's estimates", "$style-faint")
    if found.error:
        return Text(plain(found.error), "$style-removed")
    text = Text(end="", no_wrap=True)
    text.append(f"{'PARTITION':<13}{'NODES':>7}{'GPUS':>8}  {'LIMIT':<7} STARTS\n", "$style-faint")
    for partition in found.partitions:
        gpus = f"{partition.gpus_free}/{partition.gpus}" if partition.gpus else "-"
        limit = duration(partition.limit) if partition.limit is not None else "none"
        start = start_words(partition.start, found.at) if partition.start else ""
        text.append(f"{cut(plain(partition.name), 12, '~'):<13}", "$style-text")
        text.append(f"{f'{partition.free}/{partition.nodes}':>7}{gpus:>8}  {limit:<7} ", "$style-muted")
        text.append(f"{plain(partition.fault) or start}\n", "$style-pending" if partition.fault else "$style-text")
    return text.append(f"\nfree / all, at {clock(found.at, found.at)}, for the current request", "$style-faint")


def start_words(at: float, now: float) -> str:
    """Return when something starts: now, or the time of day or date, and how long that is from now."""
    return "now" if at - now < 60 else f"{clock(at, now)}  in {duration(at - now)}"
