"""What a launch would do: the dry run, the difference to the last launch, the command for a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...backends.logs.sanitize import plain
from ..theme import palette_of
from ..yaml_text import yaml_text
from .pane import Pane

if TYPE_CHECKING:
    from ..palette import Palette

TABS = ("dry run", "diff", "command")
_WORDS = {"dry run": "Dry run", "diff": "Diff", "command": "Command"}


class Preview(Pane):
    """Three texts behind tabs. The dry run keeps the last valid request and says from when it is."""

    def __init__(self) -> None:
        super().__init__(id="preview")
        self._content = Static(markup=False)
        self.body = VerticalScroll(self._content, id="preview-body")
        self.tab = TABS[0]
        self._request = ""
        self._note = ""
        self._diff: list[tuple[str, str, str]] = []
        self._compared = False
        self._command = ""

    def compose_body(self) -> ComposeResult:
        """Yield the text."""
        yield self.body

    def on_mount(self) -> None:
        """Draw the tabs."""
        self._draw()

    def set_request(self, text: str) -> None:
        """Show a request that is up to date."""
        self._request, self._note = text, ""
        self._draw()

    def set_note(self, note: str) -> None:
        """Say why the request is not up to date."""
        self._note = note
        self._draw()

    def set_diff(self, rows: list[tuple[str, str, str]], compared: bool) -> None:
        """Show what differs from the last launch; ``compared`` is False if there was none."""
        self._diff, self._compared = rows, compared
        self._draw()

    def set_command(self, text: str) -> None:
        """Show the command."""
        self._command = text
        self._draw()

    def show(self, tab: str) -> None:
        """Show a tab."""
        self.tab = tab
        self._draw()

    def next_tab(self) -> None:
        """Show the next tab."""
        self.show(TABS[(TABS.index(self.tab) + 1) % len(TABS)])

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        colors = palette_of(self.app)
        tabs = Text(end="")
        for tab in TABS:
            tabs.append("   " if tabs else "", "not bold")
            style = f"bold underline {colors.accent}" if tab == self.tab else f"not bold {colors.text2}"
            tabs.append(_WORDS[tab], style)
            if tab == "diff" and self._diff:
                tabs.append(f" {len(self._diff)}", f"not bold {colors.text3}")
        self.rule.title = tabs
        self._content.update(self._text(colors))

    def _text(self, colors: Palette) -> Text:
        if self.tab == "diff":
            return diff_text(self._diff, self._compared, colors)
        if self.tab == "command":
            return Text(f"$ {plain(self._command)}" if self._command else "", colors.log)
        text = Text(end="")
        if self._note:
            text.append(plain(self._note) + "\n\n", colors.pending)
        text.append_text(yaml_text("\n".join(plain(line) for line in self._request.splitlines()), colors))
        return text


def diff_text(rows: list[tuple[str, str, str]], compared: bool, colors: Palette) -> Text:
    """Return the difference of arguments to the last launch, in form order."""
    if not compared:
        return Text("This component was not launched from here before", colors.text3)
    if not rows:
        return Text("As the last launch", colors.text3)
    text = Text(end="")
    for name, before, after in rows:
        text.append(f"{name}\n", colors.text)
        text.append(f"  - {plain(before) or 'none'}\n", colors.removed)
        text.append(f"  + {plain(after) or 'none'}\n", colors.added)
    return text
