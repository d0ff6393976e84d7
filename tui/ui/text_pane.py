"""A pane with a text to read: YAML, or what a backend says."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.widgets import Static

from .palette import Text
from .pane import Pane
from .yaml_text import yaml_text


class TextScroll(VerticalScroll, can_focus=True):
    """The scrolled body of a text pane."""

    HELP_TITLE = "Text"
    BINDINGS = [
        ("j,down", "scroll_down", "Down"),
        ("k,up", "scroll_up", "Up"),
        ("g,home", "scroll_home", "First line"),
        ("G,end", "scroll_end", "Last line"),
        ("ctrl+d,pagedown", "page_down", "Page down"),
        ("ctrl+u,pageup", "page_up", "Page up"),
    ]


class TextPane(Pane):
    """A text under a title."""

    def __init__(self, title: str, *, id: str | None = None) -> None:
        self._content = Static(markup=False)
        self.body = TextScroll(self._content)
        super().__init__(title, self.body, id=id)
        self._shown = ""

    def show_yaml(self, text: str) -> None:
        """Show YAML, keys and values told apart."""
        if text != self._shown:
            self._shown = text
            self._content.update(yaml_text(text))

    def show_text(self, text: Text) -> None:
        """Show a text as it is."""
        self._shown = text.plain
        self._content.update(text)
