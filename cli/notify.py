"""Notifications from the shell: of `run --notify`, and at the end of a job that is waited for."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from ..base.errors import ConfigError
from ..settings.choices import EVENTS
from ..specs.handles import parse_app_handle
from ..specs.status import AppState
from .output import say

if TYPE_CHECKING:
    from ..settings.config import Settings
    from ..specs.status import AppStatus


def with_all_events(settings: Settings) -> Settings:
    """Return the settings with notifications of all events of a job.

    Raises:
        ConfigError: no channel is set up.
    """
    if not (settings.notify.has_channel or settings.notify.terminal):
        raise ConfigError("--notify: set notify.command, webhook, mail or terminal in config.toml")
    return dataclasses.replace(settings, notify=dataclasses.replace(settings.notify, events=EVENTS))


def notify_end(settings: Settings, handle: str, status: AppStatus) -> None:
    """Send the notification of a job's end, unless the supervisor of a local job does."""
    from ..notify.helper import Happened, send_events, terminal_sequence

    name, _, app_id = parse_app_handle(handle)
    event = "failure" if status.state is AppState.FAILED else "end"
    try:
        if name != "local_cwd":
            send_events(settings, [Happened(handle, event)])
    except OSError as error:
        say(f"no notification was sent for {handle}: {error}")
    if settings.notify.terminal and sys.stderr.isatty():
        print(terminal_sequence(f"{app_id} {status.state.name.lower()}"), end="", file=sys.stderr, flush=True)
