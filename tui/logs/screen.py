"""The Logs screen: one job's logs on the whole screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding

from ...logs.text.sanitize import plain
from ..format import age
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.job_cells import name_text, state_text
from ..ui.palette import Text
from .area import LogsArea

if TYPE_CHECKING:
    from ..messages import JobDescribed
    from ..rows import JobRow
    from ..watch.signals import RowsChanged


class LogsScreen(BaseScreen):
    """All replicas' logs of one job.

    Args:
        row: the job.
        replica: role and number of the replica that is shown first; None for all of them.
    """

    HELP_TITLE = "Logs screen"
    BINDINGS = [
        Binding("escape", "back", "Back", id="logs.back"),
        Binding("b", "stacks", "Stacks of all ranks: why it hangs", id="logs.stacks"),
        Binding("p", "metrics", "Metrics: plots, progress", id="logs.metrics"),
    ]

    def __init__(self, row: JobRow, replica: tuple[str, int] | None = None) -> None:
        super().__init__()
        self.row = row
        self._first_shown = replica
        self.logs = LogsArea(id="logs-area")

    def compose_body(self) -> ComposeResult:
        """Yield the logs."""
        yield self.logs

    def on_mount(self) -> None:
        """Ask for the job."""
        self.listen(self.dashboard.signals.rows, self._show_row)
        self.listen(self.dashboard.signals.described, self._show_described)
        self.logs.show_row(self.row)
        self.logs.log_pane.focus_log()
        self.dashboard.feed.watch(self.row.handle)
        self._refresh_title()

    def on_screen_resume(self) -> None:
        """Ask for the job again."""
        self.dashboard.feed.watch(self.row.handle)

    def _show_described(self, message: JobDescribed) -> None:
        """Show the job's logs."""
        if message.handle == self.row.handle:
            self.logs.show_logs(message.described, message.logs)
            replicas = [(log.role, log.replica) for log in message.logs]
            if self._first_shown in replicas:
                self.logs.log_pane.select_replica(replicas.index(self._first_shown))
                self._first_shown = None

    def _show_row(self, _news: RowsChanged) -> None:
        """Show the job's state as it is now."""
        self.row = self.dashboard.jobs.rows.get(self.row.handle, self.row)
        self._refresh_title()

    def _refresh_title(self) -> None:
        rule = self.logs.rule
        rule.info = name_text(self.row.name, max(10, self.app.size.width - 30), self.glyphs)
        right = state_text(self.row.state, self.glyphs)
        seconds = self.row.age_seconds(self.clock())
        if seconds is not None:
            right.append(f"  {age(seconds)}", "$style-faint")
        rule.right = right

    def on_log_pane_status_changed(self) -> None:
        """Keep the job's own title."""
        self._refresh_title()

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", self.row.name, "Logs"]

    def hints(self) -> list[Hint]:
        """Return the keys of the log pane."""
        return [
            Hint("logs.follow", "Follow"),
            Hint("logs.search", "Search"),
            Hint("logs.filter", "Keep"),
            Hint("logs.error", "Error"),
            Hint("logs.previous logs.next", "Replica"),
            Hint("logs.wrap", "Wrap"),
            Hint("logs.times", "Time"),
            Hint("logs.select", "Select"),
            Hint("logs.save", "Save"),
        ]

    def action_metrics(self) -> None:
        """Show the job's metrics."""
        from ..metrics.screen import MetricsScreen

        self.app.push_screen(MetricsScreen([self.row]))

    def action_stacks(self) -> None:
        """Show where all ranks of the job stand."""
        self.dashboard.show_stacks(self.row)

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()

    def counts(self) -> Text:
        """Return the handle, to be read and copied."""
        return Text(plain(self.row.handle), "$style-faint")
