"""The box in the middle of the screen that all dialogs are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from .bars import key_of, key_text
from .frames import PacedScreen
from .palette import Text

TEXT_WIDTH = 60
# A list in a dialog shows so many items, then how many more there are.
MOST_LISTED = 8

# The names of the bindings that answer, by the key that is the answer; another may be chosen to be pressed.
_ANSWERS = {
    "y": ("dialog.confirm", "Yes"),
    "e": ("dialog.edit", "Edit it instead"),
    "a": ("dialog.cancel_all", "Cancel all links"),
    "k": ("dialog.keep", "Keep running and quit"),
    "ctrl+s": ("dialog.sweep", "Launch them"),
}

Answer = TypeVar("Answer")


class Dialog(PacedScreen, ModalScreen[Answer]):
    """A box in the middle of the dimmed screen."""

    BINDINGS = [
        Binding("escape", "back", "Back", id="dialog.back"),
        Binding("left,up", "app.focus_previous", "Previous button", id="dialog.previous"),
        Binding("right,down", "app.focus_next", "Next button", id="dialog.next"),
        Binding("pageup", "page(-1)", "Page up", id="dialog.page_up"),
        Binding("pagedown", "page(1)", "Page down", id="dialog.page_down"),
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


class AskDialog(Dialog[str]):
    """A question; answers with the key of a button, with an empty text if nothing is to happen.

    Args:
        title: the question, a text of ours.
        body: what it is about.
        buttons: the label of each button by its key; the first one is harmless, has the focus, and shows no key.
        count: more than one must be typed before a button acts.
        details: what may be longer than the screen, below the body.
        note: a sentence below the details.
        find_body: returns the body once more is known; called in a thread.
    """

    BINDINGS = [
        *(Binding(key, f"answer('{key}')", what, id=name) for key, (name, what) in _ANSWERS.items()),
        Binding("j,down", "scroll(1)", "Down", id="dialog.down"),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up"),
    ]

    def __init__(
        self,
        title: str,
        body: Sequence[Text],
        buttons: Mapping[str, str],
        count: int = 1,
        *,
        details: Sequence[Text] = (),
        note: str = "",
        find_body: Callable[[], Sequence[Text]] | None = None,
    ) -> None:
        super().__init__()
        self.question, self.body, self.buttons, self.count = title, list(body), buttons, count
        self.details = Text("\n").join(details)
        self._note, self._find_body = note, find_body
        self._count_text = Static(self._count_words(), markup=False)
        self._count_input = Input(compact=True, restrict="[0-9]*", select_on_focus=False, id="dialog-count")
        self._count_input.cursor_blink = False

    def heading(self) -> str:
        return self.question

    def lines(self) -> list[Text]:
        return self.body

    def compose_question(self) -> ComposeResult:
        if self.details:
            with VerticalScroll(id="dialog-details", can_focus=False):
                yield Static(self.details, markup=False)
        if self._note:
            yield Static(Text(self._note, "$style-muted"), markup=False)
        if self.count > 1:
            yield self._count_text
            yield self._count_input

    def compose_buttons(self) -> ComposeResult:
        (_, harmless), *others = self.buttons.items()
        yield Button(harmless, compact=True, id="keep")
        for key, label in others:
            shown_key = "enter" if self.count > 1 else key_of(self, _ANSWERS[key][0])
            shown = Text.assemble((shown_key, "$style-failed"), (f" {label}", "$style-text"))
            yield Button(shown.visualize(), compact=True)
        if others:
            yield Static(key_text(self, "dialog.back", "back"), markup=False)

    def first_focus(self) -> Widget | None:
        """Return the box for the count, without which nothing happens; else the harmless button."""
        return self._count_input if self.count > 1 else super().first_focus()

    def on_mount(self) -> None:
        if self._find_body is not None:
            self._update_body(self._find_body)

    @work
    async def _update_body(self, find_body: Callable[[], Sequence[Text]]) -> None:
        self.body = list(await asyncio.to_thread(find_body))
        self.query_one("#dialog-text", Static).update(Text("\n").join(self.body))

    def _count_words(self, typed: str | None = None) -> Text:
        verb = list(self.buttons.values())[-1].split()[0].lower()
        words = f"Type {self.count} to {verb} them"
        if typed is None:
            return Text(words, "$style-muted")
        return Text(f"{words}: {f'{typed[:12]} was typed' if typed else 'nothing was typed'}", "$style-failed")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "answer" or parameters[0] in self.buttons

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_answer(list(self.buttons)[list(self.query(Button)).index(event.button)])

    def on_key(self, event: events.Key) -> None:
        """Let digits go to the box for the count, wherever the focus is."""
        if self.count > 1 and event.is_printable and event.character and event.character.isdigit():
            event.stop()
            self.set_focus(self._count_input)
            self._count_input.insert_text_at_cursor(event.character)

    def on_input_submitted(self) -> None:
        self.action_answer(list(self.buttons)[-1])

    def action_answer(self, key: str) -> None:
        """Answer with a key; say what is missing if the count was not typed."""
        typed = self._count_input.value
        if key and self.count > 1 and typed != str(self.count):
            self._count_text.update(self._count_words(typed))
            self.set_focus(self._count_input)
        else:
            self.dismiss(key)

    def action_scroll(self, rows: int) -> None:
        """Scroll the details; move among the buttons where there are none."""
        if self.details:
            self.query_one("#dialog-details").scroll_relative(y=rows, animate=False)
        elif rows > 0:
            self.app.action_focus_next()
        else:
            self.app.action_focus_previous()

    def action_back(self) -> None:
        self.dismiss("")
