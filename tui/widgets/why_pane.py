"""Why a job is as it is: the cause in a sentence, then what the job itself said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...backends.logs.sanitize import plain
from ...specs import NONE, AppState
from ..theme import palette_of, signs_of
from ..words import state_word
from .pane import Pane

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ..palette import Palette
    from ..signs import Signs


class WhyScroll(VerticalScroll, can_focus=True):
    """The scrolled body of the pane."""

    HELP_TITLE = "Why"
    BINDINGS = [
        ("j,down", "scroll_down", "Down"),
        ("k,up", "scroll_up", "Up"),
        ("g,home", "scroll_home", "First line"),
        ("G,end", "scroll_end", "Last line"),
        ("y", "screen.copy_reason", "Copy the reason"),
    ]


class WhyPane(Pane):
    """The reason of a job's state."""

    def __init__(self) -> None:
        super().__init__("Why", id="why-pane")
        self.reason = ""
        self._content = Static(markup=False)
        self.body = WhyScroll(self._content, id="why-scroll")

    def compose_body(self) -> ComposeResult:
        """Yield the text."""
        yield self.body

    def show(self, described: DescribeAppResponse) -> None:
        """Show the reason of a described job."""
        colors, signs = palette_of(self.app), signs_of(self.app)
        text = why_text(described, colors, signs)
        if text.plain != self.reason:
            self.reason = text.plain
            self._content.update(text)


def why_text(described: DescribeAppResponse, colors: Palette, signs: Signs) -> Text:
    """Return the reason: the sentence, notes, then the quoted error of the job."""
    text = Text(end="")
    sentence = "" if described.msg in ("", NONE) else plain(described.msg)
    text.append(sentence or _nothing_said(described.state), colors.text if sentence else colors.text2)
    for note in described.notes:
        text.append(f"\n{plain(note)}", colors.text2)
    quote = error_quote(described.structured_error_msg)
    if quote:
        text.append("\n\n")
        lines = quote.splitlines()
        for number, line in enumerate(lines):
            exception = number == len(lines) - 1 and bool(line) and not line[0].isspace()
            text.append(f"{signs.quote} ", colors.failed)
            text.append(plain(line.expandtabs(4)), colors.failed if exception else colors.text2)
            text.append("\n")
    return text


def _nothing_said(state: AppState) -> str:
    if state is AppState.SUCCEEDED:
        return "Every replica ended with exit code 0."
    return f"{state_word(state)}: nothing to explain."


def error_quote(structured: str) -> str:
    """Return the error that a job reported: the traceback of an error file, the message, or the text as it is.

    The two schemas of torchelastic's error file are read: nested (``message.message`` and
    ``message.extraInfo.py_callstack``) and flat (``message``).
    """
    if structured in ("", NONE):
        return ""
    try:
        data = json.loads(structured)
    except ValueError:
        return structured
    message = data.get("message", data) if isinstance(data, dict) else data
    if isinstance(message, dict):
        extra = message.get("extraInfo")
        stack = extra.get("py_callstack") if isinstance(extra, dict) else None
        message = stack or message.get("message") or json.dumps(message, indent=1)
    return str(message)
