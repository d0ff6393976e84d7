"""The helper process: ``python -m torchx_tui.notify``. It reads events on stdin and sends notifications of them.

The supervisor of a local job starts it, or a dashboard; nothing waits for it. After the event ``start`` it watches the
job for its first step and for stalls, or leaves that to the helper that already watches other jobs.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from ..backends.shared.secrets import choose_patterns
from ..base.files import path_exists, private_folder, state_folder
from ..base.threads import report_thread_failures
from ..settings.helper_request import Happened, read_request
from ..settings.make_runner import make_runner
from ..specs.status import AppState
from .channels import deliver
from .helper import is_wanted, send_once
from .message import END, FAILURE, compose
from .watcher import watch

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import NotifySettings

logger = logging.getLogger(__name__)

_MAX_REQUEST = 1 << 24
_MAX_LOG = 1 << 20


def main() -> None:
    """Read the request and send its events."""
    settings, happened = read_request(sys.stdin.read(_MAX_REQUEST))
    choose_patterns(settings.secret_names)
    folder = state_folder() / "notify"
    private_folder(folder)
    path = folder / "notify.log"
    is_long = path_exists(path) and path.stat().st_size > _MAX_LOG
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
                    watch(settings, item.handle)
                else:
                    send(runner, item, settings.notify)
            except Exception:
                logger.exception("%s of %s was not sent", item.event, item.handle)
    # Do not wait for threads that hang in a channel.
    logging.shutdown()
    os._exit(0)


def send(runner: Runner, happened: Happened, settings: NotifySettings) -> None:
    """Send an event of a job on all channels, unless it was sent before; all kinds of ends are one event."""
    message = compose(runner, happened.handle, happened.event, happened.sentence)
    if message is None:
        return
    if happened.event in (END, FAILURE):
        if message.state not in (AppState.SUCCEEDED.name, AppState.FAILED.name, AppState.CANCELLED.name):
            return
        if END not in settings.events and not is_wanted(happened.handle) and message.state != AppState.FAILED.name:
            return

    def deliver_all() -> bool:
        errors = deliver(message, settings)
        for name, error in errors.items():
            if error:
                logger.error("%s of %s was not sent: %s: %s", happened.event, happened.handle, name, error)
        return not all(errors.values())

    send_once(happened.handle, END if happened.event == FAILURE else happened.event, deliver_all)


if __name__ == "__main__":
    main()
