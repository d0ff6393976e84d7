"""What would start sooner than a job that waits: other requests with the backend's own estimates."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from ...backends.abilities import SuggestsAlternatives
from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import cut
from ..launch.partitions import start_words
from ..ui.dialog import TEXT_WIDTH
from ..ui.job_cells import name_text
from ..ui.list_dialog import ListDialog
from ..ui.palette import Text
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.types import Alternative
    from ..dashboard import Dashboard
    from ..rows import JobRow

_START_WIDTH = 22


class SoonerDialog(ListDialog[dict[str, str]]):
    """A list of requests, the soonest first; answers with the run options that differ in the chosen one.

    Args:
        dashboard: the app.
        row: the job.
    """

    HELP_TITLE = "Would start sooner"
    HINTS = (("sooner.edit", "edit with this"), ("sooner.ask", "ask again"), ("dialog.back", "back"))
    BINDINGS = [
        Binding("e,enter", "choose", "Open the form with this", id="sooner.edit"),
        Binding("R", "ask", "Ask again", id="sooner.ask"),
    ]

    def __init__(self, dashboard: Dashboard, row: JobRow) -> None:
        super().__init__("Would start sooner")
        self._dashboard = dashboard
        self._row = row
        self.alternatives: list[Alternative] | None = None
        self._error = ""
        self._words = Static(markup=False, id="dialog-text")

    def compose_question(self) -> ComposeResult:
        """Yield the job, and what is being asked or went wrong."""
        yield self._words

    def on_mount(self) -> None:
        """Ask the backend."""
        self.action_ask()

    def action_ask(self) -> None:
        """Ask the backend, which may take seconds."""
        self.alternatives, self._error = None, ""
        self.show_rows(0)
        self._ask()

    @work(exclusive=True)
    async def _ask(self) -> None:
        job = self._dashboard.runner.job(self._row.handle)

        def ask() -> list[Alternative]:
            scheduler = job.scheduler
            return scheduler.alternatives(job.app_id) if isinstance(scheduler, SuggestsAlternatives) else []

        try:
            self.alternatives = await asyncio.to_thread(ask)
        except Exception as error:
            self.alternatives, self._error = [], describe_error(error)
        self.show_rows(0)

    def show_rows(self, cursor: int | None = None) -> None:
        """Draw the job and the requests anew."""
        text = name_text(self._row.name, TEXT_WIDTH, glyphs_of(self.app), bold=True).append("\n")
        if self._error:
            text.append(f"\n{plain(self._error)}", "$style-removed")
        elif self.alternatives is None:
            text.append("\nWaiting for the backend's estimates", "$style-faint")
        self._words.update(text)
        super().show_rows(cursor)

    def rows(self) -> list[Text]:
        """Return the requests, the soonest first."""
        return [self._line(alternative) for alternative in self.alternatives or ()]

    def choose(self, row: int) -> None:
        """Answer with a request."""
        self.dismiss(dict((self.alternatives or [])[row].changes))

    def _line(self, alternative: Alternative) -> Text:
        changed = ", ".join(f"{name} {plain(value)}" for name, value in alternative.changes.items())
        start = (
            start_words(alternative.start, now_of(self.app))
            if alternative.start is not None
            else alternative.fault or "not known"
        )
        line = Text(f"{cut(plain(start), _START_WIDTH, '~'):<{_START_WIDTH}} ", "$style-text")
        width = TEXT_WIDTH - _START_WIDTH - 2
        return line.append(cut(changed or "as it is", width, "~"), "bold $style-text" if changed else "$style-faint")
