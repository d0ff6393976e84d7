"""Launches that take long before anything runs: how far they are, and a way to end them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backends.shared.progress import Progress
from .messages import LaunchProgressed

if TYPE_CHECKING:
    from .app import TorchXTuiApp
    from .screens.launch_dialog import LaunchDialog


# A launch that is over so soon after its first word (s) shows no dialog, only words in the status line.
SOON = 2.0


class LaunchWatch:
    """Shows a dialog for a launch once that has something to say, and takes it away at its end.

    Args:
        app: the app whose launches they are.
    """

    def __init__(self, app: TorchXTuiApp) -> None:
        self._app = app
        self._dialogs: dict[Progress, LaunchDialog] = {}

    def begin(self, what: str) -> Progress:
        """Return what a launch reports to; `end` is called for it.

        Args:
            what: is launched, in words.
        """
        progress = Progress(lambda text: self._app.post_from_thread(LaunchProgressed(progress, what, text)))
        return progress

    def show(self, message: LaunchProgressed) -> None:
        """Show how far a launch is."""
        progress = message.progress
        if progress.is_over:
            return
        if progress not in self._dialogs:
            from .screens.launch_dialog import LaunchDialog

            self._dialogs[progress] = LaunchDialog(message.what, progress)
            self._app.set_timer(SOON, lambda: self._open(progress))
        if not self._dialogs[progress].is_attached:
            self._app.say(message.text)
        self._dialogs[progress].say(message.text)

    def _open(self, progress: Progress) -> None:
        dialog = self._dialogs.get(progress)
        if dialog is not None:
            self._app.push_screen(dialog)

    def end(self, progress: Progress) -> None:
        """Take note of a launch's end."""
        progress.is_over = True
        dialog = self._dialogs.pop(progress, None)
        if dialog is not None and dialog.is_attached:
            dialog.leave()
