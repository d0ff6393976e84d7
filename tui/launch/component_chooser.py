"""Choosing a component: the list, its documentation, pins, and the file in an editor."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.worker import get_current_worker

from ...base.errors import describe_error
from ...base.trust import UntrustedError, trust_folder
from ...components.build import check_trusted
from ...components.finder import component_key, find, name_here, read_component
from ...components.model import ComponentSummary
from ...components.sbatch_script import is_script_name
from ...specs.status import AppState
from ..format import count
from ..terminal.editor import EditorError, editor_command
from ..terminal.external import run_outside
from ..ui.palette import STYLES
from ..ui.pane import Divider
from ..ui.status import OnDashboard
from ..ui.theme import now_of
from .component_docs import ComponentDocs
from .component_list import LastLaunch, component_folders, growing_list, launches_of, newest_launches
from .component_picker import ComponentPicker
from .messages import ComponentDescribed, ComponentsListed
from .trust_dialog import TrustDialog

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...components.model import ComponentDoc, ComponentKind

JOURNAL_PATIENCE = 0.5
"""Seconds that the list of components waits for the journal."""
_KINDS: dict[ComponentKind, str] = {
    "builtin": "builtin",
    "plugin": "of packages",
    "file": "in files",
    "module": "in modules",
    "script": "scripts",
}


class ComponentChooser(OnDashboard, Horizontal):
    """The list of components beside the documentation of the highlighted component."""

    HELP_TITLE = "Components"
    # Before the search field's own: there ctrl+k and ctrl+e edit the text.
    BINDINGS = [
        Binding("down", "pick(1)", "Next component", priority=True, id="picker.down", show=False),
        Binding("up", "pick(-1)", "Previous component", priority=True, id="picker.up", show=False),
        Binding("pagedown", "pick(10)", "Ten forward", priority=True, id="picker.page_down", show=False),
        Binding("pageup", "pick(-10)", "Ten back", priority=True, id="picker.page_up", show=False),
        Binding("ctrl+k", "pin", "Pin, or unpin: it comes first", priority=True, id="picker.pin", show=False),
        Binding("ctrl+e", "edit_file", "Open its file in your editor", priority=True, id="picker.edit", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """A component was chosen and can be launched.

        Attributes:
            doc: the component.
            launches: its launches, newest first.
        """

        doc: ComponentDoc
        launches: list[LaunchRecord]

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

    @work(thread=True, group="components", exclusive=True, exit_on_error=False)
    def list_components(self) -> None:
        """Hand over the components, the builtins at once, the others as they are read."""
        worker, dashboard = get_current_worker(), self.dashboard
        folders = component_folders(dashboard.settings.launch.component_folders)
        # What of the journal cannot be read at once is left out: the list does not wait for a slow disk.
        launches = newest_launches(dashboard.runner.journal, JOURNAL_PATIENCE)
        for listed in growing_list(folders, dashboard.ui_state.state.pinned, launches):
            if worker.is_cancelled:
                return
            dashboard.post_to(self, ComponentsListed(listed, launches))

    def on_components_listed(self, message: ComponentsListed) -> None:
        """Show the components; the one at the cursor is described anew, as its file may be another by now."""
        launches = {key: self._last_launch(record) for key, record in message.launches.items()}
        before = self.picker.highlighted
        self.picker.show(message.listed, launches, self.dashboard.ui_state.state.pinned)
        if before is not None and self.picker.highlighted != before:
            self._show_highlighted(self.picker.highlighted)
        self.post_message(self.Listed())

    def _last_launch(self, record: LaunchRecord) -> LastLaunch:
        row = self.dashboard.jobs.rows.get(record.handle)
        state = row.state if row is not None else AppState.__members__.get(record.state)
        return LastLaunch(record.at, state)

    def on_component_picker_highlighted(self, message: ComponentPicker.Highlighted) -> None:
        """Show the documentation of the highlighted component."""
        self._show_highlighted(message.component)

    def _show_highlighted(self, component: ComponentSummary | None) -> None:
        if component is None:
            self.docs.show_nothing()
        else:
            self._describe(component)

    def on_component_picker_chosen(self, message: ComponentPicker.Chosen) -> None:
        """Go on to the form."""
        self.choose(message.component)

    def choose_record(self, record: LaunchRecord) -> None:
        """Make the form of a launch, from whichever folder that was."""
        name = name_here(component_key(record.component, record.cwd))
        self.choose(ComponentSummary(name, "file", Path(), 0))

    @work(thread=True, group="describe", exclusive=True, exit_on_error=False)
    def _describe(self, listed: ComponentSummary) -> None:
        self._read(listed, chosen=False)

    # In a group of its own: word of the highlight, which may come after the choice, must not end it.
    @work(thread=True, group="choose", exclusive=True, exit_on_error=False)
    def choose(self, listed: ComponentSummary, trusted: Path | None = None) -> None:
        """Read a component and make its form.

        Args:
            listed: the component.
            trusted: a folder that the user has just trusted.
        """
        self._read(listed, chosen=True, trusted=trusted)

    def _read(self, listed: ComponentSummary, *, chosen: bool, trusted: Path | None = None) -> None:
        launches = launches_of(component_key(listed.name), self.dashboard.runner.journal, JOURNAL_PATIENCE)
        try:
            if trusted is not None:
                trust_folder(trusted)
            doc = read_component(listed.name)
            faults = [fault for fault in doc.findings if fault.severity == "error"]
            error = f"{doc.path}:{faults[0].line}: {faults[0].description}" if faults else ""
            message = ComponentDescribed(listed, doc, launches, error, chosen, _refusal(doc.name) if chosen else None)
        except Exception as failure:
            # The list has shorter words for what it found.
            words = listed.error or describe_error(failure)
            message = ComponentDescribed(replace(listed, error=words), None, launches, words, chosen)
        self.dashboard.post_to(self, message)

    def on_component_described(self, message: ComponentDescribed) -> None:
        """Show the documentation, or make the form."""
        shown = self.picker.highlighted
        if not message.chosen and (shown is None or shown.name != message.listed.name):
            # It took longer to read than the one that is at the cursor now.
            return
        if message.doc is None or message.error:
            if message.doc is None:
                self.docs.show_error(message.listed)
            else:
                self.docs.show(message.doc, message.launches, now_of(self.app))
            if message.chosen:
                self.dashboard.status.say(f"{message.listed.name}: {message.error}", failed=True)
            return
        if not message.chosen:
            self.docs.show(message.doc, message.launches, now_of(self.app))
            return
        if (untrusted := message.untrusted) is not None:
            self.app.push_screen(
                TrustDialog(untrusted), lambda yes: self.choose(message.listed, untrusted.folder) if yes else None
            )
            return
        self.post_message(self.Chosen(message.doc, message.launches))

    def summary(self) -> Text:
        """Return how many components there are of each kind."""
        kinds = Counter(component.kind for component in self.picker.components)
        parts = [f"{kinds[kind]:,} {words}" for kind, words in _KINDS.items() if kinds[kind]]
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


def _refusal(name: str) -> UntrustedError | None:
    """Return why a component may not be run before the user trusts its folder; None if it may."""
    if is_script_name(name):
        return None
    try:
        check_trusted(find(name))
    except UntrustedError as error:
        return error
    return None
