"""What a launch would do: the dry run, the difference to the last launch, the command, what would be shipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...logs.text.sanitize import plain
from ..format import bytes_words, count
from ..ui.palette import STYLES
from ..ui.pane import Pane
from ..ui.theme import glyphs_of
from ..ui.yaml_text import yaml_text
from .partitions import partitions_text

if TYPE_CHECKING:
    from ...backends.api import WorkspaceListing
    from ...components.sbatch_script import ScriptLine
    from ..ui.glyphs import Glyphs
    from .messages import PartitionsFound

TABS = ("dry run", "diff", "command", "script", "partitions", "workspace")
_WORDS = {
    "dry run": "Dry run",
    "diff": "Diff",
    "command": "Command",
    "script": "Script",
    "partitions": "Partitions",
    "workspace": "Workspace",
}
MAX_FILES = 500
"""Files that are listed, the largest first."""
MAX_SCRIPT_LINES = 500
"""Lines of a script that are shown."""


class Preview(Pane):
    """Texts behind tabs; those of the workspace and of partitions are there where the launch has such.

    On a wide screen the partitions stand above the tabs, so that they are seen while the form is filled.

    The dry run keeps the last valid request and says from when it is.
    """

    def __init__(self) -> None:
        super().__init__(id="preview")
        self._content = Static(markup=False)
        self.body = VerticalScroll(self._content, id="preview-body")
        self.panel = Static(markup=False, id="partitions-panel")
        self._tab = TABS[0]
        self._request = ""
        self._note = ""
        self._diff: list[tuple[str, str, str]] = []
        self._compared = False
        self._script: Sequence[ScriptLine] = ()
        self._command = ""
        self._label = ""
        self._interpreter = ""
        self._workspace = ""
        self._listing: WorkspaceListing | None = None
        self._unreadable = ""
        self._has_partitions = False
        self._partitions: PartitionsFound | None = None

    def compose_body(self) -> ComposeResult:
        """Yield the partitions and the text."""
        yield self.panel
        yield self.body

    def on_mount(self) -> None:
        """Draw the tabs."""
        self._draw()

    def on_resize(self) -> None:
        """Draw the tabs again: where the partitions stand is another place."""
        self._draw()

    @property
    def has_panel(self) -> bool:
        """Whether the partitions stand above the tabs."""
        return self._has_partitions and self.screen.has_class("-extra-wide")

    def set_request(self, text: str, label: str, interpreter: str) -> None:
        """Show a request that is up to date.

        Args:
            text: the request.
            label: which one of a sweep it is, empty where there is one alone.
            interpreter: what ran the component, empty where that is not worth saying.
        """
        self._request, self._note, self._label, self._interpreter = text, "", label, interpreter
        self._draw()

    def set_workspace(self, workspace: str) -> bool:
        """Take the workspace that is chosen, empty for none; return whether it is another one than before."""
        if workspace == self._workspace:
            return False
        self._workspace, self._listing, self._unreadable = workspace, None, ""
        self._draw()
        return True

    def show_workspace(self, workspace: str, listing: WorkspaceListing | None, unreadable: str) -> None:
        """Show what would be shipped of a workspace, if it is still the one that is chosen."""
        if workspace == self._workspace:
            self._listing, self._unreadable = listing, unreadable
            self._draw()

    def set_has_partitions(self, yes: bool) -> None:
        """Offer the partitions, or not."""
        self._has_partitions = yes
        self._draw()

    def show_partitions(self, found: PartitionsFound | None) -> None:
        """Show where there is room; None while that is asked for."""
        self._partitions = found
        self._draw()

    def on_partitions_found(self, message: PartitionsFound) -> None:
        """Show where there is room for what stands in the form."""
        message.stop()
        self.show_partitions(message)

    def set_note(self, note: str, interpreter: str | None = None) -> None:
        """Show why the request is not up to date; the last valid one stays below.

        Args:
            note: The reason.
            interpreter: What ran the component now; None if it has not returned.
        """
        self._note = note
        self._interpreter = self._interpreter if interpreter is None else interpreter
        self._draw()

    def set_diff(self, rows: list[tuple[str, str, str]], compared: bool, script: Sequence[ScriptLine] = ()) -> None:
        """Show what differs from the last launch; ``compared`` is False if there was none.

        Args:
            rows: name, earlier and present text of each field that differs.
            compared: whether there was a last launch.
            script: the lines of a batch script with what is submitted beside them.
        """
        self._diff, self._compared, self._script = rows, compared, script
        self._draw()

    def set_command(self, text: str) -> None:
        """Show the command."""
        self._command = text
        self._draw()

    @property
    def tab(self) -> str:
        """The tab that is shown: the first one while there is no workspace for that of the workspace."""
        return self._tab if self._tab in self._tabs() else TABS[0]

    def show(self, tab: str) -> None:
        """Show a tab."""
        self._tab = tab
        self._draw()

    def next_tab(self) -> None:
        """Show the next tab."""
        tabs = self._tabs()
        self.show(tabs[(tabs.index(self.tab) + 1) % len(tabs)])

    def _tabs(self) -> tuple[str, ...]:
        has_tab = self._has_partitions and not self.has_panel
        there = {"workspace": self._workspace, "partitions": has_tab, "script": self._script}
        left_out = {tab for tab, is_there in there.items() if not is_there}
        return tuple(tab for tab in TABS if tab not in left_out)

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        tabs = Text(end="")
        for tab in self._tabs():
            tabs.append("   " if tabs else "", "not bold")
            style = f"bold underline {STYLES.accent}" if tab == self.tab else f"not bold {STYLES.muted}"
            tabs.append(_WORDS[tab], style)
            if tab == "diff" and self._diff:
                tabs.append(f" {len(self._diff)}", f"not bold {STYLES.faint}")
        self.rule.title = tabs
        self._content.update(self._text())
        self.panel.display = self.has_panel
        if self.has_panel:
            self.panel.update(partitions_text(self._partitions, is_narrow=True))

    def _text(self) -> Text:
        if self.tab == "diff":
            return diff_text(self._diff, self._compared)
        if self.tab == "command":
            lines = [plain(line) for line in self._command.splitlines()]
            return Text("\n\n".join(line if line.startswith("#") else f"$ {line}" for line in lines), STYLES.log)
        if self.tab == "script":
            return script_text(self._script, glyphs_of(self.app))
        if self.tab == "partitions":
            return partitions_text(self._partitions)
        if self.tab == "workspace":
            return workspace_text(self._listing, self._unreadable)
        text = Text(end="")
        if self._note:
            text.append(f"{plain(self._note)}\n", STYLES.pending)
            text.append("The last valid request:\n\n" if self._request else "", STYLES.muted)
        if self._label:
            text.append(f"the first of the sweep: {plain(self._label)}\n\n", STYLES.faint)
        if self._interpreter:
            text.append(f"component run by {plain(self._interpreter)}\n\n", STYLES.faint)
        text.append_text(yaml_text("\n".join(plain(line) for line in self._request.splitlines())))
        return text


def workspace_text(listing: WorkspaceListing | None, unreadable: str) -> Text:
    """Return what would be shipped: the sum, the rules, the files with the largest first."""
    if unreadable:
        return Text(plain(unreadable), STYLES.removed)
    if listing is None:
        return Text("Reading the workspace", STYLES.faint)
    more = "" if listing.is_whole else " and more: not all files were counted"
    text = Text(f"{count(len(listing.files), 'file')}, {bytes_words(listing.total)}{more}\n", STYLES.text, end="")
    if not listing.rules:
        text.append("no ignore file: everything is shipped\n", STYLES.faint)
    for name in listing.rules:
        text.append(f"by {plain(name)}\n", STYLES.faint)
    for rule, number in sorted(listing.left.items(), key=lambda item: -item[1]):
        text.append(f"  {number:>6,} left out by {plain(rule)}\n", STYLES.muted)
    text.append("\n")
    largest = sorted(listing.files, key=lambda file: (-file[1], file[0]))
    for path, size in largest[:MAX_FILES]:
        text.append(f"{bytes_words(size):>10}  ", STYLES.faint).append(f"{plain(path)}\n", STYLES.log)
    if len(largest) > MAX_FILES:
        text.append(f"and {len(largest) - MAX_FILES:,} smaller ones\n", STYLES.faint)
    return text


def script_text(lines: Sequence[ScriptLine], glyphs: Glyphs) -> Text:
    """Return the lines of a script, each with what is submitted in its place."""
    text = Text(end="")
    for line in lines[:MAX_SCRIPT_LINES]:
        sign = "+" if not line.number else glyphs.differs if line.given else " "
        text.append(f"{line.number or '':>4} ", STYLES.faint).append(f"{sign} ", STYLES.pending)
        text.append(plain(line.text), STYLES.log if line.text.startswith("#SBATCH") else STYLES.muted)
        if line.given:
            text.append("   " if line.text else "").append(plain(" ".join(line.given)), STYLES.added)
        text.append("\n")
    if len(lines) > MAX_SCRIPT_LINES:
        text.append(f"and {count(len(lines) - MAX_SCRIPT_LINES, 'more line')}\n", STYLES.faint)
    return text.append("\nThe file stays as it is: sbatch gets the changes beside it.", STYLES.faint)


def diff_text(rows: list[tuple[str, str, str]], compared: bool) -> Text:
    """Return the difference of arguments to the last launch, in form order."""
    if not compared:
        return Text("This component has not been launched here before", STYLES.faint)
    if not rows:
        return Text("Same as the last launch", STYLES.faint)
    text = Text(end="")
    for name, before, after in rows:
        text.append(f"{name}\n", STYLES.text)
        text.append(f"  - {plain(before) or 'none'}\n", STYLES.removed)
        text.append(f"  + {plain(after) or 'none'}\n", STYLES.added)
    return text
