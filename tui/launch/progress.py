"""Dialogs of slow launches: their progress, and a way to cancel them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.screen import Screen

from ...backends.shared.progress import Progress
from ..messages import LaunchProgressed
from .progress_dialog import LaunchDialog

if TYPE_CHECKING:
    from ..dashboard import Dashboard

# Seconds from the first report of a launch to its dialog; shorter launches report in the status line.
SOON = 2.0


class _Begun(NamedTuple):
    """A launch under way: its dialog, the screen that it was begun on, and when (`time.monotonic`)."""

    dialog: LaunchDialog
    screen: Screen[Any]
    at: float


class LaunchWatch:
    """Shows a dialog for each launch that reports progress, until its end."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._begun: dict[Progress, _Begun] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, what: str) -> Progress:
        """Make the `Progress` of a launch, named ``what``; call `end` with it afterwards."""
        progress = Progress(lambda text: self._app.post_from_thread(LaunchProgressed(progress, what, text)))
        self._idle.clear()
        self._begun[progress] = _Begun(LaunchDialog(what, progress), self._app.screen, time.monotonic())
        return progress

    @property
    def names(self) -> list[str]:
        """The names of all launches under way."""
        return [begun.dialog.what for begun in self._begun.values()]

    def cancel(self) -> None:
        """Cancel all launches under way."""
        for progress in [*self._begun]:
            progress.cancel()

    async def ended_within(self, seconds: float) -> bool:
        """Wait until no launch is under way; return whether that was within these seconds."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return not self._begun

    @property
    def under_way(self) -> list[tuple[str, Progress]]:
        """Names and progress of the launches that have reported."""
        return [(begun.dialog.what, progress) for progress, begun in self._begun.items() if begun.dialog.has_reports]

    def show(self, message: LaunchProgressed) -> None:
        """Show a report; one that comes after the end of its launch is ignored."""
        progress = message.progress
        if progress not in self._begun:
            return
        dialog = self._begun[progress].dialog
        if not dialog.has_reports:
            self._app.set_timer(SOON, lambda: self._open(progress))
        if not dialog.is_attached:
            self._app.status.say(message.text)
        dialog.say(message.text)

    def _open(self, progress: Progress) -> None:
        """Open the dialog unless the user has moved on to something else."""
        begun = self._begun.get(progress)
        # An app that ends has no screen.
        if begun is None or not self._app.screen_stack or self._app.screen is not begun.screen:
            return
        if self._app.feed.last_key_at < begun.at:
            self.open(progress)

    def open(self, progress: Progress) -> None:
        """Open the dialog of a launch; nothing happens after its end."""
        begun = self._begun.get(progress)
        if begun is not None and not begun.dialog.is_attached:
            self._app.push_screen(begun.dialog)

    def end(self, progress: Progress) -> None:
        """Close the dialog of a launch that has ended."""
        begun = self._begun.pop(progress, None)
        if not self._begun:
            self._idle.set()
        if begun is not None and begun.dialog.is_attached:
            begun.dialog.dismiss()
