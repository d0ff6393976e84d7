"""The Jobs screen: the table left, the logs of the job at the cursor right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Input
from textual.worker import Worker

from ...backends.abilities import ListsAllUsers
from ...base.files import user_name
from ...specs.status import AppState
from ..format import clock, count
from ..job.actions import JobActions
from ..rows import JobRow, backend_word
from ..ui.bars import Hint, key_of
from ..ui.filtered_pane import FilteredPane
from ..ui.garbage_collection import spare_living
from ..ui.job_cells import COLUMNS_BY_KEY, state_style
from ..ui.palette import Text
from ..ui.pane import Divider
from ..watch.make_rows import history_rows
from ..watch.signals import NO_CHANGE, RowsChanged
from .card import JobCard
from .chains import Chains
from .filter import FilterError, JobView
from .first_run import FirstRun
from .table import JobTable, Sort

if TYPE_CHECKING:
    from ...backends.history.launch_record import LaunchRecord
    from ..logs.area import LogsArea
    from ..messages import JobDescribed, ProgressRead

# Columns of the screen from which table and logs stand side by side.
SIDE_BY_SIDE = 120
HISTORY_ROWS = 1000
"""Older launches that are read at once; more follow when the end of the table is in sight."""
PROGRESS_INTERVAL_S = 2.0
"""Seconds between two reads of the progress of the jobs on the screen."""
# Columns from which the status line parts its counts by backend.
EXTRA_WIDE = 160


class JobsScreen(JobActions):
    """Every job of every backend."""

    HELP_TITLE = "Jobs"

    BINDINGS = [
        Binding("slash", "filter", "Filter", id="jobs.filter"),
        Binding("escape", "back", "Clear filter, then marks", id="jobs.back"),
        Binding("H", "history", "History: past launches", id="jobs.history"),
        Binding("c", "columns", "Choose the columns", id="jobs.columns"),
        Binding("u", "mine", "Jobs of all users, or only mine", id="jobs.mine"),
        Binding("T", "torchx_only", "Only TorchX jobs, or all", id="jobs.torchx_only"),
        Binding("plus", "unfold", "Unfold or fold a chain", id="jobs.unfold"),
        Binding("z", "zoom", "Zoom the pane", id="jobs.zoom"),
        Binding("o", "metrics", "Overlay the metrics of the marked jobs", id="jobs.overlay"),
        *[
            Binding(str(n), f"backend({n})", f"Backend {n}" if n else "All backends", id=f"jobs.backend_{n}")
            for n in range(10)
        ],
    ]

    def __init__(self) -> None:
        super().__init__()
        placeholder = "state:failed age:<2h backend:local name !word"
        self.table_pane = FilteredPane("Jobs", JobTable(), placeholder, id="table-pane", filter_id="filter")
        self.card = JobCard()
        self._logs: LogsArea | None = None
        self.first_run = FirstRun()
        self.view = JobView()
        # Launches that no backend knows any more, and the pages of the journal that were not read yet.
        self._past: dict[str, JobRow] = {}
        self._pages: Iterator[tuple[list[LaunchRecord], int]] | None = None
        self._reader: Worker[None] | None = None
        self.chains = Chains({})

    def compose_body(self) -> ComposeResult:
        """Yield the two panes, and what stands there before the first job."""
        with Horizontal(id="jobs-body"):
            with Vertical(id="jobs-left"):
                yield self.table_pane
                yield self.card
            yield Divider(id="jobs-divider")
        yield self.first_run

    @property
    def logs(self) -> LogsArea:
        """The logs, made when there is a first job: their engine is a third of what the first paint would load."""
        if self._logs is None:
            from ..logs.area import LogsArea

            self._logs = LogsArea(id="logs-area", compact=self.app.size.width < SIDE_BY_SIDE)
            self.query_one("#jobs-body").mount(self._logs)
            self.call_after_refresh(spare_living)
        return self._logs

    @property
    def table(self) -> JobTable:
        """The table."""
        return self.table_pane.table

    def on_mount(self) -> None:
        """Start with the focus on the table."""
        self.chains = Chains(self.dashboard.jobs.rows)
        signals = self.dashboard.signals
        self.listen(signals.rows, self.show_rows)
        self.listen(signals.described, self._show_described)
        self.listen(signals.activity, lambda news: self.card.show_activity(news.handle))
        self.listen(signals.progress, self._show_progress)
        self.listen(signals.stacks, lambda _: self._show_card())
        self.set_focus(self.table)
        self.set_interval(30, self.table.refresh_ages)
        self.set_interval(PROGRESS_INTERVAL_S, self._watch_progress)
        self._restore()

    def _restore(self) -> None:
        """Show the table as it was left the last time."""
        kept = self.dashboard.ui_state.state
        if kept.sort_column in COLUMNS_BY_KEY:
            self.table.sort = Sort(kept.sort_column, kept.sort_reversed)
        self.table.choose_columns(kept.columns)
        try:
            view = JobView(filter=kept.filter, user=user_name() if kept.mine else "", torchx_only=kept.torchx_only)
        except FilterError:
            view = JobView()
        self.table_pane.filter.value = view.filter
        self.table_pane.filter.display = bool(view.filter)
        self.choose_view(view)

    def on_resize(self, event: events.Resize) -> None:
        """Stack the panes when they do not fit side by side."""
        if self._logs is not None:
            self._logs.set_compact(event.size.width < SIDE_BY_SIDE)

    # What is shown

    def choose_view(self, view: JobView) -> None:
        """Show other jobs, in place of those that are shown."""
        self.view = view
        self.table.show_one_backend(view.backend is not None)
        self.dashboard.ui_state.change(filter=view.filter, mine=bool(view.user), torchx_only=view.torchx_only)
        self.table.set_rows(self.chains.fold([*self.dashboard.jobs.rows.values(), *self._past.values()], view.has)[0])
        self.show_rows()
        self._read_more_history()

    def show_rows(self, news: RowsChanged = NO_CHANGE) -> None:
        """Draw the rows that changed, and the bars."""
        jobs = self.dashboard.jobs
        rows, removed = list(news.changed), set(news.removed)
        if self.view.history:
            # Listed jobs are no longer past ones; jobs that a backend has forgotten are, deleted jobs are not.
            for handle in (*removed, *(row.handle for row in rows)):
                self._past.pop(handle, None)
            if removed:
                self._find_forgotten(removed)
        shown, hidden = self.chains.fold(self.chains.take(rows, removed), self.view.has)
        self.table.change_rows(shown, {**hidden, **dict.fromkeys(removed)})
        self.table.set_dimmed(jobs.stale)
        nothing = jobs.is_known() and not jobs.rows and not self.view.history
        self.first_run.display = nothing
        self.query_one("#jobs-body").display = not nothing
        if not nothing and self.focused is None:
            # What is hidden loses the focus, and does not get it back by itself.
            self.set_focus(self.table)
        if nothing:
            self.first_run.show(jobs.schedulers, jobs.findings, jobs.outages)
        self.table.placeholder = self._placeholder(self._total)
        self._refresh_title()
        self._show_cursor_row(self.table.cursor_row)
        self.refresh_bars()

    def _placeholder(self, total: int) -> Text:
        jobs = self.dashboard.jobs
        if jobs.error:
            return Text(f"The backends cannot be found: {jobs.error}", "$style-failed")
        if not jobs.is_known(self.view.backend):
            waiting = jobs.unanswered(self.view.backend)
            names = ", ".join(backend_word(name, long=True) for name in waiting) or "the backends"
            return Text(f"Asking {names}", "$style-faint")
        if self.view.filter and total:
            return Text(f"No job matches {self.view.filter}   {key_of(self, 'jobs.back')} clear", "$style-muted")
        backend = self.view.backend or ""
        if (outage := jobs.outages.get(backend)) is not None:
            from ...logs.text.sanitize import plain

            what = "is not set up here" if backend in jobs.not_set_up else "does not answer"
            text = Text(f"{backend_word(backend, long=True)} {what}", "bold $style-text")
            text.append(f"   {plain(outage.reason)}", "$style-muted")
            return text.append(f"   {key_of(self, 'jobs.refresh')} asks now", "$style-faint")
        return Text("No jobs here", "$style-faint")

    @property
    def _total(self) -> int:
        backend = self.view.backend
        past = sum(backend in (None, row.scheduler) for row in self._past.values())
        return self.dashboard.jobs.count(backend) + past

    def _refresh_title(self) -> None:
        shown, total = self.table.row_count, self._total
        info = f"{total:,}" if shown == total and not self.view.filter else f"{shown:,} of {total:,}"
        if not total and not self.dashboard.jobs.is_known(self.view.backend):
            info = ""
        hidden = f", {len(self.table.hidden_marks):,} hidden" if self.table.hidden_marks else ""
        info += f"  {len(self.table.marks):,} marked{hidden}" if self.table.marks or hidden else ""
        newest = self.table.sort.column == "age" and not self.table.sort.reverse
        info += "  newest first" if newest else f"  by {self.table.sort.column}"
        info += "".join(f", {word}" for word in self.view.words)
        left_out = self.table.left_out
        info += f"  no room for {', '.join(left_out)}" if left_out else ""
        self.table_pane.rule.info = Text(info, "$style-faint")

    def _show_cursor_row(self, row: JobRow | None) -> None:
        if row is None or self.described is None or self.described.app_id != row.app_id:
            self.described = None
        self._show_card()
        if row is not None or self._logs is not None:
            self.logs.show_row(row)

    def _show_card(self) -> None:
        """Show the facts of the job at the cursor, and where its ranks stand if it is stalled."""
        row, stall, now = self.table.cursor_row, self.table.cursor_stall, self.clock()
        taken = self.dashboard.jobs.taken_since(row.handle, now - stall) if row and stall is not None else None
        self.card.show(row, self.described, now, taken.found if taken else None)

    def _show_described(self, message: JobDescribed) -> None:
        """Complete card and logs when the backend has described the job at the cursor."""
        row = self.table.cursor_row
        if row is None or row.handle != message.handle or message.described is None:
            return
        self.described = message.described
        if message.described.state is AppState.FAILED and message.handle not in self.dashboard.jobs.explained:
            self.dashboard.feed.explain(message.handle, message.described, message.logs)
        self._show_card()
        self.logs.show_logs(message.described, message.logs)
        self.card.follow(message)

    def on_job_table_highlighted(self, message: JobTable.Highlighted) -> None:
        """Look at the job at the cursor."""
        self._show_cursor_row(message.row)
        # Another screen watches the job that it shows.
        if self.is_active:
            self._watch(message.row)
        self._read_more_history()
        self.refresh_bars()

    def _watch(self, row: JobRow | None) -> None:
        handle = row.handle if row is not None and not row.history else None
        # Nothing is watched before the first paint, which does not wait for the import of the feed.
        if handle is not None or self.dashboard.jobs.schedulers:
            self.dashboard.feed.watch(handle)

    def _watch_progress(self) -> None:
        self.dashboard.feed.watch_progress(*(self.table.on_screen if self.is_active else ((), ())))

    def _show_progress(self, message: ProgressRead) -> None:
        """Show how far running jobs are."""
        self.table.show_progress(message.progress)
        if self.dashboard.jobs.taken:
            self._show_card()
        self.refresh_bars()

    def on_screen_resume(self) -> None:
        """Look at the cursor's job again: another screen may have looked elsewhere."""
        self._watch(self.table.cursor_row)

    def on_descendant_focus(self) -> None:
        """Keep to the job whose log somebody goes to."""
        if self._logs is not None and self._logs.has_focus_within:
            self.table.hold_cursor()

    def on_job_table_marks_changed(self) -> None:
        """Say how many are marked."""
        self.dashboard.jobs.marked = self.table.marked_rows() if self.table.marks else []
        self.show_rows()

    def on_job_table_opened(self, message: JobTable.Opened) -> None:
        """Open the Job screen."""
        from ..job.screen import JobScreen

        self.app.push_screen(JobScreen(message.row))

    # Bars

    def top_middle(self) -> Text:
        """Return the backends with their counts; the one chosen is underlined."""
        jobs = self.dashboard.jobs
        text = Text(end="")
        for number, name in enumerate([None, *jobs.schedulers]):
            chosen, start = name == self.view.backend, len(text)
            word = "all" if name is None else backend_word(name, long=self.app.size.width >= SIDE_BY_SIDE)
            text.append(f"{number} ", "$style-faint")
            style = "$style-faint" if name in jobs.not_set_up else "$style-text"
            text.append(word, "bold underline $style-accent" if chosen else style)
            outage = jobs.outages.get(name) if name else None
            if outage is not None and name not in jobs.answered:
                text.append(f" {self.glyphs.none}", "$style-faint")
            elif jobs.is_known(name) or (name is None and jobs.rows):
                text.append(f" {jobs.count(name):,}", "$style-faint")
            if outage is not None and name in jobs.answered:
                wide = self.app.size.width >= SIDE_BY_SIDE
                text.append(f" ! stale {clock(outage.since, outage.since)[:5]}" if wide else " !", "$style-pending")
            elif name in jobs.missing:
                wide = self.app.size.width >= SIDE_BY_SIDE
                text.append(" ! some missing" if wide else " !", "$style-pending")
            text.apply_meta({"@click": f"screen.backend({number})"}, start)
            text.append("   ")
        return text

    def counts(self) -> Text:
        """Return how many run, wait and failed; of each backend where there is room, else of those that are shown."""
        jobs, chosen = self.dashboard.jobs, self.view.backend
        listed = [name for name in jobs.schedulers if jobs.count(name)]
        if chosen is not None or len(listed) < 2 or self.app.size.width < EXTRA_WIDE:
            return self._state_counts(chosen)
        text = Text(end="")
        for name in listed:
            counts = self._state_counts(name)
            if counts:
                text.append("     " if text else "")
                text.append(f"{backend_word(name)}  ", "$style-faint")
                text.append_text(counts)
        return text

    def _state_counts(self, scheduler: str | None) -> Text:
        states = self.dashboard.jobs.state_counts(scheduler)
        text = Text(end="")
        for state, word in ((AppState.RUNNING, "running"), (AppState.PENDING, "pending"), (AppState.FAILED, "failed")):
            if states[state]:
                text.append("   " if text else "")
                text.append(f"{states[state]:,}", f"bold {state_style(state)}")
                text.append(f" {word}", "$style-muted")
        return text

    def hints(self) -> list[Hint]:
        """Return the keys that act on the job at the cursor."""
        if self.first_run.display:
            names = {"jobs.new": "New", "app.commands": "Commands", "jobs.refresh": "Refresh", "app.quit": "Quit"}
            return [Hint(name, word) for name, word in names.items()]
        if self.table_pane.filter.has_focus:
            return [Hint("", "Keep filter", key="enter"), Hint("jobs.back", "Clear")]
        marked = len(self.table.marks)
        many = f" {marked}" if marked else ""
        read_only = self.dashboard.runner.read_only
        launching = [] if read_only else [Hint("jobs.new", "New")]
        acting = [
            Hint("jobs.relaunch", f"Relaunch{many}"),
            Hint("jobs.cancel", f"Cancel{many}"),
            Hint("jobs.edit", "Edit"),
        ]
        deleting = [Hint("jobs.delete", f"Delete{many}")] if marked else []
        return [
            *launching,
            Hint("table.open", "Open", self.can("logs")),
            *([Hint("jobs.stacks", "Stacks")] if self.table.cursor_stall is not None else []),
            Hint("jobs.logs", "Logs"),
            Hint("jobs.metrics", "Metrics"),
            *([] if read_only else acting + deleting),
            Hint("jobs.filter", "Filter"),
            Hint("table.mark", "Mark"),
            *([Hint("jobs.unfold", "Unfold")] if self.can("unfold") else []),
            Hint("app.commands", "Commands"),
        ]

    # Actions

    def target_rows(self) -> list[JobRow]:
        """Return the marked jobs, else the one at the cursor."""
        return self.table.marked_rows()

    def shows_job(self, handle: str) -> bool:
        """Return whether the job has a row."""
        return self.table.has_row(handle)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys of the backends that there are."""
        if action == "unfold":
            return True if (row := self.table.cursor_row) is not None and row.link else None
        if action == "backend":
            return parameters[0] in range(len(self.dashboard.jobs.schedulers) + 1)
        return super().check_action(action, parameters)

    def any_target(self, test: Callable[[JobRow], bool] = lambda _: True) -> bool:
        """See `JobActions.any_target`; the rows are not sorted for it."""
        return any(map(test, self.table.targets()))

    def folded_links(self, row: JobRow) -> list[JobRow]:
        """See `JobActions.folded_links`."""
        return self.chains.links(row) if self.chains.is_folded(row) else []

    def action_unfold(self) -> None:
        """Show a row for each link of the chain at the cursor, or one for all of them."""
        if row := self.table.cursor_row:
            self.table.hold_cursor()
            self.show_rows(RowsChanged(self.chains.toggle(row)))

    def action_filter(self) -> None:
        """Type a filter."""
        self.table_pane.ask_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        if event.input is self.table_pane.filter:
            try:
                view = replace(self.view, filter=event.value.strip())
            except FilterError as error:
                self.dashboard.status.say(str(error), failed=True)
                return
            self.choose_view(view)

    def action_back(self) -> None:
        """Undo one thing: the filter, the marks, the zoom."""
        if self.table_pane.filter.display:
            self.table_pane.clear_filter()
        elif self.table.marks or self.table.hidden_marks:
            self.table.clear_marks()
        elif self.has_class("-zoom-table") or self.has_class("-zoom-logs"):
            self.action_zoom()
        else:
            self.dashboard.status.clear()

    def action_history(self) -> None:
        """Show or hide launches that no backend knows any more."""
        shown = not self.view.history
        self.workers.cancel_group(self, "history")
        self._reader, self._past, self._pages = None, {}, self.dashboard.runner.journal.pages() if shown else None
        begun = "Reading the history" if self.table.is_end_in_sight else "Older jobs follow below the last row"
        self.dashboard.status.say(begun if shown else "History is hidden")
        self.choose_view(replace(self.view, history=shown))

    def _read_more_history(self) -> None:
        """Read older launches once the end of the table is in sight."""
        is_free = self._reader is None or self._reader.is_finished
        if self._pages is not None and is_free and self.table.is_end_in_sight:
            self._reader = self._read_history(self._pages)

    @work(group="history")
    async def _read_history(self, pages: Iterator[tuple[list[LaunchRecord], int]]) -> None:
        """Show the next launches that no backend knows any more, newest first."""
        known, most = frozenset(self.dashboard.jobs.rows), len(self._past) + HISTORY_ROWS
        while self._pages is not None and (len(self._past) < most or self.table.is_end_in_sight):
            records, left = await asyncio.to_thread(next, pages, ([], 0))
            if not left:
                self._pages = None
            self._add_past(await asyncio.to_thread(history_rows, records, known))
        past = count(len(self._past), "older job") if self._past else "No older jobs"
        self.dashboard.status.say(f"{past} in history{'; more below the last row' if self._pages else ''}")

    @work(group="history")
    async def _find_forgotten(self, handles: Collection[str]) -> None:
        """Show the launches of jobs that their backends have just forgotten."""
        records = await asyncio.to_thread(self.dashboard.runner.journal.find_all, handles)
        rows = await asyncio.to_thread(history_rows, records.values(), frozenset())
        if self.view.history:
            self._add_past(rows)

    def _add_past(self, rows: Iterable[JobRow]) -> None:
        new = {row.handle: row for row in rows}
        self._past |= new
        self.table.change_rows((row for row in new.values() if self.view.has(row)), {})
        self._refresh_title()

    def on_job_table_sorted(self, message: JobTable.Sorted) -> None:
        """Say and keep the order."""
        self.dashboard.ui_state.change(sort_column=message.sort.column, sort_reversed=message.sort.reverse)
        self.show_rows()

    @work(group="dialog")
    async def action_columns(self) -> None:
        """Choose and order the columns."""
        from .columns import ColumnsDialog

        chosen = await self.app.push_screen_wait(ColumnsDialog(self.table.shown_columns))
        if chosen is not None:
            self.table.choose_columns(chosen)
            self._refresh_title()
            self.dashboard.ui_state.change(columns=chosen)

    def action_mine(self) -> None:
        """Go from this user's jobs and those that backends list anyway to everybody's, to mine alone, and back."""
        view, jobs = self.view, self.dashboard.jobs
        able = [name for name in jobs.schedulers if jobs.can(name, ListsAllUsers)]
        everybody = bool(able) and not (view.everybody or view.user)
        self.dashboard.feed.set_all_users(able, everybody)
        user = "" if view.user or everybody else user_name()
        self.choose_view(replace(view, user=user, everybody=everybody))

    def action_torchx_only(self) -> None:
        """Show only what TorchX launched, or all that the backends list."""
        self.choose_view(replace(self.view, torchx_only=not self.view.torchx_only))

    def action_backend(self, number: int) -> None:
        """Show one backend's jobs, or all."""
        names = [None, *self.dashboard.jobs.schedulers]
        if number < len(names):
            self.choose_view(replace(self.view, backend=names[number]))

    def action_zoom(self) -> None:
        """Give the pane with the focus the whole screen, or give it back."""
        zooms = not (self.has_class("-zoom-table") or self.has_class("-zoom-logs"))
        in_logs = self._logs is not None and self._logs.has_focus_within
        self.set_class(zooms and not in_logs, "-zoom-table").set_class(zooms and in_logs, "-zoom-logs")
