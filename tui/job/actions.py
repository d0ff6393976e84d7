"""What can be done with jobs, on every screen that shows some: cancel, delete, launch again, copy."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding

from ...backends.abilities import DescribesCluster, RunsCommands
from ...backends.job import Job
from ...base.errors import describe_error
from ...specs.handles import torchx_handle
from ..format import count
from ..rows import backend_word
from ..ui.base import BaseScreen
from .bulk import job_names

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...backends.runner import Runner
    from ..dashboard import Dashboard
    from ..rows import JobRow


# Jobs that are cancelled or deleted at a time.
_AT_ONCE = 16
# How often is said how far that is (s).
_TELL_SECONDS = 0.25


class JobActions(BaseScreen):
    """A screen whose keys act on jobs. Subclasses say on which."""

    BINDINGS = [
        Binding("n", "new", "New launch", id="jobs.new"),
        Binding("l", "logs", "Logs, full screen", id="jobs.logs"),
        Binding("p", "metrics", "Metrics: plots, progress", id="jobs.metrics"),
        Binding("b", "stacks", "Stacks of all ranks: why it hangs", id="jobs.stacks"),
        Binding("r", "relaunch", "Relaunch as it was", id="jobs.relaunch"),
        Binding("e", "edit", "Edit and relaunch", id="jobs.edit"),
        Binding("x", "cancel", "Cancel", id="jobs.cancel"),
        Binding("D", "delete", "Delete", id="jobs.delete"),
        Binding("y", "copy_handle", "Copy the handle", id="jobs.copy_handle"),
        Binding("Y", "copy_command", "Copy the torchx command", id="jobs.copy_command"),
        Binding("A", "menu", "More actions", id="jobs.menu"),
        Binding("C", "cluster", "Cluster: what is free", id="jobs.cluster"),
        Binding("R", "refresh_jobs", "Refresh", id="jobs.refresh"),
    ]

    described: DescribeAppResponse | None = None
    """What the backend says of the job at the cursor; None until it has answered."""

    def target_rows(self) -> list[JobRow]:
        """Return the jobs that a key acts on: the marked ones, else the one at the cursor."""
        return []

    def folded_links(self, row: JobRow) -> list[JobRow]:
        """Return the jobs of a chain that one row stands for; empty for a row that is its job's alone."""
        return []

    def any_target(self, test: Callable[[JobRow], bool] = lambda _: True) -> bool:
        """Return whether a key acts on any job that a test holds for; every key that is drawn asks."""
        return any(test(row) for row in self.target_rows())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what read-only mode forbids, and what no job here can do now."""
        if not super().check_action(action, parameters):
            return None
        if action in ("relaunch", "edit", "cancel", "delete", "new") and self.dashboard.runner.read_only:
            return None
        if action == "menu":
            return True if not self.dashboard.runner.read_only and self.any_target() else None
        if action == "cancel":
            return True if self.any_target(_is_live) else None
        if action == "cluster":
            return True if self.dashboard.jobs.with_ability(DescribesCluster) else None
        if action == "stacks":
            has_stacks = cache(lambda name: self.dashboard.jobs.can(name, RunsCommands))
            return True if self.any_target(lambda row: not row.history and has_stacks(row.scheduler)) else None
        if action in ("relaunch", "edit", "delete", "logs", "metrics", "copy_handle", "copy_command"):
            return True if self.any_target() else None
        return True

    def can(self, action: str) -> bool:
        """Return whether an action can do something now."""
        return self.check_action(action, ()) is True

    def _one_target(self, what: str, test: Callable[[JobRow], bool] = lambda _: True) -> JobRow:
        """Return the first target that passes a test; say so if other targets are left out."""
        rows = self.target_rows()
        row = next(filter(test, rows), rows[0])
        if len(rows) > 1:
            others = count(len(rows) - 1, "other marked job")
            self.dashboard.status.say(f"{what} of {row.name} only, not of {others}")
        return row

    @work(group="actions")
    async def action_menu(self) -> None:
        """Ask what else can be done with the jobs, and offer it."""
        from .continuation import find_continuation
        from .dialogs import ending_dialog
        from .menu import CONTINUE, SOONER, ActionsDialog, find_actions
        from .relaunch import open_edit
        from .sooner import SoonerDialog

        rows, dashboard = self.target_rows(), self.dashboard
        try:
            actions = await asyncio.to_thread(find_actions, dashboard.runner, rows)
        except Exception as error:
            dashboard.status.say(f"{job_names(rows)}: {describe_error(error)}", failed=True)
            return
        if not actions:
            dashboard.status.say(f"No other actions for {job_names(rows)}", failed=True)
            return
        chosen = await dashboard.push_screen_wait(ActionsDialog(rows, actions))
        if chosen is None:
            return
        action, value = chosen
        rows = list(actions[action])
        if action == SOONER:
            changes = await dashboard.push_screen_wait(SoonerDialog(dashboard, rows[0]))
            if changes is not None:
                open_edit(dashboard, rows[0], lambda _record: changes)
        elif action == CONTINUE:
            open_edit(dashboard, rows[0], partial(find_continuation, dashboard, rows[0]))
        elif not action.ends_job or await dashboard.push_screen_wait(ending_dialog(dashboard, rows, action, value)):
            act = partial(Job.act, action=action.name, value=value)
            self._act(rows, act, f"{action.name}:", "done", cancels=False)

    async def action_new(self) -> None:
        """Pick a component and fill its form."""
        from ..launch.screen import LaunchScreen

        await self.app.push_screen(LaunchScreen())

    def action_cluster(self) -> None:
        """Show what is free, first where the job is that the screen describes."""
        from ..cluster.screen import ClusterScreen, pool_of_job
        from ..launch.screen import LaunchScreen

        def launch(scheduler: str, cfg: Mapping[str, str]) -> None:
            self.app.push_screen(LaunchScreen(changes=cfg, scheduler=scheduler))

        row, described = next(iter(self.target_rows()), None), self.described
        pool = pool_of_job(described) if described is not None else ""
        self.app.push_screen(ClusterScreen(row.scheduler if row is not None else "", pool, launch))

    def action_logs(self) -> None:
        """Show the job's logs on the whole screen."""
        from ..logs.screen import LogsScreen

        self.app.push_screen(LogsScreen(self._one_target("Logs")))

    def action_metrics(self) -> None:
        """Show the metrics of the job, or of several in one chart."""
        from ..metrics.screen import MetricsScreen
        from .relaunch import relaunch

        rows = sorted(self.target_rows(), key=lambda row: row.submitted_at or 0)
        self.app.push_screen(MetricsScreen(rows, lambda row: relaunch(self.dashboard, [row])))

    def action_stacks(self) -> None:
        """Show where all ranks of the job stand."""
        jobs = self.dashboard.jobs
        self.dashboard.show_stacks(self._one_target("Stacks", lambda row: jobs.can(row.scheduler, RunsCommands)))

    def action_refresh_jobs(self) -> None:
        """Ask every backend now."""
        self.dashboard.feed.refresh()

    def action_copy_handle(self) -> None:
        """Copy the handles, a line each."""
        rows = self.target_rows()
        self.dashboard.terminal_clipboard.copy(
            "\n".join(torchx_handle(row.handle) for row in rows), f"the handle of {job_names(rows)}"
        )

    def action_copy_command(self) -> None:
        """Copy the command that launches the same from a shell."""
        self.dashboard.run_worker(self._copy_command(self.target_rows()), group="actions")

    async def _copy_command(self, rows: list[JobRow]) -> None:
        dashboard = self.dashboard
        try:
            # The journal and the components are files.
            lines = await asyncio.to_thread(launch_commands, dashboard, rows)
        except Exception as error:
            # The component's file is another by now, or gone; the journal cannot be read.
            dashboard.status.say(f"Command not copied: {describe_error(error)}", failed=True)
            return
        if not lines:
            reason = f"{job_names(rows)} was not launched from a component here"
            dashboard.status.say(f"No command to copy: {reason}", failed=True)
            return
        dashboard.terminal_clipboard.copy("\n".join(lines), f"the command of {job_names(rows)}", is_command=True)

    def action_relaunch(self) -> None:
        """Launch the jobs again as they were; ask first where the world has changed since."""
        from .relaunch import relaunch

        relaunch(self.dashboard, self.target_rows())

    def action_edit(self) -> None:
        """Open the form with every value of the job's launch."""
        from .relaunch import open_edit

        open_edit(self.dashboard, self._one_target("Form"))

    @work(group="actions")
    async def action_cancel(self) -> None:
        """Ask, then cancel."""
        from .dialogs import cancel_dialog

        rows, dashboard = [row for row in self.target_rows() if _is_live(row)], self.dashboard
        if not rows:
            return
        links = [link for link in self.folded_links(rows[0]) if _is_live(link)] if len(rows) == 1 else []
        links = links if len(links) > 1 else []
        find_lost_logs = partial(lost_logs, dashboard.runner, links or rows)
        answer = await dashboard.push_screen_wait(cancel_dialog(dashboard, rows, find_lost_logs, links))
        if answer:
            self._act(links if answer == "a" else rows, Job.cancel, "Cancelling", "")
        else:
            dashboard.status.say("Nothing cancelled")

    @work(group="actions")
    async def action_delete(self) -> None:
        """Ask, then delete."""
        from .dialogs import delete_dialog

        rows, dashboard = self.target_rows(), self.dashboard
        if not rows:
            return
        if await dashboard.push_screen_wait(delete_dialog(dashboard, rows)):
            self._act(rows, Job.delete, "Deleted", "", forget=True)
        else:
            dashboard.status.say("Nothing deleted")

    def _act(
        self,
        rows: Sequence[JobRow],
        act: Callable[[Job], str | None],
        verb: str,
        after: str,
        *,
        forget: bool = False,
        cancels: bool = True,
    ) -> None:
        """Do something with each job off the event loop, then say how each went."""
        from ..messages import Told
        from .bulk import act_on_jobs

        dashboard = self.dashboard
        doing = "Deleting" if forget else verb
        told_at = 0.0

        def tell(done: int) -> None:
            """Say how far it is, now and then."""
            nonlocal told_at
            if done < len(rows) and time.monotonic() - told_at > _TELL_SECONDS:
                told_at = time.monotonic()
                dashboard.post_from_thread(Told(f"{doing} {count(len(rows), 'job')}: {done:,} done"))

        async def run() -> None:
            done = await asyncio.to_thread(
                act_on_jobs,
                rows,
                lambda handle: act(dashboard.runner.job(handle)),
                verb,
                after,
                forget=forget,
                most=_AT_ONCE,
                on_done=tell,
            )
            done.is_cancel = cancels and not forget
            dashboard.post_message(done)

        if cancels and not forget:
            dashboard.jobs.expect_cancelled([row.handle for row in rows])
        # The app's worker: it continues when the screen is left.
        dashboard.run_worker(run(), group="actions")


def _is_live(row: JobRow) -> bool:
    return not row.is_final and not row.history


def lost_logs(runner: Runner, rows: Sequence[JobRow]) -> list[str]:
    """Return what becomes of logs that are not kept when these jobs are cancelled, a sentence for each backend."""
    said = {name: runner.scheduler(name).capabilities.logs_after_cancel for name in {row.scheduler for row in rows}}
    several = len(said) > 1
    return [f"{backend_word(name)}: {words}" if several else words for name, words in said.items() if words]


def launch_commands(dashboard: Dashboard, rows: Sequence[JobRow]) -> list[str]:
    """Return the commands that launch jobs again; of those that no component of ours made there is none."""
    from ..launch.commands import launch_command

    records = dashboard.runner.journal.find_all([row.handle for row in rows])
    launched = [records[row.handle] for row in rows if row.handle in records]
    return [shlex.join(launch_command(record, dashboard.settings.launch)) for record in launched if record.component]
