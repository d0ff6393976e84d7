"""What would start sooner than a job that waits: other requests with the backend's own estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ...logs.text.sanitize import plain
from ...specs import parse_app_handle
from ...specs.errors import describe_error
from ..format import cut
from ..launch.places import start_words
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.job_cells import name_text
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.types import Alternative
    from ..app import TorchXTuiApp
    from ..rows import JobRow

_START_WIDTH = 22


class SoonerDialog(Dialog[dict[str, str]]):
    """A list of requests, the soonest first; answers with the run options that differ in the chosen one.

    Args:
        dashboard: the app.
        row: the job.
    """

    HELP_TITLE = "Would start sooner"
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="sooner.down", show=False),
        Binding("k,up", "move(-1)", "Up", id="sooner.up", show=False),
        Binding("e,enter", "edit", "Open the form with this", id="sooner.edit", show=False),
        Binding("R", "ask", "Ask again", id="sooner.ask", show=False),
    ]

    @dataclass
    class Found(Message):
        """The requests are known, or why they are not."""

        alternatives: list[Alternative]
        error: str = ""

    def __init__(self, dashboard: TorchXTuiApp, row: JobRow) -> None:
        super().__init__()
        self._dashboard = dashboard
        self._row = row
        self.alternatives: list[Alternative] | None = None
        self._error = ""
        self._cursor = 0
        self._list = Static(markup=False, id="dialog-text")
        self._list.can_focus = True

    def compose(self) -> ComposeResult:
        """Yield the box with the list."""
        with Vertical(id="dialog") as box:
            box.border_title = "Would start sooner"
            yield self._list

    def first_focus(self) -> Widget:
        """Return the list: there are no buttons."""
        return self._list

    def on_mount(self) -> None:
        """Ask."""
        self.action_ask()

    def action_ask(self) -> None:
        """Ask the backend, which may take seconds."""
        self.alternatives, self._error, self._cursor = None, "", 0
        self._draw()
        self._ask()

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _ask(self) -> None:
        name, _, app_id = parse_app_handle(self._row.handle)
        try:
            found = self.Found(self._dashboard.runner.scheduler(name).alternatives(app_id))
        except Exception as error:
            found = self.Found([], describe_error(error))
        self._dashboard.post_to(self, found)

    def on_sooner_dialog_found(self, message: Found) -> None:
        """Show the answer."""
        self.alternatives, self._error = message.alternatives, message.error
        self._draw()

    def action_move(self, step: int) -> None:
        """Go to another request."""
        self._cursor = min(max(self._cursor + step, 0), max(0, len(self.alternatives or ()) - 1))
        self._draw()

    def action_edit(self) -> None:
        """Answer with the request at the cursor."""
        if self.alternatives:
            self.dismiss(dict(self.alternatives[self._cursor].changes))

    def _draw(self) -> None:
        glyphs = glyphs_of(self.app)
        text = Text(end="", no_wrap=True)
        text.append_text(name_text(self._row.name, TEXT_WIDTH, glyphs, bold=True)).append("\n\n")
        if self._error:
            text.append(f"{plain(self._error)}\n", STYLES.removed)
        elif self.alternatives is None:
            text.append("The backend is asked for its estimates\n", STYLES.faint)
        for number, alternative in enumerate(self.alternatives or ()):
            line = self._line(alternative)
            if number == self._cursor:
                line.stylize(STYLES.cursor)
            text.append_text(line).append("\n")
        text.append("\n")
        for keys, words in (("e", "edit with this"), ("R", "ask again"), ("esc", "back")):
            text.append(keys, f"bold {STYLES.accent}").append(f" {words}  ", STYLES.muted)
        self._list.update(text)

    def _line(self, alternative: Alternative) -> Text:
        changed = ", ".join(f"{name} {plain(value)}" for name, value in alternative.changes.items())
        start = (
            start_words(alternative.start, now_of(self.app))
            if alternative.start is not None
            else alternative.fault or "not known"
        )
        line = Text(f" {cut(plain(start), _START_WIDTH, '~'):<{_START_WIDTH}} ", STYLES.text, end="")
        width = TEXT_WIDTH - _START_WIDTH - 2
        line.append(cut(changed or "as it is", width, "~"), f"bold {STYLES.text}" if changed else STYLES.faint)
        line.pad_right(max(0, TEXT_WIDTH - line.cell_len))
        return line
