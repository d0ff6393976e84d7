"""The row under a log where a search or a filter is typed, and where it says how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ..theme import palette_of

Mode = Literal["search", "filter"]

_SIGNS: dict[Mode, str] = {"search": "/", "filter": "&"}
_PLACEHOLDERS: dict[Mode, str] = {"search": "search", "filter": "keep matching lines, !text drops them"}


class PatternInput(Input):
    """The field of the row."""

    HELP_TITLE = "Pattern"
    BINDINGS = [
        Binding("ctrl+r", "regex", "Text or regular expression", show=False),
        Binding("escape", "leave", "Clear", show=False),
    ]

    class RegexToggled(Message):
        """The pattern shall be read as a regular expression, or not any more."""

    class Left(Message):
        """Escape."""

    def action_regex(self) -> None:
        """Ask for the other way to read the pattern."""
        self.post_message(self.RegexToggled())

    def action_leave(self) -> None:
        """Give up."""
        self.post_message(self.Left())


class SearchRow(Horizontal):
    """``/ timeout     17 found   n next   N previous   esc clear        text, any case``."""

    DEFAULT_CSS = """
    SearchRow { height: 1; width: 1fr; display: none; }
    SearchRow > #pattern-sign { width: 3; height: 1; }
    SearchRow > PatternInput { width: 34%; min-width: 16; height: 1; }
    SearchRow > #pattern-words { width: 1fr; height: 1; }
    """

    @dataclass
    class Submitted(Message):
        """A pattern was typed to its end."""

        mode: Mode
        text: str
        regex: bool

    class Cleared(Message):
        """Nothing is searched for any more."""

    def __init__(self) -> None:
        super().__init__()
        self.mode: Mode = "search"
        self.regex = False
        self._sign = Static(markup=False, id="pattern-sign")
        self._words = Static(markup=False, id="pattern-words")
        self.input = PatternInput(compact=True, select_on_focus=False)
        self.input.cursor_blink = False

    def compose(self) -> ComposeResult:
        """Yield the sign, the field and the words."""
        yield self._sign
        yield self.input
        yield self._words

    def ask(self, mode: Mode) -> None:
        """Let a person type a pattern."""
        self.input.value = ""
        self.mode = mode
        self.input.placeholder = _PLACEHOLDERS[mode]
        self.display = True
        self._sign.update(Text(f" {_SIGNS[mode]}", f"bold {palette_of(self.app).accent}"))
        self.say(Text())
        self.input.focus()

    def say(self, words: Text) -> None:
        """Say how far the search is, or, where there is nothing to say, how the pattern is read."""
        colors = palette_of(self.app)
        line = Text("  ", no_wrap=True, end="")
        if words:
            line.append_text(words)
        else:
            line.append(f"{'regular expression' if self.regex else 'text'}   ctrl+r changes", colors.text3)
        self._words.update(line)

    def close(self) -> None:
        """Take the row away."""
        self.input.value = ""
        self.display = False

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand the pattern on."""
        event.stop()
        self.post_message(self.Submitted(self.mode, event.value, self.regex))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep what is typed here to the row."""
        event.stop()

    def on_pattern_input_regex_toggled(self, event: PatternInput.RegexToggled) -> None:
        """Read the pattern the other way."""
        event.stop()
        self.regex = not self.regex
        self.say(Text())

    def on_pattern_input_left(self, event: PatternInput.Left) -> None:
        """Give up."""
        event.stop()
        self.post_message(self.Cleared())
