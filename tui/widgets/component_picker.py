"""The list of components with a search over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.fuzzy import FuzzySearch
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from ...backends.logs.sanitize import plain
from ...components import ComponentSummary
from ..theme import palette_of
from .pane import Pane

if TYPE_CHECKING:
    from ..palette import Palette

# What the list calls the kinds of components.
KIND_WORDS = {"builtin": "builtin", "file": "mine", "module": "module", "plugin": "plugin"}


class SearchInput(Input):
    """The search field; the arrows move in the list below it."""

    BINDINGS = [
        Binding("down", "screen.pick(1)", "Next component", show=False),
        Binding("up", "screen.pick(-1)", "Previous component", show=False),
    ]


class ComponentPicker(Pane):
    """Components that match what is typed; the best match is highlighted."""

    @dataclass
    class Highlighted(Message):
        """Another component is highlighted."""

        component: ComponentSummary | None

    @dataclass
    class Chosen(Message):
        """A component is chosen."""

        component: ComponentSummary

    def __init__(self) -> None:
        super().__init__("Component", id="picker")
        self.search = SearchInput(
            placeholder="type to search, or file.py:component", compact=True, id="search", select_on_focus=False
        )
        self.search.cursor_blink = False
        self.list = OptionList(id="component-list", compact=True)
        self.list.can_focus = False
        self._all: list[ComponentSummary] = []
        self._shown: list[ComponentSummary] = []

    def compose_body(self) -> ComposeResult:
        """Yield the search and the list."""
        yield self.search
        yield self.list

    @property
    def highlighted(self) -> ComponentSummary | None:
        """The component under the cursor."""
        index = self.list.highlighted
        return self._shown[index] if index is not None and index < len(self._shown) else None

    def set_components(self, components: Sequence[ComponentSummary]) -> None:
        """Show these components."""
        self._all = list(components)
        self._search(self.search.value)

    def on_resize(self, _event: events.Resize) -> None:
        """Align the kinds at the right for the new width."""
        self._draw()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        event.stop()
        self._search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted component, or the file or module that was typed."""
        event.stop()
        chosen = self.highlighted
        if chosen is None and ":" in event.value:
            chosen = ComponentSummary(name=event.value.strip(), kind="file", path=Path(), line=0)
        if chosen is not None:
            self.post_message(self.Chosen(chosen))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose with the mouse."""
        event.stop()
        # The list may be another by now: a letter was typed just after the click.
        if event.option_index < len(self._shown):
            self.post_message(self.Chosen(self._shown[event.option_index]))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say which component is highlighted."""
        event.stop()
        self.post_message(self.Highlighted(self.highlighted))

    def move(self, rows: int) -> None:
        """Move the highlight."""
        if self._shown:
            index = (self.list.highlighted or 0) + rows
            self.list.highlighted = min(max(index, 0), len(self._shown) - 1)

    def _search(self, query: str) -> None:
        query = query.strip()
        matcher = FuzzySearch()
        scored = [(matcher.match(query, one.name)[0] if query else 1.0, one) for one in self._all]
        hits = [(score, one) for score, one in scored if score > 0]
        if query:
            hits.sort(key=lambda hit: (-hit[0], hit[1].name))
        self._shown = [one for _, one in hits]
        self._draw()
        if not self._shown:
            self.post_message(self.Highlighted(None))

    def _draw(self) -> None:
        width = max(20, self.size.width - 3)
        colors = palette_of(self.app)
        query = self.search.value.strip()
        before = self.list.highlighted
        self.list.clear_options()
        self.list.add_options([Option(option_text(one, query, width, colors)) for one in self._shown])
        if self._shown:
            self.list.highlighted = min(before or 0, len(self._shown) - 1) if not query else 0
        total = len(self._all)
        self.rule.info = Text(f"{len(self._shown)} of {total}" if query else f"{total}")


def option_text(one: ComponentSummary, query: str, width: int, colors: Palette) -> Text:
    """Return a component's row: its name with the matched letters lit, and where it comes from."""
    text = Text(plain(one.name), colors.text if not one.error else colors.text3, no_wrap=True, end="")
    if query:
        _, offsets = FuzzySearch().match(query, one.name)
        for offset in offsets:
            text.stylize(f"bold {colors.accent}", offset, offset + 1)
    kind = KIND_WORDS.get(one.kind, one.kind)
    text.truncate(max(4, width - len(kind) - 1), overflow="ellipsis")
    text.append(" " * max(1, width - text.cell_len - len(kind)))
    text.append(kind, colors.text3)
    return text
