"""The Job screen: why, the timeline, the replicas, the AppDef, what the backend says, and the logs of one job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import ContentSwitcher

from ...backends.abilities import OpensShell
from ...diagnosis.progress.activity import Activity
from ...diagnosis.progress.stalls import Kind
from ...logs.text.sanitize import plain
from ...specs.status import NONE, AppState, ReplicaState
from ..format import age, cut, duration
from ..logs.area import LogsArea
from ..rows import JobRow, backend_word
from ..ui.bars import Hint, StatusLine
from ..ui.job_cells import name_text, state_text
from ..ui.palette import Text
from ..ui.pane import Divider
from ..ui.text_pane import TextPane
from ..ui.title_rule import TitleRule, tabs_text
from .actions import JobActions
from .doing import DoingPane, ProgressRow, sources
from .replicas import ReplicaGrid, ReplicasPane
from .shell import open_shell
from .timeline import Timeline
from .why import WhyPane

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse, StateChange
    from ..messages import ActivityRead, FailureExplained, JobDescribed, StacksTaken, UsageSampled
    from ..watch.signals import RowsChanged

TABS = {"overview": "Overview", "appdef": "AppDef", "native": "Backend"}


class JobScreen(JobActions):
    """One job.

    Args:
        row: the job as the table had it.
    """

    HELP_TITLE = "Job"
    CSS_PATH = "../styles/job.tcss"
    BINDINGS = [
        Binding("escape", "back", "Back", id="job.back"),
        Binding("i", "tab('native')", "The backend's own description", id="job.native"),
        Binding("right_square_bracket", "next_tab(1)", "Next tab", id="job.next_tab"),
        Binding("left_square_bracket", "next_tab(-1)", "Previous tab", id="job.previous_tab"),
        Binding("z", "zoom", "Zoom the logs", id="job.zoom"),
        Binding("exclamation_mark", "shell", "A shell in the chosen replica", id="job.shell"),
    ]

    def __init__(self, row: JobRow) -> None:
        super().__init__()
        self.row = row
        self.title_rule = TitleRule(id="job-title")
        self.state_line = StatusLine(id="job-state")
        self.timeline = Timeline(id="job-timeline")
        self.progress_row = ProgressRow()
        self.why = WhyPane()
        self.doing = DoingPane()
        self.activity = Activity()
        self.replicas = ReplicasPane()
        self.logs = LogsArea(id="job-logs", compact=True, with_job=False)
        self._tab = "overview"
        self._jumped = False

    def compose_body(self) -> ComposeResult:
        """Yield the tabs' contents."""
        yield self.title_rule
        with ContentSwitcher(initial="overview", id="job-tabs"):
            with Vertical(id="overview"):
                with Vertical(id="job-head"):
                    yield self.state_line
                    yield self.progress_row
                    yield self.timeline
                    with Horizontal(id="job-middle"):
                        yield self.doing
                        yield self.why
                        yield Divider(id="job-divider")
                        yield self.replicas
                yield self.logs
            yield TextPane("AppDef", id="appdef")
            yield TextPane("Backend", id="native")

    def on_mount(self) -> None:
        """Ask for the job."""
        signals = self.dashboard.signals
        self.listen(signals.rows, self._show_row)
        self.listen(signals.described, self._show_described)
        self.listen(signals.usage, self._show_usage)
        self.listen(signals.activity, self._show_activity)
        self.listen(signals.failures, self._show_failure)
        self.listen(signals.stacks, self._show_stacks)
        self.doing.display = self.progress_row.display = False
        self.logs.show_row(self.row)
        self._watch()
        self._refresh_head()
        self.set_focus(self.why.body)

    def on_screen_resume(self) -> None:
        """Ask for the job again."""
        self._watch()

    def on_resize(self, event: events.Resize) -> None:
        """Draw the head for the new width."""
        self._refresh_head()

    # What is shown

    def target_rows(self) -> list[JobRow]:
        """Return this job."""
        return [self.row]

    def _show_row(self, news: RowsChanged) -> None:
        """Show the job's state as it is now."""
        self.row = self.dashboard.jobs.rows.get(self.row.handle, self.row)
        if self.row.handle in news.removed:
            # A job that is no longer listed may be another user's, or was deleted.
            self._watch()
        self._refresh_head()
        self.refresh_bars()

    def _show_described(self, message: JobDescribed) -> None:
        """Show what the backend says of this job."""
        if message.handle != self.row.handle:
            return
        if message.described is None:
            if message.error:
                self.dashboard.status.say(message.error, failed=True, about=message.handle)
            elif message.handle not in self.dashboard.jobs.rows and not self.row.history:
                self._show_gone()
            return
        self.described = described = message.described
        if described.state in (AppState.RUNNING, AppState.SUCCEEDED) or self.activity.is_read:
            self.dashboard.feed.activities.follow(self, message.handle, described, message.logs)
        self._show_doing()
        self.why.show(described)
        self.replicas.show(described)
        self.timeline.changes = tuple(described.timeline) or self._seen_changes()
        self.logs.show_logs(described, message.logs)
        self.logs.show_row(self.row)
        if described.state is AppState.FAILED and not self._jumped and message.logs:
            self._jumped = True
            self.dashboard.feed.explain(message.handle, described, message.logs)
        self._fill_tab()
        self._refresh_head()
        self.refresh_bars()

    def _show_gone(self) -> None:
        """Show that the job was deleted."""
        words = f"{backend_word(self.row.scheduler)} no longer has this job: it was deleted"
        self.row = replace(self.row, history=True, running=0)
        if not self.row.is_final:
            self.row = replace(self.row, state=AppState.UNKNOWN, why=words, finished_at=self.clock())
            if self.described is not None:
                self.described = replace(self.described, state=AppState.UNKNOWN, msg=words, roles_statuses=[])
                self.why.show(self.described)
                self.replicas.show(self.described)
        self._show_doing()
        self._refresh_head()
        self.refresh_bars()

    def _seen_changes(self) -> tuple[StateChange, ...]:
        """Return the states that were seen here, for a backend that keeps none."""
        from ...backends.api import StateChange

        return tuple(StateChange(state, at) for state, at in self.dashboard.jobs.changes(self.row.handle))

    def _show_usage(self, message: UsageSampled) -> None:
        """Show what the replicas use."""
        if message.handle == self.row.handle:
            self.replicas.add_usage(message.usages)

    def _show_stacks(self, message: StacksTaken) -> None:
        """Show where the ranks of a stalled job stand."""
        if message.handle == self.row.handle and self.doing.chart.is_running:
            self._show_doing()

    def _show_activity(self, message: ActivityRead) -> None:
        """Show what the job does."""
        activity = self.dashboard.feed.activity(message.handle)
        # The panes of a screen that is leaving may be closed already.
        if message.handle == self.row.handle and activity is not None and self.doing.chart.is_running:
            self.activity = activity
            self._show_doing()
            self._refresh_head()
            self.refresh_bars()

    @property
    def _is_doing(self) -> bool:
        """Whether the job runs, or has succeeded, and has metrics; else the reason of its state is shown."""
        described, activity = self.described, self.activity
        if described is None or described.msg != NONE:
            return False
        if described.state is AppState.SUCCEEDED:
            return activity.main is not None and not described.notes
        is_read = activity.series or activity.progress.step is not None or activity.observations
        return described.state is AppState.RUNNING and bool(is_read)

    def _show_doing(self) -> None:
        doing = self._is_doing
        had_focus = self.focused in (self.why.body, self.doing.chart, None)
        self.doing.display, self.why.display = doing, not doing
        stalled = self.activity.observed(Kind.STALLED)
        self.progress_row.show(self.activity.progress.fraction if doing else None, is_stalled=stalled is not None)
        self.replicas.show_slow(self.activity.observed(Kind.SLOW) if doing else None)
        if doing:
            handle = self.row.handle
            taken = self.dashboard.jobs.taken_since(handle, stalled.since) if stalled else None
            self.doing.show(self.activity.at_end() if self.row.is_final else self.activity, taken)
        if had_focus and self._tab == "overview" and self.is_active:
            # At once: a later call would take the focus back from where a key has put it.
            self.set_focus(self.doing.chart if doing else self.why.body)

    def on_screen_suspend(self) -> None:
        """Measure nothing that nobody sees."""
        self.dashboard.feed.unwatch_usage(self.row.handle)

    def on_unmount(self) -> None:
        """Read nothing any more."""
        self.dashboard.feed.activities.leave(self)

    def _watch(self) -> None:
        handle = None if self.row.history else self.row.handle
        self.dashboard.feed.watch(handle)
        self.dashboard.feed.watch_usage(None if self.row.is_final else handle)

    def _show_failure(self, message: FailureExplained) -> None:
        """Show why the job failed."""
        if message.handle == self.row.handle and self.described is not None:
            self.why.show(self.described, message.explanation)

    def on_replica_grid_chosen(self, message: ReplicaGrid.Chosen) -> None:
        """Show the chosen replica's log."""
        self.logs.log_pane.select_replica(message.number)
        if message.opened:
            self.logs.log_pane.focus_log()

    def _refresh_head(self) -> None:
        glyphs = self.glyphs
        width = self.app.size.width
        self.title_rule.title = name_text(self.row.name, max(10, width - 40), glyphs, bold=True)
        self.title_rule.right = tabs_text(TABS, self._tab, "tab")
        left = state_text(self.row.state, glyphs)
        reason = (
            self.dashboard.jobs.explained.get(self.row.handle)
            or (self.described.reason if self.described else "")
            or self.row.why
        )
        if reason:
            left.append(f"   {plain(reason.splitlines()[0])}", "bold $style-text")
        elif self.row.is_final and self.row.duration_seconds is not None:
            left.append(f"   in {duration(self.row.duration_seconds)}", "$style-muted")
        else:
            seconds = self.row.age_seconds(self.clock())
            left.append(f"   {age(seconds)}" if seconds is not None else "", "$style-muted")
        if self._is_doing:
            self._append_doing(left)
        if self.row.limit_at is not None:
            remaining = duration(max(0.0, self.row.limit_at - self.clock()))
            left.append(f"   time limit in {remaining}", "$style-muted")
        where = Text()
        if not self._is_doing:
            where.append(self.row.component, "$style-muted")
            where.append(f" {cut(self.row.arguments, 40, glyphs.cut)}" if self.row.arguments else "", "$style-faint")
        where.append(f"   {backend_word(self.row.scheduler, long=True)}", "$style-faint")
        self.state_line.left, self.state_line.right = left, where

    def _append_doing(self, left: Text) -> None:
        # The job is described a little later than the table shows that it has ended.
        activity = self.activity.at_end() if self.row.is_final else self.activity
        pause = activity.observed(Kind.QUIET, Kind.STALLED)
        words = activity.words
        if pause is not None:
            left.append(f"   {pause.sentence.partition(';')[0]}", "bold $style-pending")
            # The pace before the pause tells nothing of what is left.
            words = words[:1]
        left.append("".join(f"   {phrase}" for phrase in words), "$style-text")

    # Tabs

    def _fill_tab(self) -> None:
        if self._tab == "appdef" and self.described is not None:
            self.query_one("#appdef", TextPane).show_yaml(appdef_yaml(self.described))

    def action_tab(self, tab: str) -> None:
        """Show a tab; asked for again, go back to the overview."""
        self._tab = "overview" if tab == self._tab else tab
        self.query_one("#job-tabs", ContentSwitcher).current = self._tab
        self._fill_tab()
        if self._tab == "native":
            self._load_native()
        overview = self.doing.chart if self._is_doing else self.why.body
        target = overview if self._tab == "overview" else self.query_one(f"#{self._tab}", TextPane).body
        self.set_focus(target)
        self._refresh_head()

    def action_next_tab(self, step: int) -> None:
        """Show the next or the previous tab."""
        names = list(TABS)
        self.action_tab(names[(names.index(self._tab) + step) % len(names)])

    @work(group="native", exclusive=True)
    async def _load_native(self) -> None:
        job = self.dashboard.runner.job(self.row.handle)
        try:
            text = await asyncio.to_thread(job.describe_native)
        except Exception as error:
            text = str(error) or f"{backend_word(self.row.scheduler)} has no description of this job"
        self.query_one("#native", TextPane).show_yaml("\n".join(plain(line) for line in text.splitlines()))

    # Bars and actions

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", self.row.name]

    def counts(self) -> Text:
        """Return the handle."""
        return Text(plain(self.row.handle), "$style-faint")

    def summary(self) -> Text:
        """Return where the figures of what it does come from."""
        return Text(sources(self.activity) if self._is_doing else "", "$style-faint")

    def hints(self) -> list[Hint]:
        """Return the keys that act on this job."""
        read_only = self.dashboard.runner.read_only
        final = self.row.is_final
        acting = [
            Hint("jobs.relaunch", "Relaunch"),
            Hint("jobs.delete", "Delete") if final else Hint("jobs.cancel", "Cancel"),
            Hint("jobs.edit", "Edit"),
        ]
        return [
            Hint("jobs.logs", "Logs"),
            Hint("jobs.metrics", "Metrics"),
            *([Hint("jobs.stacks", "Stacks")] if self.can("stacks") else []),
            *([] if read_only else acting),
            # The pane with the focus says which of them is `y`.
            Hint("jobs.copy_handle", "Copy handle"),
            Hint("why.copy", "Copy reason"),
            Hint("replicas.copy_port", "Copy ssh"),
            Hint("", "Next pane", key="tab"),
            Hint("job.next_tab job.previous_tab", "Tabs"),
            Hint("job.zoom", "Zoom"),
            Hint("job.back", "Back"),
        ]

    def action_copy_reason(self) -> None:
        """Copy why the job is as it is."""
        self.dashboard.terminal_clipboard.copy(self.why.reason, "the reason")

    def action_copy_port(self) -> None:
        """Copy the commands that make the ports of the chosen replica reachable."""
        lines = self.replicas.reach_lines
        if lines:
            self.dashboard.terminal_clipboard.copy(
                "\n".join(lines), f"the {lines[0].split()[0]} command{'' if len(lines) == 1 else 's'}"
            )
        else:
            self.dashboard.status.say("This replica publishes no port", failed=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what this job's backend cannot do."""
        if action == "shell":
            replica, dashboard = self.replicas.chosen, self.dashboard
            runs = replica is not None and replica.state is ReplicaState.RUNNING
            capabilities = dashboard.jobs.capabilities(self.row.scheduler)
            has_shell = dashboard.jobs.can(self.row.scheduler, OpensShell) and capabilities and capabilities.shell
            return True if runs and has_shell and not dashboard.runner.read_only else None
        if action == "copy_port" and not self.replicas.has_ports:
            # The same key copies the handle then.
            return False
        return super().check_action(action, parameters)

    def action_shell(self) -> None:
        """Open a shell in the chosen replica."""
        replica = self.replicas.chosen
        if replica is not None:
            self.dashboard.run_worker(
                open_shell(self.dashboard, self.row.handle, replica.role, replica.id),
                group="shell",
                exclusive=True,
            )

    def action_zoom(self) -> None:
        """Give the logs the whole screen, or take it back."""
        self.toggle_class("-zoom-logs")

    def action_back(self) -> None:
        """Undo the zoom, leave a tab, go back."""
        if self.has_class("-zoom-logs"):
            self.remove_class("-zoom-logs")
        elif self._tab != "overview":
            self.action_tab("overview")
        else:
            self.dismiss()


def appdef_yaml(described: DescribeAppResponse) -> str:
    """Return the AppDef of a described job as YAML, secrets masked."""
    from ...backends.shared.readable_yaml import readable_yaml
    from ...backends.shared.secrets import mask_data
    from ...specs.roles import AppDef
    from ...specs.serialize import appdef_to_dict

    data = appdef_to_dict(AppDef(name=described.name or described.app_id, roles=described.roles))
    return readable_yaml(mask_data(data))
