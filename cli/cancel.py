"""The commands cancel, delete and prune."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..backends.types import BY_TORCHX
from ..base.errors import describe_error
from ..logs.text.sanitize import plain
from ..settings.make_runner import make_runner
from .jobs import describe_job, with_job
from .output import say

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import Settings

_SECONDS_PER_DAY = 86400.0


def cancel(arguments: Any, settings: Settings) -> int:
    with with_job(settings, arguments.handle) as (_, job):
        found = describe_job(job)
        if found.has_ended:
            say(f"{job.handle} has ended already: {found.state.name}")
        job.cancel()
    return 0


def delete(arguments: Any, settings: Settings) -> int:
    with with_job(settings, arguments.handle) as (_, job):
        found = describe_job(job)
        job.delete()
        if BY_TORCHX in found.notes:
            say(f"{job.handle} is no longer shown; its logs are TorchX's and stay in {plain(found.log_dir)}")
    return 0


def prune(arguments: Any, settings: Settings) -> int:
    """Print the handle of each deleted job; a job that cannot be deleted does not keep the others."""
    code = 0
    with make_runner(settings) as runner:
        if arguments.older_than is None:
            for handle in runner.prune(arguments.scheduler, dryrun=arguments.dryrun):
                print(handle)
            return code
        if not arguments.dryrun:
            runner.refuse_if_read_only("Deleting a job")
        for handle in _ended_before(runner, arguments.scheduler, time.time() - arguments.older_than * _SECONDS_PER_DAY):
            try:
                if not arguments.dryrun:
                    runner.job(handle).delete()
            except Exception as error:  # of a scheduler of another package too
                say(f"{handle} was not deleted: {describe_error(error)}")
                code = 2
            else:
                print(handle, flush=True)
    return code


def _ended_before(runner: Runner, scheduler: str, limit: float) -> list[str]:
    """Return the handles of this user's jobs that ended before a time (seconds since the epoch)."""
    from ..base.files import user_name

    user = user_name()
    return [
        app.app_handle
        for app in runner.list(scheduler)
        if app.user == user and not app.foreign and app.finished_at is not None and app.finished_at < limit
    ]
