"""The command cluster: what of each backend is free."""

from __future__ import annotations

import dataclasses
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..backends.abilities import DescribesCluster, EstimatesStarts
from ..backends.shared.cluster_columns import pool_table
from ..backends.types import StartEstimate
from ..base.errors import describe_error, join_names
from ..base.timeouts import AwaitedCall, LimitedCaller, NoAnswerError
from ..settings.make_runner import make_runner
from ..specs.errors import SchedulerError
from .output import put, put_json, put_table, say, terminal_width

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..backends.types import ClusterStatus
    from ..settings.config import Settings

# For all backends together (s): Slurm's own commands give up after 25 s.
_LIMIT_S = 30.0
# Estimates end so long before (s): what is free is printed also where they take too long.
_RESERVE_S = 5.0


def cluster(arguments: Any, settings: Settings) -> int:
    """Print the pools of one scheduler or of all, which are asked at the same time.

    Returns:
        0; 1 if no scheduler answers.

    Raises:
        SchedulerError: the scheduler that was named does not answer, or has no such answer.
    """
    runner = make_runner(settings)
    names = [arguments.scheduler] if arguments.scheduler else runner.watched_schedulers()
    deadline = time.monotonic() + _LIMIT_S
    calls = {name: AwaitedCall(partial(_ask, runner, name, arguments, deadline), f"cluster-{name}") for name in names}
    found: dict[str, ClusterStatus] = {}
    for name, call in calls.items():
        try:
            if not call.wait(max(0.0, deadline - time.monotonic())):
                raise NoAnswerError(f"no answer within {_LIMIT_S:g} s")
            status = call.result()
        except Exception as error:
            if arguments.scheduler:
                raise
            say(f"{name} is left out: {describe_error(error)}")
        else:
            if status is not None:
                found[name] = status
                if not arguments.json:
                    _print(name, status, is_first=len(found) == 1)
    if arguments.json:
        put_json({name: dataclasses.asdict(status) for name, status in found.items()})
    return 0 if found else 1


def _ask(runner: Runner, name: str, arguments: Any, deadline: float) -> ClusterStatus | None:
    """Ask a scheduler; return None if it has no such answer and was not named."""
    scheduler = runner.scheduler(name)
    if not isinstance(scheduler, DescribesCluster):
        if not arguments.scheduler:
            return None
        able = join_names(filter(partial(_is_able, runner), runner.watched_schedulers()))
        raise SchedulerError(f"{name} does not show what is free. Valid: {able or 'none'}")
    status = scheduler.cluster()
    if not arguments.starts or not isinstance(scheduler, EstimatesStarts):
        return status
    caller = LimitedCaller("estimate-start")
    pools = [
        replace(pool, estimate=_estimate(caller, scheduler, pool.name, deadline - _RESERVE_S)) for pool in status.pools
    ]
    return replace(status, pools=pools)


def _estimate(caller: LimitedCaller, scheduler: EstimatesStarts, pool: str, deadline: float) -> StartEstimate:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        return StartEstimate(fault="not asked: no time was left")
    try:
        return caller.call(partial(scheduler.estimate_start, pool), left_s)
    except NoAnswerError:
        return StartEstimate(fault="no answer in time")
    except Exception as error:  # whatever a plugin raises
        return StartEstimate(fault=describe_error(error))


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
