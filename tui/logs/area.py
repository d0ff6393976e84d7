"""The log pane under its title, following whichever job it is told to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...specs.status import AppState, ReplicaState
from ..format import age, count, split_name
from ..ui.job_cells import first_failed, state_text
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of, now_of
from .pane import LogPane

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...logs.source.replica_log import ReplicaLog
    from ..rows import JobRow

_NO_LOG = "only in the history: its backend has no log of this job"


class LogsArea(Pane):
    """A pane with the logs of one job.

    Args:
        compact: put the state of the log in the title, for layouts without room for a row of its own.
        with_job: name the job and its state in the title too, where nothing else on the screen does.
    """

    def __init__(self, *, id: str | None = None, compact: bool = False, with_job: bool = True) -> None:
        self._with_job = with_job
        self.log_pane = LogPane()
        self.log_pane.compact = compact
        super().__init__("Logs", self.log_pane, id=id)
        self._shown: tuple[object, ...] = ()
        self._row: JobRow | None = None
        self._final = False
        # Whether the log was put to what the job ended of: once, then a person goes where they like.
        self._stood = False

    def on_mount(self) -> None:
        """Take what the settings call an error."""
        settings = getattr(self.app, "settings", None)
        self.log_pane.set_error_patterns(settings.logs.error_patterns if settings is not None else ())

    def set_compact(self, compact: bool) -> None:
        """Take the layout with or without status rows."""
        if self.log_pane.compact != compact:
            self.log_pane.compact = compact
            self._refresh_title()

    def show_row(self, row: JobRow | None) -> None:
        """Say which job is meant; its logs come with `show_logs`."""
        changed = (row.handle if row else None) != (self._row.handle if self._row else None)
        self._row = row
        self.log_pane.job_name = row.name if row is not None else ""
        if changed:
            self._shown = ()
            self._final = self._stood = False
            self.log_pane.clear(_NO_LOG if row is not None and row.history else "")
        self._refresh_title()

    def show_logs(self, described: DescribeAppResponse | None, logs: list[ReplicaLog]) -> None:
        """Show a described job's logs; the same logs again change nothing."""
        self._final = described is not None and described.has_ended
        key = tuple((log.role, log.replica) for log in logs)
        if described is None or (self._row is not None and key == self._shown):
            self.log_pane.check_final()
        else:
            self._shown = key
            self.log_pane.show(logs, is_final=lambda: self._final)
        if described is not None:
            replicas = [replica for status in described.roles_statuses for replica in status.replicas]
            failed = (number for number, replica in enumerate(replicas) if replica.state is ReplicaState.FAILED)
            self.log_pane.set_failed(frozenset(failed))
            if described.state is AppState.FAILED and logs and not self._stood:
                self._stood = True
                self._stand_at_cause(first_failed(replicas))

    def _stand_at_cause(self, replica: int) -> None:
        """Show what the job ended of, unless a person is reading something else."""
        if self.log_pane.status.state != "paused":
            self.log_pane.select_replica(replica)
            self.log_pane.show_cause()

    def on_log_pane_status_changed(self) -> None:
        """Repeat the log's state in the title where it has no row of its own."""
        self._refresh_title()

    def _refresh_title(self) -> None:
        if not self.is_mounted:
            return
        glyphs = glyphs_of(self.app)
        row, status = self._row, self.log_pane.status
        info = Text()
        if row is not None and self.log_pane.compact and self._with_job:
            info.append(split_name(row.name)[0], "$style-muted")
            info.append("  ")
            info.append_text(state_text(row.state, glyphs))
            seconds = row.age_seconds(now_of(self.app))
            if row.why and row.is_final:
                info.append(f"  {row.why}", "$style-muted")
            elif seconds is not None:
                info.append(f" {age(seconds)}", "$style-muted")
        if row is not None:
            info.append(f"{'   ' if info else ''}{status.shown}", "$style-faint")
            info.append(f"   since {status.since}" if status.since else "", "$style-pending")
        self.rule.info = info
        right = Text()
        if self.log_pane.compact and row is not None:
            right.append_text(self.log_pane.state_text())
            right.append(f"  {count(status.line_count, 'line')}", "$style-faint")
        self.rule.right = right
