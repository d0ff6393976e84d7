"""The list of components with a search over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from ...components.finder import is_script_name
from ...components.model import ComponentSummary
from ...logs.text.sanitize import plain
from ..format import age, cut
from ..ui.fuzzy import fuzzy_match
from ..ui.job_cells import state_style, state_text
from ..ui.options import Options
from ..ui.palette import STYLES, Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of, now_of
from .component_list import LastLaunch, Section, arranged
from .field_input import ScriptSuggester

if TYPE_CHECKING:
    from ..ui.glyphs import Glyphs

# Typing finds the others.
_MOST_SHOWN = 300
# Cells from which the state of the last launch is a word besides a glyph.
_WIDE = 40
_LONGEST_OWNER = 12


class ComponentPicker(Pane):
    """Components: pinned and recently launched ones first, or the matches of a search."""

    @dataclass
    class Highlighted(Message):
        """Another component is highlighted."""

        component: ComponentSummary | None

    @dataclass
    class Named(Message):
        """A file, module or script is typed that the list does not have."""

        name: str

    @dataclass
    class Chosen(Message):
        """A component is chosen."""

        component: ComponentSummary

    def __init__(self) -> None:
        super().__init__("Component", id="picker")
        self.search = Input(
            placeholder="type to search, or path/train.py",
            compact=True,
            id="search",
            select_on_focus=False,
            suggester=ScriptSuggester(),
        )
        self.search.cursor_blink = False
        self.list = Options(id="component-list", compact=True)
        self.list.can_focus = False
        self._listed: Mapping[str, ComponentSummary] = {}
        self._launches: Mapping[str, LastLaunch] = {}
        self._pinned: tuple[str, ...] = ()
        # A highlight that a person moved stays on its component.
        self._has_moved = False
        # Enter was pressed before the list came, or before the component that is typed was found.
        self._is_chosen_next = False
        self._unknown = ""
        # The search while a form opens.
        self._held: str | None = None
        # The component that is typed, by its key.
        self._named: dict[str, ComponentSummary] = {}

    def compose_body(self) -> ComposeResult:
        yield self.search
        yield self.list

    @property
    def components(self) -> list[ComponentSummary]:
        """All components."""
        return list(self._listed.values())

    @property
    def shown(self) -> list[ComponentSummary]:
        """The components in the list, in its order."""
        return [one for option in self.list.options if option.id and (one := self._get(option.id))]

    def _get(self, key: str) -> ComponentSummary | None:
        return self._named.get(key) or self._listed.get(key)

    @property
    def highlighted_key(self) -> str:
        """The key of the component at the cursor; empty for none."""
        option = self.list.highlighted_option
        return option.id or "" if option is not None else ""

    @property
    def highlighted(self) -> ComponentSummary | None:
        """The component at the cursor."""
        return self._get(self.highlighted_key)

    def show(
        self, listed: Mapping[str, ComponentSummary], launches: Mapping[str, LastLaunch], pinned: Sequence[str]
    ) -> None:
        """Show components.

        Args:
            listed: the components by their keys, in the order of their kinds.
            launches: the last launch of each that was launched, the latest first.
            pinned: keys of those that come first.
        """
        self._listed, self._launches, self._pinned = listed, launches, tuple(pinned)
        self._draw(keep=self._has_moved)
        self._choose_next()

    def show_named(self, name: str, key: str, component: ComponentSummary) -> None:
        """Show the component of `Named` before the matches of the search.

        Only without matches if it has an error, or is a file whose components are listed.
        """
        if name != self._unknown:
            return
        self._unknown = ""
        is_last = component.error or any(other.startswith(f"{key}:") for other in self._listed)
        if not is_last or self.highlighted is None:
            self._named = {key: component}
            self._draw(keep=self._has_moved)
        self._choose_next()

    def _choose_next(self) -> None:
        if self._is_chosen_next and not self._unknown and self.highlighted is not None:
            self._is_chosen_next = False
            self.post_message(self.Chosen(self.highlighted))

    def show_pinned(self, pinned: Sequence[str]) -> None:
        """Pin other components; the cursor stays on its own."""
        self._pinned, self._has_moved = tuple(pinned), True
        self._draw(keep=True)

    def on_resize(self) -> None:
        self._draw(keep=True)

    def hold(self) -> None:
        """Leave the list as it is until `release`: what is typed is for the form that opens."""
        if self._held is None:
            self._held = self.search.value

    def release(self) -> str:
        """Follow the search again, as it was; return what was typed since `hold`."""
        held, self._held = self._held or "", None
        typed = self.search.value
        with self.prevent(Input.Changed):
            self.search.value = held
        return typed.removeprefix(held) if typed.startswith(held) else ""

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        # An event may be older than the present text.
        if self._held is not None or event.value != self.search.value:
            return
        self._has_moved = self._is_chosen_next = False
        name, self._named = event.value.strip(), {}
        is_named = ":" in name or is_script_name(name)
        self._unknown = name if is_named and all(one.name != name for one in self._listed.values()) else ""
        if self._unknown:
            self.post_message(self.Named(name))
        self._draw(keep=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted component."""
        event.stop()
        if self._held is not None:
            return
        self._is_chosen_next = bool(event.value.strip()) or self.highlighted is not None
        self._choose_next()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        # Components may be gone after a click.
        if (component := self._get(event.option_id or "")) is not None:
            self.post_message(self.Chosen(component))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(self.Highlighted(self.highlighted))

    def move(self, rows: int) -> None:
        """Move the highlight by components, past headings."""
        rows_of_components = [index for index, option in enumerate(self.list.options) if option.id]
        if rows_of_components:
            self._has_moved = True
            highlighted = self.list.highlighted
            at = rows_of_components.index(highlighted) if highlighted in rows_of_components else 0
            at = min(max(at + rows, 0), len(rows_of_components) - 1)
            self.list.highlighted = rows_of_components[at]
            if not at:
                self.list.scroll_to(y=0, animate=False)

    def _draw(self, *, keep: bool) -> None:
        before = self.highlighted_key if keep else ""
        query = self.search.value.strip()
        if query:
            sections = [Section("", self._found(query))]
        else:
            sections = arranged(self._listed, self._pinned, tuple(self._launches))
        options: list[Option] = []
        for section in sections:
            if section.title:
                options.append(Option(Text(section.title, STYLES.faint), disabled=True))
            keys = section.keys[: max(0, _MOST_SHOWN - len(options))]
            options += [self._option(key, one, query) for key in keys if (one := self._get(key))]
        found, shown = sum(len(section.keys) for section in sections), [option.id for option in options]
        if more := found - sum(map(bool, shown)):
            options.append(Option(Text(f"and {more:,} more: type to search", STYLES.faint), disabled=True))
        self.list.set_options(options)
        if before and before in shown:
            self.list.highlighted = shown.index(before)
        else:
            self.list.highlighted = next((index for index, key in enumerate(shown) if key), None)
            self.list.scroll_to(y=0, animate=False)
        self.rule.info = Text(f"{found:,} of {len(self._listed):,}" if query else f"{found:,}")
        if not found and self._listed:
            self.post_message(self.Highlighted(None))

    def _found(self, query: str) -> tuple[str, ...]:
        names = {key: component.name for key, component in self._listed.items()}
        scored = [(-fuzzy_match(query, name)[0], len(name), name, key) for key, name in names.items()]
        return tuple(dict.fromkeys([*self._named, *(key for score, *_, key in sorted(scored) if score < 0)]))

    def _option(self, key: str, component: ComponentSummary, query: str) -> Option:
        glyphs, width, launch = glyphs_of(self.app), max(20, self.size.width - 3), self._launches.get(key)
        if query or launch is None:
            right = Text(owner_words(component, glyphs), STYLES.faint)
        else:
            right = launch_text(launch, now_of(self.app), width >= _WIDE, glyphs)
        return Option(option_text(component, query, right, width, glyphs), id=key)


