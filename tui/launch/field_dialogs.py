"""Dialogs for one field of the launch form: its items, one a line; and what it can be, searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.list_dialog import ListDialog
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of
from .field_items import HINTS, items_of, text_of

if TYPE_CHECKING:
    from .form_field import Field


class ItemsDialog(Dialog[str]):
    """Edits a list, pairs, arguments or mounts, one a line; it answers with the field's new text.

    Args:
        field: the field.
    """

    HELP_TITLE = "Items"
    BINDINGS = [Binding("ctrl+s", "take", "Use them", priority=True, id="dialog.take", show=False)]

    def __init__(self, field: Field) -> None:
        super().__init__()
        self._field = field
        try:
            lines, self._unreadable = items_of(field), ""
        except ValueError as error:
            lines, self._unreadable = field.text.splitlines(), str(error)
        self._area = TextArea("\n".join(lines), soft_wrap=False, tab_behavior="focus", id="items", compact=True)
        self._area.cursor_blink = False
        self._words = Static(markup=False, id="items-words")

    def heading(self) -> str:
        """Return the field's name."""
        return plain(self._field.name)

    def lines(self) -> list[Text]:
        """Say what a line is."""
        return [Text(HINTS[self._field.editor], STYLES.muted), Text()]

    def compose_question(self) -> ComposeResult:
        """Yield the lines, and what is wrong with them."""
        yield self._area
        yield self._words

    def compose_buttons(self) -> ComposeResult:
        """Yield the ways out."""
        yield Button("Take", compact=True, id="take")
        yield Button("Leave as it was", compact=True, id="leave")
        words = Text()
        for key, word in (("ctrl+s", "take"), ("esc", "leave")):
            words.append(key, f"bold {STYLES.accent}").append(f" {word}   ", STYLES.muted)
        yield Static(words, markup=False)

    def first_focus(self) -> Widget:
        """Return the lines."""
        return self._area

    def on_mount(self) -> None:
        """Put the cursor behind what is there."""
        self._area.move_cursor(self._area.document.end)
        self._say(self._unreadable)

    def on_text_area_changed(self) -> None:
        """Check what was typed."""
        self._text()

    def _text(self) -> str | None:
        """Return the text of the lines, None while something is wrong with them, which is said."""
        try:
            text = text_of(self._field, self._area.text.split("\n"))
        except ValueError as error:
            self._say(str(error))
            return None
        fault = self._field.check(text) if text and text != self._field.default else ""
        self._say(fault)
        return None if fault else text

    def _say(self, fault: str) -> None:
        glyphs = glyphs_of(self.app)
        self._words.update(Text(f"{glyphs.bad} {plain(fault)}" if fault else "", STYLES.removed))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        if event.button.id == "take":
            self.action_take()
        else:
            self.dismiss(None)

    def action_take(self) -> None:
        """Answer with the text, if nothing is wrong."""
        text = self._text()
        if text is None:
            self.set_focus(self._area)
        else:
            self.dismiss(text)


@dataclass(frozen=True)
class Choice:
    """One choice: its text, what is said of it in columns, and the word for an empty text."""

    text: str
    columns: tuple[str, ...] = ()
    word: str = ""


class ChoiceDialog(ListDialog[str]):
    """Searches among many choices; it answers with the text of the chosen one.

    Args:
        title: what is chosen.
        choices: all of them.
        headers: the names of the columns, right-aligned.
        taken: the text that holds now.
    """

    HELP_TITLE = "Choices"

    def __init__(self, title: str, choices: Sequence[Choice], headers: Sequence[str] = (), taken: str = "") -> None:
        super().__init__()
        self._title = title
        self._choices = list(choices)
        self._headers = headers
        self._found = self._choices
        self._first = next((place for place, choice in enumerate(self._choices) if choice.text == taken), 0)
        self._widths = [
            max(len(header), *(len(choice.columns[place]) for choice in self._choices))
            for place, header in enumerate(headers)
        ]
        self._room = TEXT_WIDTH - sum(width + 2 for width in self._widths) - 3
        self._search = Input(compact=True, placeholder="type to search", id="choice-search")
        self._search.cursor_blink = False

    def heading(self) -> str:
        """Return what is chosen."""
        return plain(self._title)

    def compose_question(self) -> ComposeResult:
        """Yield the search, and the names of the columns."""
        yield self._search
        headers = Text(" " * (self._room + 1), STYLES.faint, no_wrap=True)
        for header, width in zip(self._headers, self._widths, strict=True):
            headers.append(f"  {header:>{width}}")
        yield Static(headers, markup=False)

    def first_focus(self) -> Widget:
        """Return the search."""
        return self._search

    def on_mount(self) -> None:
        """Start at the choice that holds now."""
        self.show_rows(self._first)

    def rows(self) -> list[Text]:
        """Return the choices that were found."""
        rows, mark = [], glyphs_of(self.app).cut
        for choice in self._found:
            row = Text(f"{cut(plain(choice.text or choice.word), self._room, mark):<{self._room}}", STYLES.text)
            for cell, width in zip(choice.columns, self._widths, strict=True):
                row.append(f"  {cell:>{width}}", STYLES.muted)
            rows.append(row)
        return rows

    def choose(self, row: int) -> None:
        """Answer with a choice."""
        self.dismiss(self._found[row].text)

    def on_input_changed(self) -> None:
        """Search for what was typed."""
        self._find()

    def action_move(self, step: int) -> None:
        """Move the cursor among what was typed for, even if the list has not been told of the last letter yet."""
        self._find()
        super().action_move(step)

    def _find(self) -> None:
        """Keep the choices that have every word that was typed."""
        words = self._search.value.lower().split()
        found = [choice for choice in self._choices if all(word in choice.text.lower() for word in words)]
        if found != self._found:
            self._found = found
            self.show_rows(0)

    def on_input_submitted(self) -> None:
        """Answer with the choice at the cursor."""
        self.action_choose()
