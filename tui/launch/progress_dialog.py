"""The dialog of a launch that takes long before anything runs."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Button, Static

from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.palette import Text
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from ...backends.shared.progress import Progress

# Reports that stay visible.
_LINES = 4


class LaunchDialog(Dialog[None]):
    """Shows the progress of a launch until it ends or continues in the background."""

    HELP_TITLE = "Launch"

    def __init__(self, what: str, progress: Progress) -> None:
        super().__init__()
        self.what = what
        self._progress = progress
        self._said: list[str] = []
        self._text = Static(markup=False, id="launch-progress")

    def heading(self) -> str:
        return "Launching"

    def lines(self) -> list[Text]:
        return [Text(cut(plain(self.what), TEXT_WIDTH, glyphs_of(self.app).cut), "bold $style-text")]

    def compose_question(self) -> ComposeResult:
        yield self._text

    def compose_buttons(self) -> ComposeResult:
        yield Button("Continue in the background", compact=True, id="background")
        # No letter ends it: the dialog opens by itself, perhaps while the user presses a key of the screen below.
        yield Button("Stop the launch", compact=True, id="end")

    def on_mount(self) -> None:
        self._draw()

    @property
    def has_reports(self) -> bool:
        return bool(self._said)

    def say(self, text: str) -> None:
        """Show a report; it replaces the last one with the same words before the colon."""
        if self._said and self._said[-1].partition(":")[0] == text.partition(":")[0]:
            self._said[-1] = text
        else:
            self._said = [*self._said[1 - _LINES :], text]
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        rows = [row for text in self._said for row in wrap(plain(text), TEXT_WIDTH)][-_LINES:]
        lines = [Text(row, "$style-muted") for row in rows] + [Text()] * (_LINES - len(rows))
        self._text.update(Text("\n", no_wrap=True).join([Text(), *lines, Text()]))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "end":
            self.say("Stopping the launch")
            self._progress.cancel()
        else:
            self.dismiss()
