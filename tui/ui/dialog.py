"""The box in the middle of the screen that all dialogs are."""

from __future__ import annotations

from typing import Any, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from .frames import PacedScreen
from .palette import STYLES

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
        Binding("pageup", "page(-1)", "Page up", id="dialog.page_up", show=False),
        Binding("pagedown", "page(1)", "Page down", id="dialog.page_down", show=False),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (66, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]
    HELP_TITLE = "Dialog"
    CSS_PATH = "../styles/dialogs.tcss"

    def compose(self) -> ComposeResult:
        """Yield the box with the lines and the buttons."""
        with Vertical(id="dialog") as box:
            box.border_title = self.heading()
            # Where the screen is too low, the buttons are in sight and the text scrolls.
            box.anchor()
            if lines := self.lines():
                yield Static(Text("\n").join(lines), id="dialog-text", markup=False)
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
        """Return the first button, which is harmless; None if the dialog is being closed already."""
        return next(iter(self.query(Button)), None)

    def on_mount(self) -> None:
        """Put the focus where it belongs."""
        # At once: the next key may be here already.
        self.set_focus(self.first_focus())

    def action_page(self, step: int) -> None:
        """Scroll a dialog that is higher than the screen."""
        box = self.query_one("#dialog")
        box.scroll_relative(y=step * max(1, box.size.height - 1), animate=False)

    def action_back(self) -> None:
        """Change nothing."""
        self.dismiss(None)


class CountDialog(Dialog[Any]):
    """Asks for a yes; for several jobs their number must be typed.

    Args:
        count: how many jobs.
    """

    COUNT_FOR = "continue"

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._count_text = Static(self._count_words(), markup=False)
        self._count_input = Input(compact=True, restrict="[0-9]*", id="dialog-count")
        self._count_input.cursor_blink = False

    def _count_words(self, typed: str | None = None) -> Text:
        words = f"Type {self._count} to {self.COUNT_FOR}"
        if typed is None:
            return Text(words, STYLES.muted)
        return Text(f"{words}: {f'{typed[:12]} was typed' if typed else 'nothing was typed'}", STYLES.failed)

    @property
    def asks_for_count(self) -> bool:
        """Whether the number of jobs must be typed."""
        return self._count > 1

    def compose_question(self) -> ComposeResult:
        """Yield the box for the count."""
        if self.asks_for_count:
            yield self._count_text
            yield self._count_input

    def first_focus(self) -> Widget | None:
        """Return the box for the count, without which nothing happens; else the harmless button."""
        return self._count_input if self.asks_for_count else super().first_focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        if event.button.id == "confirm":
            self.action_confirm()
        else:
            self.dismiss(False)

    def on_input_submitted(self) -> None:
        """Confirm once the count is right."""
        self.action_confirm()

    def action_confirm(self) -> None:
        """Answer yes, if the count was typed where it is asked for; else say what is missing."""
        typed = self._count_input.value
        if self.asks_for_count and typed != str(self._count):
            self._count_text.update(self._count_words(typed))
            self.set_focus(self._count_input)
            return
        self.dismiss(True)
