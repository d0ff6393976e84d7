"""The message of the status line."""

from __future__ import annotations

import logging
from collections.abc import Callable

from textual.timer import Timer
from textual.worker import Worker, WorkerState

_log = logging.getLogger(__name__)

STATUS_SECONDS = 6.0
"""How long a message stays unless it reports a failure."""


class Status:
    """The message that every screen shows.

    Args:
        set_timer: calls a function after some seconds.
        on_change: called when the message is another one.
    """

    def __init__(
        self, set_timer: Callable[[float, Callable[[], object]], Timer], on_change: Callable[[], object]
    ) -> None:
        self.message = ""
        self.failed = False
        """Whether the message reports a failure."""
        self._set_timer = set_timer
        self._on_change = on_change
        self._about = ""
        # The text, whether it reports a failure, and the subject of a message that waits.
        self._later: tuple[str, bool, str] | None = None
        self._timer: Timer | None = None

    def say(self, text: str, *, failed: bool = False, about: str = "") -> None:
        """Show a message for a few seconds, or until the next key if it reports a failure.

        Args:
            text: the message.
            failed: whether it reports a failure.
            about: the backend or the job that it is about; empty for the answer to a key. A message about something
                waits while an answer reports a failure, and `recovered` removes it.
        """
        from ..backends.shared.secrets import mask_text
        from ..logs.text.sanitize import plain

        if about and self.failed and not self._about:
            self._later = text, failed, about
            return
        self.message, self.failed, self._about = mask_text("", plain(text)), failed, about
        if self._timer is not None:
            self._timer.stop()
        self._timer = None if failed else self._set_timer(STATUS_SECONDS, self.clear)
        self._on_change()

    def say_failed(self, event: Worker.StateChanged) -> None:
        """Report a worker that failed; other changes of its state are ignored."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            from ..base.errors import describe_error

            _log.error("%s failed", event.worker.group, exc_info=error)
            self.say(f"{event.worker.group}: {describe_error(error)}; see the log file", failed=True)

    def clear(self) -> None:
        """Remove the message."""
        if self.message:
            self.message, self.failed, self._about = "", False, ""
            self._on_change()

    def clear_failure(self) -> None:
        """Remove the message of a failure, and show the one that waits."""
        if self.failed:
            self.clear()
        later, self._later = self._later, None
        if later is not None:
            text, failed, about = later
            self.say(text, failed=failed, about=about)

    def is_about(self, subject: str) -> bool:
        """Return whether the message reports a failure of this backend or job."""
        return self._about == subject

    def recovered(self, about: str) -> None:
        """Remove the message of a failure that a backend or a job has recovered from."""
        if self._later is not None and self._later[2] == about:
            self._later = None
        if self._about == about:
            self.clear_failure()
