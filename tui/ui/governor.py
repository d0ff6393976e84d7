"""How often may be drawn: as the terminal takes it, and as the event loop keeps up.

A person's key is answered before a log moves on: its frame goes out as soon as little is under way to the terminal,
while a growing log is drawn again only when nothing is, and when the terminal has rested for as long as it was busy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.await_complete import AwaitComplete

from ..dashboard import OnDashboard
from ..terminal.textual_internals import GatedUpdates, terminal_output

if TYPE_CHECKING:
    from ..terminal.output import TerminalOutput

# Repaints a second while lines come, and bytes a second that they may cost (about 1.6 bytes a cell).
_MOST_REPAINTS = 8
_BYTES_A_SECOND = 76_000
_BYTES_A_CELL = 1.6
# With more than this on its way (bytes), frames wait. One more, of some 16 to 30 KB, is what a link of 50 KB/s takes in
# under a second.
_MOST_IN_FLIGHT = 20_000
# When to look again whether the terminal has taken what is on its way (s).
_LOOK = 0.03
# How late the event loop may be (s) before a growing log is drawn half as often, and how that is taken back.
_LATE = 0.1
_SLOWEST = 8.0
_RESTORE = 0.95


def repaint_interval(cells: int) -> float:
    """Return the seconds between two repaints of so many cells while lines come without a pause."""
    return max(1 / _MOST_REPAINTS, cells * _BYTES_A_CELL / _BYTES_A_SECOND)


@dataclass(frozen=True)
class Repaint:
    """A repaint of a growing log: when it was (`time.monotonic`), and the bytes that had been written before it."""

    at: float = 0.0
    written: int = 0


class Governor:
    """Says when to draw."""

    def __init__(self) -> None:
        self._slowness = 1.0

    def output(self) -> TerminalOutput | None:
        """Return the terminal's output; None where nothing is drawn, as under test."""
        return None

    def holds_frames(self) -> bool:
        """Return whether a frame has to wait, whatever it shows."""
        output = self.output()
        return output is not None and output.in_flight() > _MOST_IN_FLIGHT

    def repainted(self) -> Repaint:
        """Return what is to be known of a repaint that begins now."""
        output = self.output()
        self._slowness = max(1.0, self._slowness * _RESTORE)
        return Repaint(time.monotonic(), output.written if output is not None else 0)

    def repaint_delay(self, last: Repaint, cells: int) -> float:
        """Return the seconds until a growing log may be drawn again, 0 for now.

        Args:
            last: its last repaint.
            cells: its size.
        """
        now = time.monotonic()
        due = last.at + repaint_interval(cells) * self._slowness
        output = self.output()
        if output is not None:
            due = max(due, last.at + (output.written - last.written) / _BYTES_A_SECOND, output.rested_at)
            if output.in_flight():
                due = max(due, now + _LOOK)
        return max(0.0, due - now)

    def was_late(self, seconds: float) -> None:
        """Take note of how late the event loop came to a repaint."""
        if seconds > _LATE:
            self._slowness = min(_SLOWEST, self._slowness * 2)


class AppGovernor(Governor):
    """Says when to draw on an app's terminal."""

    def __init__(self, app: App[Any]) -> None:
        super().__init__()
        self._app = app

    def output(self) -> TerminalOutput | None:
        """Return the output of the app's driver, which may be another after the app has left the terminal."""
        return terminal_output(self._app)


def governor_of(app: App[Any]) -> Governor:
    """Return the app's governor; an app without one draws on no terminal."""
    governor = getattr(app, "governor", None)
    return governor if isinstance(governor, Governor) else Governor()


class PacedScreen(OnDashboard, GatedUpdates):
    """What all screens do; to be named before `Screen` among a screen's bases.

    A screen draws when the governor lets it: what changes meanwhile is drawn at once, as it is by then, and frames
    never pile up. It leaves only while it is on top, and its workers are heard when they fail.
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
        """Return whether the terminal has taken enough of the frames before."""
        return not governor_of(self.app).holds_frames()
