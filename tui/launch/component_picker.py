"""The list of components with a search over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from ...components.model import ComponentSummary
from ...components.sbatch_script import is_script_name
from ...logs.text.sanitize import plain
from ..format import age, cut
from ..ui.fuzzy import fuzzy_match
from ..ui.job_cells import state_style, state_text
from ..ui.options import Options
from ..ui.palette import STYLES
from ..ui.pane import Pane
from ..ui.theme import glyphs_of, now_of
from .component_list import LastLaunch, arranged

if TYPE_CHECKING:
    from ..ui.glyphs import Glyphs

# More rows than this nobody scrolls through: typing finds the others.
_MOST_SHOWN = 300
# Cells from which the last launch is a word as well as a glyph.
_WIDE = 40
_LONGEST_OWNER = 12


class ComponentPicker(Pane):
    """Components, those pinned and launched lately first; of a search the best match."""

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
        self.search = Input(
            placeholder="type to search, or file.py:component", compact=True, id="search", select_on_focus=False
        )
        self.search.cursor_blink = False
        self.list = Options(id="component-list", compact=True)
        self.list.can_focus = False
        self._listed: Mapping[str, ComponentSummary] = {}
        self._launches: Mapping[str, LastLaunch] = {}
        self._pinned: tuple[str, ...] = ()
        # A row of the list each: a component's key, or a heading.
        self._rows: list[str | Text] = []
        # What is drawn, and what the last search has found, with what was searched for.
        self._drawn: object = None
        self._hits: tuple[str, list[str]] = ("", [])
        # Whether somebody has moved the highlight, so that it stays on its component.
        self._moved = False
        # Whether enter was pressed before anything was found: the list may not have come yet.
        self._is_chosen_next = False

    def compose_body(self) -> ComposeResult:
        """Yield the search and the list."""
        yield self.search
        yield self.list

    @property
    def components(self) -> list[ComponentSummary]:
        """All components."""
        return list(self._listed.values())

    @property
    def shown(self) -> list[ComponentSummary]:
        """Those in the list, in its order."""
        return [self._listed[row] for row in self._rows if isinstance(row, str)]

    @property
    def highlighted_key(self) -> str:
        """The component under the cursor, as `component_key` calls it; empty for none."""
        index = self.list.highlighted
        row = self._rows[index] if index is not None and index < len(self._rows) else ""
        return row if isinstance(row, str) else ""

    @property
    def highlighted(self) -> ComponentSummary | None:
        """The component under the cursor."""
        return self._listed.get(self.highlighted_key)

    def show(
        self, listed: Mapping[str, ComponentSummary], launches: Mapping[str, LastLaunch], pinned: Sequence[str]
    ) -> None:
        """Show these components.

        Args:
            listed: the components by their keys, in the order of their kinds.
            launches: the last launch of each that was launched, the latest first.
            pinned: those that come first.
        """
        self._listed, self._launches, self._pinned = listed, launches, tuple(pinned)
        self._hits = ("", [])
        self._draw(keep=self._moved)
        if self._is_chosen_next and self.highlighted is not None:
            self._is_chosen_next = False
            self.post_message(self.Chosen(self.highlighted))

    def show_pinned(self, pinned: Sequence[str]) -> None:
        """Pin other components; the cursor stays on its own."""
        self._pinned, self._moved = tuple(pinned), True
        self._draw(keep=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Align the right-hand column for the new width."""
        self._draw(keep=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        event.stop()
        self._moved = self._is_chosen_next = False
        self._draw(keep=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted component, or the file, module or script that was typed."""
        event.stop()
        chosen = self.highlighted
        typed = event.value.strip()
        if chosen is None and (":" in typed or is_script_name(typed)):
            chosen = ComponentSummary(name=typed, kind="file", path=Path(), line=0)
        if chosen is not None:
            self.post_message(self.Chosen(chosen))
        self._is_chosen_next = chosen is None and bool(typed)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose with the mouse."""
        event.stop()
        # The list may be another by now: a letter was typed just after the click.
        row = self._rows[event.option_index] if event.option_index < len(self._rows) else ""
        if isinstance(row, str) and row in self._listed:
            self.post_message(self.Chosen(self._listed[row]))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say which component is highlighted."""
        event.stop()
        self.post_message(self.Highlighted(self.highlighted))

    def move(self, rows: int) -> None:
        """Move the highlight by components."""
        places = [place for place, row in enumerate(self._rows) if isinstance(row, str)]
        if places:
            self._moved = True
            at = places.index(self.list.highlighted) if self.list.highlighted in places else 0
            self.list.highlighted = places[min(max(at + rows, 0), len(places) - 1)]
            if self.list.highlighted == places[0]:
                self.list.scroll_to(y=0, animate=False)

    def _draw(self, *, keep: bool) -> None:
        before = self.highlighted_key if keep else ""
        query = self.search.value.strip()
        self._rows = self._found(query) if query else self._arranged()
        self._draw_options(query)
        keys = [row if isinstance(row, str) else "" for row in self._rows[:_MOST_SHOWN]]
        if before in keys and before:
            self.list.highlighted = keys.index(before)
        else:
            self.list.highlighted = next((place for place, key in enumerate(keys) if key), None)
            self.list.scroll_to(y=0, animate=False)
        found, total = sum(isinstance(row, str) for row in self._rows), len(self._listed)
        self.rule.info = Text(f"{found:,} of {total:,}" if query else f"{total:,}")
        if not found and self._listed:
            self.post_message(self.Highlighted(None))

    def _draw_options(self, query: str) -> None:
        """Draw the rows that are shown, unless they are drawn already."""
        shown = self._rows[:_MOST_SHOWN]
        drawn = (
            query,
            self.size.width,
            [(str(row), self._listed.get(str(row))) for row in shown],
            dict(self._launches),
        )
        if drawn != self._drawn:
            self._drawn = drawn
            self.list.clear_options()
            self.list.add_options([self._option(row, query) for row in shown])
        more = len(self._rows) - len(shown)
        if self.list.option_count > len(shown):
            self.list.remove_option_at_index(len(shown))
        if more:
            words = Text(f"and {more:,} more: type to search", STYLES.faint)
            self.list.add_option(Option(words, disabled=True))

    def _found(self, query: str) -> list[str | Text]:
        # What does not match some letters does not match these and more.
        before, hits = self._hits
        among = hits if before and query.startswith(before) else self._listed
        scored = [(fuzzy_match(query, self._listed[key].name)[0], key) for key in among]
        found = [
            (-score, len(self._listed[key].name), self._listed[key].name, key) for score, key in scored if score > 0
        ]
        found.sort()
        self._hits = (query, [key for *_, key in found])
        return list(self._hits[1])

    def _arranged(self) -> list[str | Text]:
        rows: list[str | Text] = []
        for section in arranged(self._listed, self._pinned, tuple(self._launches)):
            if section.title:
                rows.append(Text(section.title, STYLES.faint))
            rows += section.keys
        return rows

    def _option(self, row: str | Text, query: str) -> Option:
        if isinstance(row, Text):
            return Option(row, disabled=True)
        glyphs, width = glyphs_of(self.app), max(20, self.size.width - 3)
        component, launch = self._listed[row], self._launches.get(row)
        if query or launch is None:
            right = Text(owner_words(component, glyphs), STYLES.faint)
        else:
            right = launch_text(launch, now_of(self.app), width >= _WIDE, glyphs)
        return Option(option_text(component, query, right, width, glyphs))


def owner_words(component: ComponentSummary, glyphs: Glyphs) -> str:
    """Return what stands beside a component: whose file it is in, or where else it comes from."""
    if component.owner is None:
        return component.kind
    return cut(plain(component.owner), _LONGEST_OWNER, glyphs.cut) or "mine"


def option_text(component: ComponentSummary, query: str, right: Text, width: int, glyphs: Glyphs) -> Text:
    """Return a component's row: its name with the matched letters lit, and what stands at the right."""
    text = Text(plain(component.name), STYLES.text if not component.error else STYLES.faint, no_wrap=True, end="")
    for offset in fuzzy_match(query, text.plain)[1] if query else ():
        text.stylize(f"bold {STYLES.accent}", offset, offset + 1)
    room = max(4, width - right.cell_len - 2)
    if text.cell_len > room:
        text = _cut(text, room, glyphs.cut, at_start="/" in component.name)
    text.append(" " * max(1, width - text.cell_len - right.cell_len))
    return text.append_text(right)


def _cut(text: Text, width: int, glyph: str, *, at_start: bool) -> Text:
    """Return a text in so many cells; of a path the end tells more than the beginning."""
    if not at_start:
        text.truncate(width - 1)
        return Text(no_wrap=True, end="").append_text(text).append(glyph)
    text = text[max(0, len(text) - width + 1) :]
    while text.cell_len > width - 1:  # of letters that are two cells wide
        text = text[1:]
    return Text(glyph, text.style, no_wrap=True, end="").append_text(text)


def launch_text(launch: LastLaunch, now: float, wide: bool, glyphs: Glyphs) -> Text:
    """Return how a launch ended and how long ago it was, its age in four cells."""
    text = Text(end="")
    if launch.state is not None:
        if wide:
            text.append_text(state_text(launch.state, glyphs))
        else:
            text.append(glyphs.state(launch.state), state_style(launch.state))
    return text.append(f"{age(now - launch.at):>5}", STYLES.faint)
