"""The question whether a folder of another user is trusted."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Button

from ...logs.text.sanitize import plain
from ..ui.bars import key_of
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.palette import STYLES

if TYPE_CHECKING:
    from ...base.trust import UntrustedError


class TrustDialog(Dialog[bool]):
    """Asks for trust in the folder of a refused file."""

    HELP_TITLE = "Trust"
    BINDINGS = [Binding("y", "confirm", "Trust the folder", id="dialog.trust")]

    def __init__(self, error: UntrustedError) -> None:
        super().__init__()
        self._error = error

    def heading(self) -> str:
        return "Trust this folder?"

    def lines(self) -> list[Text]:
        paragraphs = (
            (f"{self._error.reason}. Its code runs with your permissions.", STYLES.text),
            (f"If you trust it, everything in {self._error.folder} is trusted from now on.", STYLES.muted),
        )
        return [
            line
            for text, style in paragraphs
            for line in (*(Text(part, style) for part in wrap(plain(text), TEXT_WIDTH)), Text())
        ]

    def compose_buttons(self) -> ComposeResult:
        yield Button("Back", compact=True, id="keep")
        label = Text.assemble((key_of(self, "dialog.trust"), STYLES.failed), (" Trust", STYLES.text))
        yield Button(label, compact=True, id="confirm")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_confirm(self) -> None:
        """Answer yes."""
        self.dismiss(True)