def owner_words(component: ComponentSummary, glyphs: Glyphs) -> str:
    """Return the owner of a component's file, or the kind of a component without one."""
    if component.owner is None:
        return component.kind
    return cut(plain(component.owner), _LONGEST_OWNER, glyphs.cut) or "mine"


def option_text(component: ComponentSummary, query: str, right: Text, width: int, glyphs: Glyphs) -> Text:
    """Return a component's row: its name with highlighted matches, and the text at the right."""
    text = Text(plain(component.name), STYLES.text if not component.error else STYLES.faint, no_wrap=True, end="")
    for offset in fuzzy_match(query, text.plain)[1] if query else ():
        text.stylize(f"bold {STYLES.accent}", offset, offset + 1)
    room = max(4, width - right.cell_len - 2)
    if text.cell_len > room:
        text = _cut(text, room, glyphs.cut, at_start="/" in component.name)
    text.append(" " * max(1, width - text.cell_len - right.cell_len))
    return text.append_text(right)


def _cut(text: Text, width: int, glyph: str, *, at_start: bool) -> Text:
    """Cut a text to a width, at the start for paths."""
    if not at_start:
        text.truncate(width - 1)
        return Text(no_wrap=True, end="").append_text(text).append(glyph)
    rest = text[max(0, len(text) - width + 1) :]
    while rest.cell_len > width - 1:  # of letters that are two cells wide
        rest = rest[1:]
    return Text(glyph, text.style, no_wrap=True, end="").append_text(rest)


def launch_text(launch: LastLaunch, now: float, wide: bool, glyphs: Glyphs) -> Text:
    """Return the state and the age of a launch."""
    text = Text(end="")
    if launch.state is not None:
        if wide:
            text.append_text(state_text(launch.state, glyphs))
        else:
            text.append(glyphs.state(launch.state), state_style(launch.state))
    return text.append(f"{age(now - launch.at):>5}", STYLES.faint)
