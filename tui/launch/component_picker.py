"""The list of components with a search over it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from ...components.finder import is_script_name
from ...components.model import ComponentSummary
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..dashboard import OnDashboard
from ..format import age, count, cut
from ..terminal.editor import EditorError, editor_command
from ..terminal.external import run_outside
from ..ui.bars import key_text
from ..ui.fuzzy import fuzzy_match
from ..ui.job_cells import state_style, state_text
from ..ui.options import Options
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of, now_of
from .component_docs import ComponentDocs
from .component_list import (
    Described,
    LastLaunch,
    Section,
    arranged,
    component_folders,
    describe_component,
    find_named,
    growing_list,
    newest_launches,
)
from .field_input import PathSuggester, complete_script
from .questions import trust_dialog

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...components.model import ComponentKind
    from ..ui.glyphs import Glyphs

JOURNAL_PATIENCE = 0.5
"""Seconds that the list of components waits for the journal."""
_KINDS: dict[ComponentKind, str] = {
    "builtin": "builtin",
    "plugin": "of packages",
    "file": "in files",
    "module": "in modules",
}

# Typing finds the others.
_MOST_SHOWN = 300
# Cells from which the state of the last launch is a word besides a glyph.
_WIDE = 40
_LONGEST_OWNER = 12


class ComponentPicker(OnDashboard, Pane):
    """Components: pinned and recently launched ones first, or the matches of a search.

    Args:
        docs: shows the documentation of the highlighted component.
    """

    HELP_TITLE = "Components"
    # Before the search field's own: there ctrl+k and ctrl+e edit the text.
    BINDINGS = [
        Binding("down", "pick(1)", "Next component", priority=True, id="picker.down"),
        Binding("up", "pick(-1)", "Previous component", priority=True, id="picker.up"),
        Binding("pagedown", "pick(10)", "Ten forward", priority=True, id="picker.page_down"),
        Binding("pageup", "pick(-10)", "Ten back", priority=True, id="picker.page_up"),
        Binding("ctrl+k", "pin", "Pin, or unpin: it comes first", priority=True, id="picker.pin"),
        Binding("ctrl+e", "edit_file", "Open its file in your editor", priority=True, id="picker.edit"),
    ]

    class Listed(Message):
        """The list has changed."""

    @dataclass
    class Chosen(Message):
        """A component is chosen."""

        component: ComponentSummary

    def __init__(self, docs: ComponentDocs) -> None:
        self._docs = docs
        self.search = Input(
            placeholder="type to search, or path/train.py",
            compact=True,
            id="search",
            select_on_focus=False,
            suggester=PathSuggester(complete_script),
        )
        self.search.cursor_blink = False
        self.list = Options(id="component-list", compact=True)
        self.list.can_focus = False
        super().__init__("Component", self.search, self.list, id="picker")
        self._listed: Mapping[str, ComponentSummary] = {}
        self._launches: Mapping[str, LastLaunch] = {}
        # A highlight that a person moved stays on its component.
        self._has_moved = False
        # Enter was pressed before the list came, or before the component that is typed was found.
        self._is_chosen_next = False
        self._unknown = ""
        # The search while a form opens.
        self._held: str | None = None
        # The component that is typed, by its key.
        self._named: dict[str, ComponentSummary] = {}

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

    @work(group="components", exclusive=True)
    async def list_components(self) -> None:
        """Show the components: the builtins at once, the others as they are read."""
        dashboard = self.dashboard
        pinned, settings = dashboard.ui_state.state.pinned, dashboard.settings.launch
        # A slow disk delays no list: launches that are not read in time are left out.
        launches = await asyncio.to_thread(newest_launches, dashboard.runner.journal, JOURNAL_PATIENCE)
        lists = growing_list(component_folders(settings.component_folders), pinned, launches)
        while (listed := await asyncio.to_thread(next, lists, None)) is not None:
            self.show(listed, {key: self._last_launch(record) for key, record in launches.items()})
            self.post_message(self.Listed())

    def _last_launch(self, record: LaunchRecord) -> LastLaunch:
        row = self.dashboard.jobs.rows.get(record.handle)
        state = row.state if row is not None else AppState.__members__.get(record.state)
        return LastLaunch(record.at, state)

    def show(self, listed: Mapping[str, ComponentSummary], launches: Mapping[str, LastLaunch]) -> None:
        """Show components.

        Args:
            listed: the components by their keys, in the order of their kinds.
            launches: the last launch of each that was launched, the latest first.
        """
        self._listed, self._launches = listed, launches
        self._draw(keep=self._has_moved)
        self._choose_next()

    @work(group="named", exclusive=True)
    async def _find_named(self, name: str) -> None:
        """Show the component that is typed before the matches of the search.

        Only without matches if it has an error, or is a file whose components are listed.
        """
        key, component = await asyncio.to_thread(find_named, name)
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
        # An event may be older than the present text.
        if self._held is not None or event.value != self.search.value:
            return
        self._has_moved = self._is_chosen_next = False
        name, self._named = event.value.strip(), {}
        is_named = ":" in name or is_script_name(name)
        self._unknown = name if is_named and all(one.name != name for one in self._listed.values()) else ""
        if self._unknown:
            self._find_named(name)
        self._draw(keep=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted component."""
        if self._held is not None:
            return
        self._is_chosen_next = bool(event.value.strip()) or self.highlighted is not None
        self._choose_next()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        # Components may be gone after a click.
        if (component := self._get(event.option_id or "")) is not None:
            self.post_message(self.Chosen(component))

    def on_option_list_option_highlighted(self) -> None:
        self._describe(self.highlighted)

    def action_pick(self, rows: int) -> None:
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
            sections = arranged(self._listed, self.dashboard.ui_state.state.pinned, tuple(self._launches))
        options: list[Option] = []
        for section in sections:
            if section.title:
                options.append(Option(Text(section.title, "$style-faint"), disabled=True))
            keys = section.keys[: max(0, _MOST_SHOWN - len(options))]
            options += [self._option(key, one, query) for key in keys if (one := self._get(key))]
        found, shown = sum(len(section.keys) for section in sections), [option.id for option in options]
        if more := found - sum(map(bool, shown)):
            options.append(Option(Text(f"and {more:,} more: type to search", "$style-faint"), disabled=True))
        self.list.set_options(options)
        if before and before in shown:
            self.list.highlighted = shown.index(before)
        else:
            self.list.highlighted = next((index for index, key in enumerate(shown) if key), None)
            self.list.scroll_to(y=0, animate=False)
        self.rule.info = Text(f"{found:,} of {len(self._listed):,}" if query else f"{found:,}")
        if not found and self._listed:
            self._describe(None)

    def _found(self, query: str) -> tuple[str, ...]:
        names = {key: component.name for key, component in self._listed.items()}
        scored = [(-fuzzy_match(query, name)[0], len(name), name, key) for key, name in names.items()]
        return tuple(dict.fromkeys([*self._named, *(key for score, *_, key in sorted(scored) if score < 0)]))

    def _option(self, key: str, component: ComponentSummary, query: str) -> Option:
        glyphs, width, launch = glyphs_of(self.app), max(20, self.size.width - 3), self._launches.get(key)
        if query or launch is None:
            right = Text(owner_words(component, glyphs), "$style-faint")
        else:
            right = launch_text(launch, now_of(self.app), width >= _WIDE, glyphs)
        return Option(option_text(component, query, right, width, glyphs), id=key)

    @work(group="describe", exclusive=True)
    async def _describe(self, component: ComponentSummary | None) -> None:
        if component is None:
            self._docs.show_nothing()
        else:
            self._show(await self._read(component))

    def _show(self, read: Described) -> None:
        edit = key_text(self, "picker.edit", "open the file in your editor\n")
        if read.doc is None:
            self._docs.show_error(read.component, edit)
        else:
            self._docs.show(read.doc, read.launches, now_of(self.app), edit, fills_form=read.last is not None)

    async def _read(self, component: ComponentSummary, trusted: Path | None = None) -> Described:
        journal = self.dashboard.runner.journal
        return await asyncio.to_thread(describe_component, component, journal, JOURNAL_PATIENCE, trusted)

    async def choose(self, component: ComponentSummary) -> Described | None:
        """Read a component, after asking for trust in its folder; return None if it cannot be launched."""
        read = await self._read(component)
        while read.untrusted is not None:
            if not await self.app.push_screen_wait(trust_dialog(read.untrusted)):
                return None
            read = await self._read(component, read.untrusted.folder)
        if read.error:
            self._show(read)
            named = "" if read.error.startswith(component.name) else f"{component.name}: "
            self.dashboard.status.say(f"{named}{read.error}", failed=True)
            return None
        return read

    def summary(self) -> Text:
        """Return how many components there are of each kind."""
        kinds = Counter(component.kind for component in self.components)
        named = {kind: f"{kinds[kind]:,} {words}" for kind, words in _KINDS.items()}
        named["script"] = count(kinds["script"], "script")
        parts = [text for kind, text in named.items() if kinds[kind]]
        return Text(f"{count(kinds.total(), 'component')}: {', '.join(parts)}" if parts else "", "$style-faint")

    def action_pin(self) -> None:
        """Pin the highlighted component, or unpin it."""
        key, component = self.highlighted_key, self.highlighted
        if component is None:
            return
        pinned = self.dashboard.ui_state.state.pinned
        changed = tuple(other for other in pinned if other != key) if key in pinned else (*pinned, key)
        self.dashboard.ui_state.change(pinned=changed)
        # The cursor stays on its component.
        self._has_moved = True
        self._draw(keep=True)
        self.dashboard.status.say(
            f"{component.name} is no longer pinned" if key in pinned else f"{component.name} is pinned: it comes first"
        )

    def action_edit_file(self) -> None:
        """Leave the terminal to the editor with the highlighted component's file, then read the components anew."""
        component = self.highlighted
        if component is None or not component.path.name:
            self.dashboard.status.say(
                f"{component.name} has no file to open" if component else "no component to open", failed=True
            )
            return
        try:
            command = editor_command(component.path, component.line)
        except EditorError as error:
            self.dashboard.status.say(str(error), failed=True)
            return
        code, failure = run_outside(self.dashboard, command, command[0])
        if failure or code:
            self.dashboard.status.say(failure or f"{command[0]} ended with exit code {code}", failed=True)
        self.list_components()
        self._describe(component)


def owner_words(component: ComponentSummary, glyphs: Glyphs) -> str:
    """Return the owner of a component's file, or the kind of a component without one."""
    if component.owner is None:
        return component.kind
    return cut(plain(component.owner), _LONGEST_OWNER, glyphs.cut) or "mine"


def option_text(component: ComponentSummary, query: str, right: Text, width: int, glyphs: Glyphs) -> Text:
    """Return a component's row: its name with highlighted matches, and the text at the right."""
    text = Text(plain(component.name), "$style-text" if not component.error else "$style-faint", no_wrap=True, end="")
    for offset in fuzzy_match(query, text.plain)[1] if query else ():
        text.stylize("bold $style-accent", offset, offset + 1)
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
    return text.append(f"{age(now - launch.at):>5}", "$style-faint")
