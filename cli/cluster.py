"""The command cluster: what of each backend is free."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..backends.abilities import DescribesCluster
from ..backends.shared.cluster_columns import pool_table
from ..base.errors import describe_error, join_names
from ..settings.make_runner import make_runner
from ..specs.errors import SchedulerError
from .output import put, put_json, put_table, say, terminal_width

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..backends.types import ClusterStatus
    from ..settings.config import Settings


def cluster(arguments: Any, settings: Settings) -> int:
    """Print the pools of one scheduler or of all that answer; return 1 if none does.

    Raises:
        SchedulerError: the scheduler that was named does not answer, or has no such answer.
    """
    runner = make_runner(settings)
    names = [arguments.scheduler] if arguments.scheduler else runner.watched_schedulers()
    found: dict[str, ClusterStatus] = {}
    for name in names:
        try:
            scheduler = runner.scheduler(name)
            if isinstance(scheduler, DescribesCluster):
                found[name] = scheduler.cluster()
                if not arguments.json:
                    _print(name, found[name], is_first=len(found) == 1)
            elif arguments.scheduler:
                able = join_names(filter(partial(_is_able, runner), runner.watched_schedulers()))
                raise SchedulerError(f"{name} does not show what is free. Valid: {able or 'none'}")
        except Exception as error:
            if arguments.scheduler:
                raise
            say(f"{name}: {describe_error(error)}")
    if arguments.json:
        put_json({name: dataclasses.asdict(status) for name, status in found.items()})
    return 0 if found else 1


def _is_able(runner: Runner, name: str) -> bool:
    with suppress(Exception):  # whatever a plugin raises
        return isinstance(runner.scheduler(name), DescribesCluster)
    return False


def _print(name: str, status: ClusterStatus, *, is_first: bool) -> None:
    put(f"{'' if is_first else chr(10)}{name}, free/all")
    table = pool_table(status)
    if table.rows:
        put_table([table.labels, *table.rows], terminal_width() if sys.stdout.isatty() else 0)
    for sentence in (*status.notes, *status.limits):
        put(f"  {sentence}")
