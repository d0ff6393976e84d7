"""The helper: ``python -m torchx_tui.notify``, which reads on stdin what happened and tells of it.

The supervisor of a local job starts it, or a dashboard; nobody waits for it. With an event ``start`` it stays beside
the job until it has told of its first step and of a stall, or the job has ended.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from ..backends.replica_logs import replica_logs
from ..backends.shared.secrets import choose_patterns
from ..base.files import path_exists, private_folder, state_folder
from ..base.threads import report_thread_failures
from ..diagnosis.progress.activity import job_place
from ..diagnosis.progress.reader import ActivityReader, measure_cores
from ..diagnosis.progress.stalls import Kind, Observation
from ..diagnosis.stacks.stalled import find_stalled
from ..settings.helper_request import Happened, read_request
from ..settings.make_runner import make_runner
from ..specs.status import AppState
from .channels import deliver
from .helper import claim, is_wanted
from .message import END, FAILURE, FIRST_STEP, STALL, compose

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import NotifySettings, Settings

logger = logging.getLogger(__name__)

_MOST_REQUEST = 1 << 24
_MOST_LOG = 1 << 20
# How often a job that is watched is looked at, and asked whether it has ended (s).
_LOOK_S = 2.0


def main() -> None:
    """Read the request and tell of what happened."""
    settings, happened = read_request(sys.stdin.read(_MOST_REQUEST))
    choose_patterns(settings.secret_names)
    folder = state_folder() / "notify"
    private_folder(folder)
    path = folder / "notify.log"
    is_long = path_exists(path) and path.stat().st_size > _MOST_LOG
    os.umask(0o077)
    logging.basicConfig(
        filename=path, filemode="w" if is_long else "a", format="%(asctime)s %(message)s", level=logging.WARNING
    )
    report_thread_failures(lambda _: None)
    os.nice(5)
    with make_runner(settings) as runner:
        for item in happened:
            try:
                if item.event == "start":
                    watch(runner, item.handle, settings)
                else:
                    tell(runner, item, settings.notify)
            except Exception:
                logger.exception("%s of %s is not told", item.event, item.handle)
    # Threads that hang with a channel are left behind.
    logging.shutdown()
    os._exit(0)


def tell(runner: Runner, happened: Happened, settings: NotifySettings) -> None:
    """Tell of what happened to a job, unless that was done already; an end is told once, whatever it is called."""
    message = compose(runner, happened.handle, happened.event, happened.sentence)
    if message is None:
        return
    if happened.event in (END, FAILURE):
        if message.state not in (AppState.SUCCEEDED.name, AppState.FAILED.name, AppState.CANCELLED.name):
            return
        if END not in settings.events and not is_wanted(happened.handle) and message.state != AppState.FAILED.name:
            return
    if not claim(happened.handle, END if happened.event == FAILURE else happened.event):
        return
    for name, error in deliver(message, settings).items():
        if error:
            logger.error("%s of %s is not told: %s: %s", happened.event, happened.handle, name, error)


def watch(runner: Runner, handle: str, settings: Settings) -> None:
    """Tell of a job's first step and of a stall, while it runs."""
    waited = {event for event in (STALL, FIRST_STEP) if event in settings.notify.events}
    reader: ActivityReader | None = None
    was_stalled = False
    try:
        while waited:
            described = runner.describe(handle)
            if described is None or described.has_ended:
                return
            if reader is None and described.state is AppState.RUNNING:
                logs = replica_logs(runner.replica_log, handle, described)
                names = (settings.metrics.denied, settings.metrics.names, settings.metrics.patterns)
                reader = ActivityReader(
                    handle, logs, partial(job_place, runner, handle, described), lambda: None, *names
                )
                reader.start()
            if reader is not None:
                reader.acknowledge()
                stall = reader.latest.observed(Kind.STALLED)
                news = {FIRST_STEP: _first_step(reader)}
                # Report a stall only after a CPU measurement: a busy job is not stalled.
                if stall is not None and was_stalled:
                    news[STALL] = _stall_words(runner, handle, stall, settings)
                was_stalled = stall is not None
                if was_stalled and STALL in waited:
                    reader.cores = measure_cores(runner, handle)
                for event, sentence in news.items():
                    if sentence and event in waited:
                        waited.discard(event)
                        tell(runner, Happened(handle, event, sentence), settings.notify)
            time.sleep(_LOOK_S)
    finally:
        if reader is not None:
            reader.close()


def _first_step(reader: ActivityReader) -> str:
    progress = reader.latest.progress
    total = f" of {progress.total:,.0f}" if progress.total else ""
    return f"step {progress.step:,.0f}{total}" if progress.step else ""


def _stall_words(runner: Runner, handle: str, stall: Observation, settings: Settings) -> str:
    """Return what is told of a stall: the pause, and where the ranks stand, as the Job screen says it."""
    since = stall.since if math.isfinite(stall.since) else time.time()
    found = find_stalled(runner, handle, since, may_take=settings.watch.stacks_of_stalled)
    return f"{stall.sentence}; {found[1].sentence}" if found else stall.sentence


if __name__ == "__main__":
    main()
