"""The dialog that asks where and how to save a log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from ...base.files import path_exists
from ...logs.text.sanitize import plain
from ..ui.bars import key_of, key_text
from ..ui.choice_field import ChoiceField
from ..ui.dialog import Dialog
from ..ui.palette import Text
from .export import ExportError
from .save import SaveKind, save_path

_KINDS = {"shown": "as shown", "all": "all of it", "printed": "as printed"}
_MEANINGS = {
    "shown": "the lines shown, with their times and numbers",
    "all": "every line of every replica, with its number, date and time",
    "printed": "the unchanged output of the chosen replicas, with colours and control characters",
}


@dataclass(frozen=True)
class SaveRequest:
    """What a person wants to be saved.

    Attributes:
        path: the file.
        kind: which lines, and how.
        replace: a file that is there may be replaced.
    """

    path: Path
    kind: SaveKind
    replace: bool = False


class SaveDialog(Dialog[SaveRequest]):
    """Gives what to save where, or None.

    Args:
        path: where to, unless another path is typed.
        what: what is shown now, in words.
    """

    BINDINGS = [
        Binding("y", "replace", "Replace the file", id="dialog.replace"),
    ]

    def __init__(self, path: str, what: str) -> None:
        super().__init__()
        self._path = path
        self._what = what
        self._asked: SaveRequest | None = None

    def heading(self) -> str:
        """Return the title."""
        return "Save the log"

    def lines(self) -> list[Text]:
        """Return what is shown now."""
        return [Text(plain(self._what), "$style-muted"), Text()]

    def compose_question(self) -> ComposeResult:
        """Yield the path, the choice, and what either means."""
        field = Input(self._path, compact=True, id="save-path")
        field.cursor_blink = False
        yield field
        yield ChoiceField(tuple(_KINDS), "shown", words=_KINDS)
        yield Static(id="save-words", markup=False)

    def compose_buttons(self) -> ComposeResult:
        """Yield the way back and the way on."""
        yield Button("Back", compact=True, id="keep")
        yield Button(self._label("enter", "Save"), compact=True, id="confirm")
        yield Static(key_text(self, "dialog.back", "back"), markup=False)

    def first_focus(self) -> Widget:
        """Begin at the path."""
        return self.query_one(Input)

    def on_mount(self) -> None:
        """Say what the choice means."""
        self._explain()

    def on_input_changed(self) -> None:
        """Forget what was asked about another path."""
        if self._asked is not None:
            self._asked = None
            self._explain()

    def on_choice_field_changed(self) -> None:
        """Say what the choice means."""
        self._asked = None
        self._explain()

    def on_input_submitted(self) -> None:
        """Save, if that can be."""
        self._check(replace=False)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        if event.button.id != "confirm":
            self.dismiss(None)
        elif self._asked is not None:
            self.action_replace()
        else:
            self._check(replace=False)

    def action_replace(self) -> None:
        """Replace the file that was asked about."""
        if self._asked is not None:
            self._check(replace=True)

    @work(group="save-path", exclusive=True)
    async def _check(self, *, replace: bool) -> None:
        """Answer with the request, or show what is wrong with its path, whose disk may be slow."""
        text, kind = self.query_one(Input).value, self._kind
        try:
            request = SaveRequest(await asyncio.to_thread(save_path, text), kind, replace)
        except ExportError as error:
            self._say(str(error))
            return
        if not replace and await asyncio.to_thread(path_exists, request.path):
            self._asked = request
            self._say(f"{request.path} exists already.")
            self._relabel(key_of(self, "dialog.replace"), "Replace it")
            self.set_focus(self.query_one("#keep", Button))
        else:
            self.dismiss(request)

    @property
    def _kind(self) -> SaveKind:
        return cast("SaveKind", self.query_one(ChoiceField).value)

    def _explain(self) -> None:
        self.query_one("#save-words", Static).update(Text(_MEANINGS[self._kind], "$style-faint"))
        self._relabel("enter", "Save")

    def _say(self, sentence: str) -> None:
        self.query_one("#save-words", Static).update(Text(plain(sentence), "$style-failed"))

    def _relabel(self, key: str, word: str) -> None:
        button = self.query_one("#confirm", Button)
        button.label = self._label(key, word)
        button.refresh(layout=True)

    def _label(self, key: str, word: str) -> Content:
        style = "$style-accent" if key == "enter" else "$style-failed"
        return Text.assemble((key, style), (f" {word}", "$style-text")).visualize()
