"""Launches that take long before anything runs: how far they are, and a way to end them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backends.progress import Progress
from .messages import LaunchProgressed

if TYPE_CHECKING:
    from .app import TorchXTuiApp
    from .screens.launch_dialog import LaunchDialog


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
        dialog = self._dialogs.get(message.progress)
        if dialog is None and not message.progress.is_over:
            from .screens.launch_dialog import LaunchDialog

            dialog = self._dialogs[message.progress] = LaunchDialog(message.what, message.progress)
            self._app.push_screen(dialog)
        if dialog is not None:
            dialog.say(message.text)

    def end(self, progress: Progress) -> None:
        """Take note of a launch's end."""
        progress.is_over = True
        dialog = self._dialogs.pop(progress, None)
        if dialog is not None:
            dialog.leave()
