"""What can be done with jobs, on every screen that shows some: cancel, delete, launch again, copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.binding import Binding

from ...specs import TorchXTuiError, torchx_handle
from ...specs.errors import described
from ..acting import job_names
from .base import BaseScreen

if TYPE_CHECKING:
    from ...backends.journal import LaunchRecord
    from ..app import TorchXTuiApp
    from ..job_rows import JobRow


class JobActions(BaseScreen):
    """A screen whose keys act on jobs. Subclasses say on which."""

    BINDINGS = [
        Binding("n", "new", "New launch", id="jobs.new", show=False),
        Binding("l", "logs", "Logs, full screen", id="jobs.logs", show=False),
        Binding("r", "relaunch", "Relaunch as it was", id="jobs.relaunch", show=False),
        Binding("e", "edit", "Edit and relaunch", id="jobs.edit", show=False),
        Binding("x", "cancel", "Cancel", id="jobs.cancel", show=False),
        Binding("D", "delete", "Delete", id="jobs.delete", show=False),
        Binding("y", "copy_handle", "Copy the handle", id="jobs.copy_handle", show=False),
        Binding("Y", "copy_command", "Copy the torchx command", id="jobs.copy_command", show=False),
        Binding("R", "refresh_jobs", "Refresh", id="jobs.refresh", show=False),
    ]

    def target_rows(self) -> list[JobRow]:
        """Return the jobs that a key acts on: the marked ones, else the one at the cursor."""
        return []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what read-only mode forbids, and what no job here can do now."""
        if not super().check_action(action, parameters):
            return None
        if action in ("relaunch", "edit", "cancel", "delete", "new") and self.dashboard.runner.read_only:
            return None
        rows = self.target_rows()
        if action == "cancel":
            return True if any(not row.is_final and not row.history for row in rows) else None
        if action in ("relaunch", "edit", "delete", "logs", "copy_handle", "copy_command"):
            return True if rows else None
        return True

    def can(self, action: str) -> bool:
        """Return whether an action can do something now."""
        return self.check_action(action, ()) is True

    def action_new(self) -> None:
        """Pick a component and fill its form."""
        from .launch import LaunchScreen

        self.app.push_screen(LaunchScreen())

    def action_logs(self) -> None:
        """Show the job's logs on the whole screen."""
        from .logs import LogsScreen

        self.app.push_screen(LogsScreen(self.target_rows()[0]))

    def action_refresh_jobs(self) -> None:
        """Ask every backend now."""
        self.dashboard.feed.refresh()

    def action_copy_handle(self) -> None:
        """Copy the handles, a line each."""
        rows = self.target_rows()
        self.dashboard.copy("\n".join(torchx_handle(row.handle) for row in rows), f"the handle of {job_names(rows)}")

    def action_copy_command(self) -> None:
        """Copy the command that launches the same from a shell."""
        from ..commands import launch_command

        rows = self.target_rows()
        records = [record for row in rows if (record := self._record(row)) is not None]
        try:
            lines = [shlex.join(launch_command(record)) for record in records if record.component]
        except TorchXTuiError as error:
            # The component's file is another by now, or gone.
            self.dashboard.say(f"no command: {error}", failed=True)
            return
        if not lines:
            self.dashboard.say(f"{job_names(rows)} was not launched from a component here", failed=True)
            return
        self.dashboard.copy("\n".join(lines), f"the command of {job_names(rows)}")

    def _record(self, row: JobRow) -> LaunchRecord | None:
        return self.dashboard.runner.journal.find(row.handle)

    def action_relaunch(self) -> None:
        """Launch the jobs again as they were; ask first where the world has changed since."""
        from ..relaunch import Relaunch

        Relaunch(self.dashboard, self.target_rows()).start()

    def action_edit(self) -> None:
        """Open the form with every value of the job's launch."""
        open_edit(self.dashboard, self.target_rows()[0])

    def action_cancel(self) -> None:
        """Ask, then cancel."""
        from .dialogs import CancelDialog

        rows = [row for row in self.target_rows() if not row.is_final and not row.history]
        if rows:
            self.app.push_screen(CancelDialog(rows), lambda yes: self._cancel(rows) if yes else None)

    def _cancel(self, rows: list[JobRow]) -> None:
        self._act(rows, self.dashboard.runner.cancel, "Cancelling", "")

    def action_delete(self) -> None:
        """Ask, then delete."""
        from .dialogs import DeleteDialog

        rows = self.target_rows()
        if rows:
            self.app.push_screen(DeleteDialog(rows), lambda yes: self._delete(rows) if yes else None)

    def _delete(self, rows: list[JobRow]) -> None:
        self._act(rows, self.dashboard.runner.delete, "Deleted", "", forget=True)

    def _act(
        self, rows: list[JobRow], act: Callable[[str], str | None], verb: str, after: str, *, forget: bool = False
    ) -> None:
        """Do something with each job off the event loop, then say how each went."""
        from ..acting import act_on_jobs

        dashboard = self.dashboard

        def work() -> None:
            dashboard.post_from_thread(act_on_jobs(rows, act, verb, after, forget=forget))

        dashboard.run_worker(work, thread=True, group="actions", exit_on_error=False)


def open_edit(dashboard: TorchXTuiApp, row: JobRow) -> None:
    """Open the form with every value of a job's launch."""
    from ..foreign_job import ForeignJob
    from .launch import LaunchScreen

    record = dashboard.runner.journal.find(row.handle)
    if record is not None and record.component:
        dashboard.push_screen(LaunchScreen(record))
    elif record is not None:
        dashboard.push_screen(LaunchScreen(foreign=ForeignJob(record.app_def(), record.scheduler, record.cfg)))
    else:
        _edit_foreign(dashboard, row)


def _edit_foreign(dashboard: TorchXTuiApp, row: JobRow) -> None:
    """Open the form with what the backend tells of a job that was not launched here."""
    from ..foreign_job import foreign_job
    from ..messages import ActionDone, ForeignJobRead

    def work() -> None:
        try:
            dashboard.post_from_thread(ForeignJobRead(foreign_job(dashboard.runner, row.handle)))
        except Exception as error:
            dashboard.post_from_thread(ActionDone(f"{row.name}: {described(error)}", failed=True))

    dashboard.run_worker(work, thread=True, group="actions", exit_on_error=False)
