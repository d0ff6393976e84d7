"""What can be done with jobs, on every screen that shows some: cancel, delete, launch again, copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Binding

from ...specs import TorchXTuiError, torchx_handle
from ...specs.errors import described
from ..words import count
from .base import BaseScreen

if TYPE_CHECKING:
    from ...backends.journal import LaunchRecord
    from ...backends.progress import Progress
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
        self.dashboard.copy("\n".join(torchx_handle(row.handle) for row in rows), f"the handle of {_names(rows)}")

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
            self.dashboard.say(f"{_names(rows)} was not launched from a component here", failed=True)
            return
        self.dashboard.copy("\n".join(lines), f"the command of {_names(rows)}")

    def _record(self, row: JobRow) -> LaunchRecord | None:
        return self.dashboard.runner.journal.find(row.handle)

    def action_relaunch(self) -> None:
        """Launch the jobs again as they were."""
        rows = self.target_rows()
        runner, progress = self.dashboard.runner, self.dashboard.launches.begin(_names(rows))
        self._act(rows, partial(runner.relaunch, progress=progress), "Launched", "again", progress=progress)

    def action_edit(self) -> None:
        """Open the form with every value of the job's launch."""
        from ..foreign_job import ForeignJob
        from .launch import LaunchScreen

        row = self.target_rows()[0]
        record = self._record(row)
        if record is not None and record.component:
            self.app.push_screen(LaunchScreen(record))
        elif record is not None:
            self.app.push_screen(LaunchScreen(foreign=ForeignJob(record.app_def(), record.scheduler, record.cfg)))
        else:
            self._edit_foreign(row)

    def _edit_foreign(self, row: JobRow) -> None:
        """Open the form with what the backend tells of a job that was not launched here."""
        from ..foreign_job import foreign_job
        from ..messages import ActionDone, ForeignJobRead

        dashboard = self.dashboard

        def work() -> None:
            try:
                dashboard.post_from_thread(ForeignJobRead(foreign_job(dashboard.runner, row.handle)))
            except Exception as error:
                dashboard.post_from_thread(ActionDone(f"{row.name}: {described(error)}", failed=True))

        dashboard.run_worker(work, thread=True, group="actions", exit_on_error=False)

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
        self,
        rows: list[JobRow],
        act: Callable[[str], str | None],
        verb: str,
        after: str,
        *,
        forget: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Do something with each job off the event loop, then say how each went."""
        from ..messages import ActionDone

        dashboard = self.dashboard

        def work() -> None:
            handles: list[str] = []
            results: list[tuple[str, str]] = []
            for row in rows:
                try:
                    handles.append(act(row.handle) or row.handle)
                    results.append((row.name, ""))
                except Exception as error:
                    results.append((row.name, described(error)))
            failed = len(rows) - len(handles)
            gone = tuple(handles) if forget else ()
            text = _outcome(results, f"{verb} {{}} {after}".strip())
            told = tuple(results) if failed and len(rows) > 1 else ()
            dashboard.post_from_thread(ActionDone(text, bool(failed), tuple(handles), gone, told, progress))

        dashboard.run_worker(work, thread=True, group="actions", exit_on_error=False)


def _outcome(results: list[tuple[str, str]], sentence: str) -> str:
    """Return in one line how an action went.

    Args:
        results: each job with why it failed, empty where it did not.
        sentence: what is said of those with which it went well, with a place for them.
    """
    if len(results) == 1:
        name, failure = results[0]
        return f"{name}: {failure}" if failure else sentence.format(name)
    failed = sum(bool(failure) for _, failure in results)
    done = count(len(results) - failed, "job")
    return f"{sentence.format(done)}, {failed:,} failed" if failed else sentence.format(done)


def _names(rows: list[JobRow]) -> str:
    return rows[0].name if len(rows) == 1 else count(len(rows), "job")
