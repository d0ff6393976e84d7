"""Dialogs of slow launches: their progress, and a way to cancel them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from ...backends.shared.progress import Progress
from ..messages import LaunchProgressed

if TYPE_CHECKING:
    from ..dashboard import Dashboard
    from .progress_dialog import LaunchDialog


# Seconds from the first report of a launch to its dialog; shorter launches report in the status line.
SOON = 2.0


class LaunchWatch:
    """Shows a dialog for each launch that reports progress, until its end."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._dialogs: dict[Progress, LaunchDialog] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        # The name of each, the screen that it was begun on, and when (`time.monotonic`).
        self._begun: dict[Progress, tuple[str, Screen[Any], float]] = {}

    def begin(self, what: str) -> Progress:
        """Make the `Progress` of a launch, named ``what``; call `end` with it afterwards."""
        progress = Progress(lambda text: self._app.post_from_thread(LaunchProgressed(progress, what, text)))
        self._idle.clear()
        self._begun[progress] = what, self._app.screen, time.monotonic()
        return progress

    @property
    def names(self) -> list[str]:
        """The names of all launches under way."""
        return [what for what, _, _ in self._begun.values()]

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
        return [(dialog.what, progress) for progress, dialog in self._dialogs.items()]

    def show(self, message: LaunchProgressed) -> None:
        """Show a report."""
        progress = message.progress
        if progress.is_over:
            return
        if progress not in self._dialogs:
            from .progress_dialog import LaunchDialog

            self._dialogs[progress] = LaunchDialog(message.what, progress)
            self._app.set_timer(SOON, lambda: self._open(progress))
        if not self._dialogs[progress].is_attached:
            self._app.status.say(message.text)
        self._dialogs[progress].say(message.text)

    def _open(self, progress: Progress) -> None:
        """Open the dialog unless the user has moved on to something else."""
        _, screen, at = self._begun.get(progress, ("", None, 0.0))
        # An app that ends has no screen.
        if self._app.screen_stack and self._app.screen is screen and self._app.feed.last_key_at < at:
            self.open(progress)

    def open(self, progress: Progress) -> None:
        """Open the dialog of a launch; nothing happens after its end."""
        dialog = self._dialogs.get(progress)
        if dialog is not None and not dialog.is_attached:
            self._app.push_screen(dialog)

    def end(self, progress: Progress) -> None:
        """Close the dialog of a launch that has ended."""
        progress.is_over = True
        self._begun.pop(progress, None)
        if not self._begun:
            self._idle.set()
        dialog = self._dialogs.pop(progress, None)
        if dialog is not None and dialog.is_attached:
            dialog.leave()
