"""The box in the middle of the screen that all dialogs are."""

from __future__ import annotations

from typing import TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Static

from .governor import PacedScreen

TEXT_WIDTH = 60
# A list in a dialog shows so many items, then how many more there are.
MOST_LISTED = 8

Answer = TypeVar("Answer")


class Dialog(PacedScreen, ModalScreen[Answer]):
    """A box in the middle of the dimmed screen."""

    BINDINGS = [
        Binding("escape", "back", "Back", id="dialog.back", show=False),
        Binding("left,up", "app.focus_previous", "Previous button", id="dialog.previous", show=False),
        Binding("right,down", "app.focus_next", "Next button", id="dialog.next", show=False),
    ]
    HELP_TITLE = "Dialog"
    CSS_PATH = "../styles/dialogs.tcss"

    def compose(self) -> ComposeResult:
        """Yield the box with the lines and the buttons."""
        with Vertical(id="dialog") as box:
            box.border_title = self.heading()
            if lines := self.lines():
                yield Static(Text("\n", no_wrap=True).join(lines), id="dialog-text", markup=False)
            yield from self.compose_question()
            yield from self.compose_answer()

    def heading(self) -> str:
        """Return the title in the border; a text of ours."""
        return ""

    def lines(self) -> list[Text]:
        """Return what the dialog says."""
        return []

    def compose_question(self) -> ComposeResult:
        """Yield what must be typed before the dialog can be confirmed, if anything."""
        yield from ()

    def compose_answer(self) -> ComposeResult:
        """Yield what the dialog is answered with: a row of buttons."""
        with Horizontal(id="dialog-buttons"):
            yield from self.compose_buttons()

    def compose_buttons(self) -> ComposeResult:
        """Yield the buttons, the harmless one first."""
        yield from ()

    def first_focus(self) -> Widget | None:
        """Return what has the focus at first: the harmless button."""
        return self.query(Button).first()

    def on_mount(self) -> None:
        """Put the focus where it belongs."""
        # At once: the next key may be here already.
        self.set_focus(self.first_focus())

    def action_back(self) -> None:
        """Change nothing."""
        self.dismiss(None)
