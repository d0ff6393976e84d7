"""Dialogs for one field of the launch form: its items, one a line; and its valid values, with a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.bars import key_text
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.list_dialog import ListDialog
from ..ui.palette import Text
from ..ui.theme import glyphs_of
from .field_items import HINTS, items_of, text_of
from .form_field import Field


class ItemsDialog(Dialog[str]):
    """Edits a list, pairs, arguments or mounts, one a line; the answer is the field's new text."""

    HELP_TITLE = "Items"
    BINDINGS = [Binding("ctrl+s", "take", "Apply", priority=True, id="dialog.take")]

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
        return plain(self._field.name)

    def lines(self) -> list[Text]:
        return [Text(HINTS[self._field.editor], "$style-muted"), Text()]

    def compose_question(self) -> ComposeResult:
        yield self._area
        yield self._words

    def compose_buttons(self) -> ComposeResult:
        yield Button("Apply", compact=True, id="take")
        yield Button("Discard", compact=True, id="leave")
        hints = ("dialog.take", "apply"), ("dialog.back", "discard")
        words = Text("   ").join(key_text(self, *hint) for hint in hints)
        yield Static(words, markup=False)

    def first_focus(self) -> Widget:
        return self._area

    def on_mount(self) -> None:
        self._area.move_cursor(self._area.document.end)
        self._show_error(self._unreadable)

    def on_text_area_changed(self) -> None:
        self._checked_text()

    def _checked_text(self) -> str | None:
        """Return the text of the lines; None, with the error on screen, while they are invalid."""
        try:
            text = text_of(self._field, self._area.text.split("\n"))
        except ValueError as error:
            self._show_error(str(error))
            return None
        error = self._field.check(text) if text and text != self._field.default else ""
        self._show_error(error)
        return None if error else text

    def _show_error(self, error: str) -> None:
        self._words.update(Text(f"{glyphs_of(self.app).bad} {plain(error)}" if error else "", "$style-removed"))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self.action_take()
        else:
            self.dismiss(None)

    def action_take(self) -> None:
        """Answer with the text if it is valid."""
        text = self._checked_text()
        if text is None:
            self.set_focus(self._area)
        else:
            self.dismiss(text)


@dataclass(frozen=True)
class Choice:
    """One choice: its text, its cells in the columns, and the word for an empty text."""

    text: str
    columns: tuple[str, ...] = ()
    word: str = ""


class ChoiceDialog(ListDialog[str]):
    """Searches among many choices; the answer is the text of the chosen one.

    Args:
        title: the heading.
        choices: all choices.
        headers: the names of the columns, right-aligned.
        taken: the present text.
    """

    HELP_TITLE = "Choices"

    def __init__(self, title: str, choices: Sequence[Choice], headers: Sequence[str] = (), taken: str = "") -> None:
        super().__init__(plain(title))
        self._found = self._choices = list(choices)
        self._headers = headers
        self._first = next((row for row, choice in enumerate(choices) if choice.text == taken), 0)
        table = [headers, *(choice.columns for choice in choices)] if headers else []
        self._widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        self._room = TEXT_WIDTH - sum(width + 2 for width in self._widths) - 3
        self._search = Input(compact=True, placeholder="type to search", id="choice-search")
        self._search.cursor_blink = False

    def _aligned(self, cells: Sequence[str]) -> str:
        return "".join(f"  {cell:>{width}}" for cell, width in zip(cells, self._widths, strict=True))

    def compose_question(self) -> ComposeResult:
        yield self._search
        headers = " " * (self._room + 1) + self._aligned(self._headers)
        yield Static(Text(headers, "$style-faint", no_wrap=True), markup=False)

    def first_focus(self) -> Widget:
        return self._search

    def on_mount(self) -> None:
        self.show_rows(self._first)

    def rows(self) -> list[Text]:
        rows, mark = [], glyphs_of(self.app).cut
        for choice in self._found:
            name = f"{cut(plain(choice.text or choice.word), self._room, mark):<{self._room}}"
            rows.append(Text.assemble((name, "$style-text"), (self._aligned(choice.columns), "$style-muted")))
        return rows

    def choose(self, row: int) -> None:
        self.dismiss(self._found[row].text)

    def on_input_changed(self) -> None:
        self._find()

    def action_move(self, step: int) -> None:
        # The event of the last letter may still be in the queue.
        self._find()
        super().action_move(step)

    def _find(self) -> None:
        """Keep the choices that contain every word of the search."""
        words = self._search.value.lower().split()
        found = [choice for choice in self._choices if all(word in choice.text.lower() for word in words)]
        if found != self._found:
            self._found = found
            self.show_rows(0)

    def on_input_submitted(self) -> None:
        self.action_choose()
