"""The commands that end jobs and remove what is kept of them: cancel, delete, prune."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..backends.types import BY_TORCHX
from ..logs.text.sanitize import plain
from ..settings.make_runner import make_runner
from ..specs.status import is_terminal
from .output import say
from .status import described

if TYPE_CHECKING:
    import argparse

    from ..backends.runner import Runner
    from ..settings.config import Settings

_SECONDS_A_DAY = 86400.0


def _add_handle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")


def _add_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--scheduler", default="local_cwd", help="the scheduler; default: local_cwd")
    parser.add_argument(
        "--older-than",
        type=_days,
        metavar="DAYS",
        help="delete jobs that ended before so many days; default: keep_days and keep_gigabytes of config.toml",
    )
    parser.add_argument("--dryrun", action="store_true", help="print the handles without deleting")


def _days(text: str) -> float:
    import argparse
    import math

    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: give a number of days, such as 7 or 0.5")
    return days


def _cancel(arguments: Any, settings: Settings) -> int:
    with make_runner(settings) as runner:
        found = described(runner, arguments.handle)
        if is_terminal(found.state):
            say(f"{arguments.handle} has ended already: {found.state.name}")
        runner.job(arguments.handle).cancel()
    return 0


def _delete(arguments: Any, settings: Settings) -> int:
    with make_runner(settings) as runner:
        found = described(runner, arguments.handle)
        runner.job(arguments.handle).delete()
        if BY_TORCHX in found.notes:
            say(f"{arguments.handle} is no longer shown; its logs are TorchX's and stay in {plain(found.log_dir)}")
    return 0


def _prune(arguments: Any, settings: Settings) -> int:
    with make_runner(settings) as runner:
        if arguments.older_than is None:
            handles = runner.prune(arguments.scheduler, dryrun=arguments.dryrun)
        else:
            handles = _ended(runner, arguments.scheduler, time.time() - arguments.older_than * _SECONDS_A_DAY)
            for handle in [] if arguments.dryrun else handles:
                runner.job(handle).delete()
    for handle in handles:
        print(handle)
    return 0


def _ended(runner: Runner, scheduler: str, before: float) -> list[str]:
    """Return the handles of this user's jobs that ended before a time, in seconds since the epoch."""
    from ..base.files import user_name

    mine = user_name()
    return [
        app.app_handle
        for app in runner.list(scheduler)
        if app.user == mine and not app.foreign and app.finished_at is not None and app.finished_at < before
    ]


COMMANDS = {"cancel": (_add_handle, _cancel), "delete": (_add_handle, _delete), "prune": (_add_prune, _prune)}
