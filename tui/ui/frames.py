"""When a frame may be drawn: only once the terminal has taken the last one, so that frames never pile up."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.await_complete import AwaitComplete

from ..dashboard import OnDashboard
from ..terminal.textual_internals import GatedUpdates, terminal_output

# Repaints a second of a log that grows, and bytes a second that they may cost.
_MOST_REPAINTS = 8
_BYTES_A_SECOND = 76_000


def repaint_interval(sent: int) -> float:
    """Return the seconds from a repaint that sent so many bytes to the next one, while lines come without a pause."""
    return max(1 / _MOST_REPAINTS, sent / _BYTES_A_SECOND)


def bytes_written(app: App[Any]) -> int:
    """Return how many bytes were written to the app's terminal; 0 for an app without one."""
    output = terminal_output(app)
    return 0 if output is None else output.written


def is_terminal_ready(app: App[Any]) -> bool:
    """Return whether the app's terminal has taken the last frame; an app without a terminal is always ready."""
    output = terminal_output(app)
    return output is None or output.is_ready()


class PacedScreen(OnDashboard, GatedUpdates):
    """What all screens do; to be named before `Screen` among a screen's bases.

    What changes while the terminal has not taken the last frame is drawn at once afterwards, as it is by then. A screen
    leaves only while it is on top, and its workers are heard when they fail.
    """

    app: Any
    is_active: Any

    # The answer to leave with once the screen is on top again, in a tuple since it may be None.
    _answer: tuple[Any] | None = None

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave with an answer, as soon as no other screen is above; nothing happens where that was done already.

        Textual takes away whatever screen is on top: of two keys that come at once the second would take the one below.
        """
        if self.is_active:
            self._answer = None
            return super().dismiss(result)  # type: ignore[misc]
        if self._answer is None and self in self.app.screen_stack:
            self._answer = (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        """Leave if that was due while another screen was above."""
        if self._answer is not None:
            self.dismiss(*self._answer)

    def may_draw(self) -> bool:
        """Return whether the terminal has taken the last frame."""
        return is_terminal_ready(self.app)
