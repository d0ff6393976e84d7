"""Choosing a component: the list, its documentation, pins, and the file in an editor."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message

from ...base.errors import describe_error
from ...base.trust import UntrustedError, trust_folder
from ...components.build import check_trusted
from ...components.finder import component_key, find, is_script_name, read_component
from ...components.model import ComponentSummary
from ...specs.status import AppState
from ..dashboard import OnDashboard
from ..format import count
from ..terminal.editor import EditorError, editor_command
from ..terminal.external import run_outside
from ..ui.palette import STYLES, Text
from ..ui.pane import Divider
from ..ui.theme import now_of
from .component_docs import ComponentDocs
from .component_list import LastLaunch, component_folders, find_named, growing_list, launches_of, newest_launches
from .component_picker import ComponentPicker
from .questions import trust_dialog

if TYPE_CHECKING:
    from ...backends.history.journal import Journal, LaunchRecord
    from ...components.model import ComponentDoc, ComponentKind

JOURNAL_PATIENCE = 0.5
"""Seconds that the list of components waits for the journal."""
_KINDS: dict[ComponentKind, str] = {
    "builtin": "builtin",
    "plugin": "of packages",
    "file": "in files",
    "module": "in modules",
}


@dataclass(frozen=True)
class Described:
    """A component as it was read.

    Attributes:
        component: the component.
        doc: its documentation; None if it cannot be read.
        launches: its launches, newest first.
        error: why it cannot be launched; empty if it can.
        untrusted: set if its file belongs to another user: its folder has to be trusted before it runs.
    """

    component: ComponentSummary
    doc: ComponentDoc | None
    launches: list[LaunchRecord]
    error: str = ""
    untrusted: UntrustedError | None = None

    @property
    def last(self) -> LaunchRecord | None:
        """The newest launch from a form that the backend accepted: the form is filled with its values.

        Launches of a sweep are not: each has one value of a list, and the form keeps what it had before. Neither are
        those of the shell.
        """
        return next((one for one in self.launches if not (one.group or one.in_shell or one.error)), None)


class ComponentChooser(OnDashboard, Horizontal):
    """The list of components beside the documentation of the highlighted component."""

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

    def __init__(self) -> None:
        super().__init__(id="chooser")
        self.picker = ComponentPicker()
        self.docs = ComponentDocs()

    def compose(self) -> ComposeResult:
        """Yield the list and the documentation; the style sheet shows what the step and the width ask for."""
        yield self.picker
        yield Divider(id="launch-divider")
        yield self.docs

    @work(group="components", exclusive=True, exit_on_error=False)
    async def list_components(self) -> None:
        """Show the components: the builtins at once, the others as they are read."""
        dashboard = self.dashboard
        pinned, settings = dashboard.ui_state.state.pinned, dashboard.settings.launch
        # A slow disk delays no list: launches that are not read in time are left out.
        launches = await asyncio.to_thread(newest_launches, dashboard.runner.journal, JOURNAL_PATIENCE)
        lists = growing_list(component_folders(settings.component_folders), pinned, launches)
        while (listed := await asyncio.to_thread(next, lists, None)) is not None:
            last = {key: self._last_launch(record) for key, record in launches.items()}
            self.picker.show(listed, last, dashboard.ui_state.state.pinned)
            self.post_message(self.Listed())

    def _last_launch(self, record: LaunchRecord) -> LastLaunch:
        row = self.dashboard.jobs.rows.get(record.handle)
        state = row.state if row is not None else AppState.__members__.get(record.state)
        return LastLaunch(record.at, state)

    @work(group="named", exclusive=True, exit_on_error=False)
    async def on_component_picker_named(self, message: ComponentPicker.Named) -> None:
        self.picker.show_named(message.name, *await asyncio.to_thread(find_named, message.name))

    def on_component_picker_highlighted(self, message: ComponentPicker.Highlighted) -> None:
        self._describe(message.component)

    @work(group="describe", exclusive=True, exit_on_error=False)
    async def _describe(self, component: ComponentSummary | None) -> None:
        if component is None:
            self.docs.show_nothing()
        else:
            self._show(await self._read(component))

    def _show(self, read: Described) -> None:
        if read.doc is None:
            self.docs.show_error(read.component)
        else:
            self.docs.show(read.doc, read.launches, now_of(self.app), fills_form=read.last is not None)

    async def _read(self, component: ComponentSummary, trusted: Path | None = None) -> Described:
        return await asyncio.to_thread(describe_component, component, self.dashboard.runner.journal, trusted)

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
        kinds = Counter(component.kind for component in self.picker.components)
        named = {kind: f"{kinds[kind]:,} {words}" for kind, words in _KINDS.items()}
        named["script"] = count(kinds["script"], "script")
        parts = [text for kind, text in named.items() if kinds[kind]]
        return Text(f"{count(kinds.total(), 'component')}: {', '.join(parts)}" if parts else "", STYLES.faint)

    def action_pick(self, rows: int) -> None:
        """Move in the list of components."""
        self.picker.move(rows)

    def action_pin(self) -> None:
        """Pin the highlighted component, or unpin it."""
        key, component = self.picker.highlighted_key, self.picker.highlighted
        if component is None:
            return
        pinned = self.dashboard.ui_state.state.pinned
        changed = tuple(other for other in pinned if other != key) if key in pinned else (*pinned, key)
        self.dashboard.ui_state.change(pinned=changed)
        self.picker.show_pinned(changed)
        self.dashboard.status.say(
            f"{component.name} is no longer pinned" if key in pinned else f"{component.name} is pinned: it comes first"
        )

    def action_edit_file(self) -> None:
        """Leave the terminal to the editor with the highlighted component's file, then read the components anew."""
        component = self.picker.highlighted
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


def describe_component(component: ComponentSummary, journal: Journal, trusted: Path | None) -> Described:
    """Read a component and its launches without running it.

    Args:
        component: the component.
        journal: where launches are recorded.
        trusted: a folder to trust before.
    """
    launches = launches_of(component_key(component.name), journal, JOURNAL_PATIENCE)
    try:
        if trusted is not None:
            trust_folder(trusted)
        doc = read_component(component.name)
        fault = next((finding for finding in doc.findings if finding.severity == "error"), None)
        untrusted = None if fault or is_script_name(doc.name) else _untrusted(doc.name)
    except Exception as failure:
        # The list has shorter words for what it found.
        error = component.error or describe_error(failure)
        return Described(replace(component, error=error), None, launches, error)
    error = f"{doc.path}:{fault.line}: {fault.description}" if fault else ""
    return Described(component, doc, launches, error, untrusted)


def _untrusted(name: str) -> UntrustedError | None:
    try:
        check_trusted(find(name))
    except UntrustedError as error:
        return error
    return None
