"""Tells of jobs beside the screen: a helper for who is away, the terminal's own note."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...notify.helper import tell_of, terminal_sequence
from ...settings.helper_request import Happened
from ...specs.files import user_name
from ..terminal.textual_internals import write_to_terminal

if TYPE_CHECKING:
    from ..app import TorchXTuiApp
    from ..rows import JobRow


def tell_away(app: TorchXTuiApp, rows: Sequence[JobRow], event: str, words: str, sentence: str = "") -> None:
    """Tell as ``[notify]`` says of jobs of this user.

    Args:
        app: the dashboard.
        rows: the jobs.
        event: what happened to them, see `Happened`.
        words: what the terminal says.
        sentence: says it; empty where the helper is to find out.
    """
    settings = app.settings
    if settings.notify.terminal and (event in settings.notify.events or event == "failure"):
        write_to_terminal(app, terminal_sequence(words))
    mine = [row for row in rows if not row.foreign or row.user == user_name()]
    # The supervisor of a job on this machine tells by itself.
    happened = [Happened(row.handle, event, sentence) for row in mine if row.scheduler != "local_cwd"]
    if happened and settings.notify.has_channel:
        app.run_worker(lambda: tell_of(settings, happened), thread=True, group="notify", exit_on_error=False)
