"""The row under a log where a search, a filter or a place is typed, and where it says how far a search is."""

from __future__ import annotations

from typing import Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ...logs.pattern.pattern import PatternError, parse_pattern
from ..ui.bars import key_of
from ..ui.palette import STYLES, Text
from ..ui.prompt_input import PromptInput
from .jump import EXAMPLES

Mode = Literal["search", "filter", "jump"]

_SIGNS: dict[Mode, str] = {"search": "/", "filter": "&", "jump": ":"}
_PLACEHOLDERS: dict[Mode, str] = {
    "search": "search",
    "filter": "keep matching lines, !text drops them",
    "jump": "line, percentage or time",
}
_ROOMY = 100


class PatternInput(PromptInput):
    """The field of the row."""

    HELP_TITLE = "Pattern"
    BINDINGS = [
        Binding("ctrl+r", "regex", "Text or regular expression", id="search.regex"),
        Binding("escape", "leave", "Clear", id="search.leave"),
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
    """``/ timeout     3 of 17   n next   N previous   esc clear        text, any case``."""

    DEFAULT_CSS = """
    SearchRow { height: 1; width: 1fr; display: none; }
    SearchRow > #pattern-glyph { width: 3; height: 1; }
    SearchRow > PatternInput { width: 34%; min-width: 16; height: 1; }
    SearchRow.-jump > PatternInput { width: 18; }
    SearchRow > #pattern-words { width: 1fr; height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    SearchRow > #pattern-kind { width: auto; height: 1; padding: 0 1; }
    """

    class Cleared(Message):
        """Nothing is searched for any more."""

    def __init__(self) -> None:
        super().__init__()
        self.mode: Mode = "search"
        self.regex = False
        self._sign = Static(markup=False, id="pattern-glyph")
        self._words = Static(markup=False, id="pattern-words")
        self._kind = Static(markup=False, id="pattern-kind")
        self.typing = False
        """Whether somebody types in it."""
        self.input = PatternInput(self.accept)

    def compose(self) -> ComposeResult:
        """Yield the glyph, the field, the words, and how the pattern is read."""
        yield self._sign
        yield self.input
        yield self._words
        yield self._kind

    def ask(self, mode: Mode) -> None:
        """Let a person type a pattern or a place."""
        self._set(mode, "")
        self.typing = self.display = True
        hint = f"  {key_of(self.input, 'search.regex')} text or expression"
        self.say(Text(hint if mode != "jump" else EXAMPLES, STYLES.faint))
        # At once: the next key may be here already.
        self.screen.set_focus(self.input)

    def say(self, words: Text) -> None:
        """Say how far the search is, or what can be typed."""
        line = Text("  ")
        self._words.update(line.append_text(words))
        self._say_kind()

    def show_pattern(self, pattern: str) -> None:
        """Show what is searched for, if anything, once nobody types any more."""
        self.typing = False
        self._set("search", pattern)

    def close(self) -> None:
        """Take the row away."""
        self._set("search", "")
        self.typing = self.display = False

    def _set(self, mode: Mode, value: str) -> None:
        self.mode = mode
        self.set_class(mode == "jump", "-jump")
        self.input.placeholder = _PLACEHOLDERS[mode]
        self._sign.update(Text(f" {_SIGNS[mode]}", f"bold {STYLES.accent}"))
        self.input.value = value

    def _say_kind(self) -> None:
        """Say how the pattern is read as it stands."""
        # Afterwards it is said where there is room beside how far the search is.
        asked = self.mode != "jump" and (self.typing or (self.input.value and self.size.width >= _ROOMY))
        words = "" if not asked else kind_words(self.input.value, regex=self.regex)
        self._kind.update(Text(words, STYLES.faint))

    def accept(self) -> None:
        """Carry out what was typed."""
        raise NotImplementedError

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep what is typed here to the row, and say how it is read."""
        event.stop()
        self._say_kind()

    def on_pattern_input_regex_toggled(self, event: PatternInput.RegexToggled) -> None:
        """Read the pattern the other way."""
        event.stop()
        if self.mode != "jump":
            self.regex = not self.regex
            self._say_kind()

    def on_pattern_input_left(self, event: PatternInput.Left) -> None:
        """Give up."""
        event.stop()
        self.post_message(self.Cleared())


def kind_words(text: str, *, regex: bool) -> str:
    """Return how a pattern is read, such as ``text, any case``."""
    kind = "regular expression" if regex else "text"
    try:
        ignore_case = parse_pattern(text, regex=regex).ignore_case if text else True
    except PatternError:
        # Half typed, most often.
        return kind
    return f"{kind}, {'any' if ignore_case else 'exact'} case"
