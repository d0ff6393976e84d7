"""The Metrics screen: the metrics of one job in a list and charts, or one metric of several jobs in one chart."""

from __future__ import annotations

import asyncio
import io
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Grid, Horizontal
from textual.widgets import Static

from ...base.durations import duration
from ...base.errors import describe_error
from ...diagnosis.metrics.chart import Options, wants_log, x_limits, x_values
from ...diagnosis.metrics.export import rank, write_csv
from ...diagnosis.metrics.files import plain_name
from ...diagnosis.metrics.series import Series, Smoothing
from ...diagnosis.progress.activity import Activity, main_series
from ...logs.text.sanitize import plain
from ..format import age, count, cut
from ..messages import ActivityRead
from ..rows import JobRow
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.drawing import guard_update
from ..ui.job_cells import name_text, state_text
from ..ui.new_file import write_new_file
from ..ui.palette import Text
from ..ui.pane import Divider, Pane
from ..ui.title_rule import TitleRule
from ..watch.signals import RowsChanged
from .chart import ChartPane
from .legend import Legend
from .metric_list import MetricList

_log = logging.getLogger(__name__)

# Charts are drawn so often at most while the job goes on (s).
_REDRAW_S = 2.0
# A narrower screen has the keys that are needed first, in short words.
_FULL_HINTS = 100
# Jobs of an overlay: each is described and read in threads of its own.
MAX_JOBS = 16
# What is shown at first beside the main metric, as far as there is room.
_SHOWN_FIRST = ("grad_norm", "grad norm", "tok/s", "lr", "learning_rate", "acc", "eval/loss", "eval_loss", "val_loss")


class MetricsScreen(BaseScreen):
    """The metrics of jobs.

    Args:
        rows: one job, or several whose metrics are overlaid, in the order in which they were launched; the first
            `MAX_JOBS` of them are shown.
        relaunch: launches a job again as it was; None where that is not possible.
    """

    HELP_TITLE = "Metrics"
    CSS_PATH = "../styles/metrics.tcss"
    BINDINGS = [
        Binding("escape", "back", "Back", id="metrics.back"),
        Binding("s", "smoothing", "Smoothing", id="metrics.smoothing"),
        Binding("L", "log", "Logarithmic axis", id="metrics.log"),
        Binding("t", "time", "By step or by time", id="metrics.time"),
        Binding("r", "relaunch", "Relaunch as it was", id="metrics.relaunch"),
        Binding("left", "step(-1)", "Cursor to the left", id="metrics.left"),
        Binding("right", "step(1)", "Cursor to the right", id="metrics.right"),
        Binding("plus,equals_sign", "zoom_axis(0.5)", "Zoom in", id="metrics.zoom_in"),
        Binding("minus", "zoom_axis(2)", "Zoom out", id="metrics.zoom_out"),
        Binding("o", "overlay", "Overlay the marked jobs, or those of the sweep", id="metrics.overlay"),
        Binding("y", "copy", "Copy as CSV", id="metrics.copy"),
        Binding("S", "export", "Save as CSV and SVG", id="metrics.export"),
        Binding("right_square_bracket", "next_job(1)", "Next job", id="metrics.next_job"),
        Binding(
            "left_square_bracket",
            "next_job(-1)",
            "Previous job",
            id="metrics.previous_job",
        ),
    ]

    def __init__(self, rows: Sequence[JobRow], relaunch: Callable[[JobRow], object] | None = None) -> None:
        super().__init__()
        self.rows = list(rows[:MAX_JOBS])
        self._asked_for = len(rows)
        self._relaunch = relaunch
        self.title_rule = TitleRule(id="metrics-title")
        self.state_line = Static(id="metrics-state", markup=False)
        self.list = MetricList()
        self.left = Pane("Metrics", self.list, id="metrics-left")
        self.grid = Grid(id="metrics-grid")
        self.legend = Legend()
        self.jobs_pane = Pane("Jobs", self.legend, id="metrics-jobs")
        self._hidden: set[str] = set()
        self._panes = [ChartPane() for _ in range(9)]
        self.options = Options()
        self._chosen: list[str] | None = None
        self._shown: list[str] = []
        self._log: dict[str, bool] = {}
        self._zoomed = False
        self.activities: dict[str, Activity] = {}
        self._drawn_at = 0.0
        self._is_due = False

    @property
    def _is_overlay(self) -> bool:
        return len(self.rows) > 1

    def compose_body(self) -> ComposeResult:
        """Yield the list beside the charts."""
        yield self.title_rule
        yield self.state_line
        with Horizontal(id="metrics-body"):
            yield self.left
            yield Divider(id="metrics-divider")
            with self.grid:
                yield from self._panes
        if self._is_overlay:
            yield self.jobs_pane

    def on_mount(self) -> None:
        """Begin to read the jobs."""
        self.listen(self.dashboard.signals.rows, self._show_rows)
        self.listen(self.dashboard.signals.activity, self._take_activity)
        for row in self.rows:
            if (known := self.dashboard.feed.activity(row.handle)) is not None:
                self.activities[row.handle] = known
            self._follow(row.handle)
        self.set_focus(self.list)
        self._draw()

    def on_unmount(self) -> None:
        self.dashboard.feed.activities.leave(self)

    @work(group="metrics")
    async def _follow(self, handle: str) -> None:
        """Read a job, or what was kept of it if its backend fails."""
        feed = self.dashboard.feed
        try:
            described, logs = await asyncio.to_thread(feed.describe, handle)
        except Exception as error:
            _log.warning("the metrics of %s cannot be read", handle, exc_info=True)
            self.dashboard.status.say(describe_error(error), failed=True, about=handle)
            described, logs = None, []
        feed.activities.follow(self, handle, described, logs)

    def on_resize(self, event: events.Resize) -> None:
        """Show as many charts as there is room for."""
        self.call_after_refresh(self._draw)

    def _take_activity(self, message: ActivityRead) -> None:
        """Take over what a job does, and draw it soon."""
        activity = self.dashboard.feed.activity(message.handle)
        if activity is None or all(row.handle != message.handle for row in self.rows):
            return
        known = bool(self.activities.get(message.handle, Activity()).series)
        self.activities[message.handle] = activity
        wait = _REDRAW_S - (time.monotonic() - self._drawn_at)
        if wait <= 0 or not known:
            self._draw()
        elif not self._is_due:
            self._is_due = True
            self.set_timer(wait, self._draw)

    def _show_rows(self, _news: RowsChanged) -> None:
        """Show the jobs' states as they are now."""
        before, self.rows = self.rows, [self.dashboard.jobs.rows.get(row.handle, row) for row in self.rows]
        for row, earlier in zip(self.rows, before, strict=True):
            if row.is_final and not earlier.is_final:
                self._follow(row.handle)
        self._draw_head()
        self.refresh_bars()

    # Drawing

    def _draw(self) -> None:
        # Of a screen that is leaving, the list may be closed already: it would make a scrollbar that nobody ends.
        if self.is_mounted and self.list.is_running:
            with guard_update(self.dashboard.status, "the metrics"):
                self._draw_metrics()

    def _draw_metrics(self) -> None:
        self._is_due, self._drawn_at = False, time.monotonic()
        series = self._listed()
        capacity = self._capacity()
        for metric in series:
            self._log.setdefault(plain_name(metric.name), wants_log(metric))
        wanted = _first_shown(series, capacity) if self._chosen is None else self._chosen
        named = {plain_name(metric.name): metric.name for metric in series}
        chosen = [named[plain_name(name)] for name in wanted if plain_name(name) in named]
        self._shown = chosen
        self.list.show(series, chosen)
        self.left.rule.info = Text(f"{len(series)}{f', {len(chosen)} shown' if len(chosen) > 1 else ''}")
        cursor = self.list.cursor
        alone = self._zoomed or self._is_overlay or capacity == 1 or not chosen
        shown = [cursor] if alone and cursor else chosen[:capacity]
        if cursor and cursor in chosen and cursor not in shown:
            shown[-1] = cursor
        self._show_charts(shown)
        self.set_class(self._zoomed, "-zoomed")
        self._draw_head()
        self.refresh_bars()

    def _show_charts(self, names: Sequence[str]) -> None:
        columns = 1 if len(names) <= 1 else 3 if len(names) > 4 else 2
        self.grid.styles.grid_size_columns = columns
        self.grid.styles.grid_size_rows = max(1, -(-len(names) // columns))
        for number, pane in enumerate(self._panes):
            pane.display = number < max(1, len(names))
            if number < len(names):
                name = names[number]
                found = self._series_of(name)
                options = replace(self.options, log=self._log.get(plain_name(name), False))
                is_chosen = len(names) > 1 and name == self.list.cursor
                lines = self._lines(found)
                pane.show(
                    name,
                    [found[row.handle] for _, row in lines],
                    options,
                    chosen=is_chosen,
                    letters=[number for number, _ in lines] if self._is_overlay else (),
                )
                if self._is_overlay:
                    self._show_jobs(found, options)
            elif number == 0:
                pane.show("No metrics yet", [], self.options)

    def _lines(self, found: Mapping[str, Series]) -> list[tuple[int, JobRow]]:
        """Return the jobs that have a line, the best one last, each with its place in the order of their launch."""
        rows = [(number, row) for number, row in enumerate(self.rows) if row.handle in found]
        shown = [(number, row) for number, row in rows if row.handle not in self._hidden]
        return sorted(shown, key=lambda line: rank(found[line[1].handle]), reverse=True)

    def _show_jobs(self, found: Mapping[str, Series], options: Options) -> None:
        self.legend.show(self.rows, found, self._hidden, options)
        hidden = f", {len(self._hidden)} hidden" if self._hidden else ""
        self.jobs_pane.rule.info = Text(f"{len(self.rows)}, best first{hidden}")
        chosen = self.legend.chosen
        self.jobs_pane.rule.right = Text(cut(plain(chosen.why), 60, self.glyphs.cut) if chosen else "")

    def _listed(self) -> list[Series]:
        """Return the metrics of the list: of several jobs those of all of them, each once."""
        found: dict[str, Series] = {}
        for row in self.rows:
            for name, series in self.activities.get(row.handle, Activity()).series.items():
                found.setdefault(plain_name(name), series)
        return list(found.values())

    def _series_of(self, name: str) -> dict[str, Series]:
        found = {}
        for row in self.rows:
            known = self.activities.get(row.handle, Activity()).series
            same = known.get(name) or next(
                (known[other] for other in known if plain_name(other) == plain_name(name)), None
            )
            if same is not None:
                found[row.handle] = same
        return found

    def _capacity(self) -> int:
        width, height = self.app.size
        if width < 110 or height < 28:
            return 1
        return 9 if width >= 180 and height >= 45 else 4

    def _draw_head(self) -> None:
        first = self.rows[0]
        if self._is_overlay:
            of = f"The first {len(self.rows)} of " if self._asked_for > len(self.rows) else ""
            self.title_rule.title = Text(f"{of}{count(self._asked_for, 'job')}", "bold $style-text")
            self.state_line.update(Text(f"By {'time' if self.options.by_time else 'step'}", "$style-muted"))
            return
        self.title_rule.title = name_text(first.name, max(10, self.app.size.width - 30), self.glyphs, bold=True)
        activity = self.activities.get(first.handle, Activity())
        # The reader learns a little later than the table that the job has ended.
        activity = activity.at_end() if first.is_final else activity
        left = state_text(first.state, self.glyphs)
        seconds = first.duration_seconds if first.is_final else first.age_seconds(self.clock())
        if seconds is not None:
            left.append(f" {f'after {duration(seconds)}' if first.is_final else age(seconds)}", "$style-muted")
        left.append("".join(f"   {words}" for words in activity.words), "$style-text")
        for note in [*(observation.sentence for observation in activity.observations), *activity.failures][:1]:
            left.append(f"   ! {plain(note)}", "$style-pending")
        if left.cell_len > (room := max(1, self.app.size.width - 2)):
            left.truncate(room - 1, overflow="crop")
            left.append(self.glyphs.cut)
        self.state_line.update(left)

    def on_option_list_option_highlighted(self) -> None:
        """Show the chart of the metric at the cursor."""
        self._draw()

    def action_choose(self) -> None:
        """Show or hide a chart, of several jobs the line of the one at the cursor."""
        if self._is_overlay:
            self._hidden ^= {row.handle for row in [self.legend.chosen] if row is not None}
            self._draw()
            return
        if name := self.list.cursor:
            self.list.was_moved = True
            chosen = self._shown
            self._chosen = [other for other in chosen if other != name] if name in chosen else [*chosen, name]
            self._draw()

    def action_zoom(self) -> None:
        """Show the chart at the cursor alone, or with the others again."""
        if self.list.cursor:
            self._zoomed = not self._zoomed
            self._draw()

    # Bars and actions

    def shows_job(self, handle: str) -> bool:
        """Return whether the job is one of those that are charted."""
        return any(row.handle == handle for row in self.rows)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what cannot be done here."""
        if action == "relaunch" and (self._relaunch is None or self.dashboard.runner.read_only):
            return None
        if action == "next_job" and not self._is_overlay:
            return None
        if action == "overlay" and not self._others():
            return None
        return super().check_action(action, parameters)

    def path(self) -> list[str]:
        """Return the way to this screen."""
        jobs = self.rows[0].group or f"{len(self.rows)} jobs"
        return ["Jobs", jobs if self._is_overlay else self.rows[0].name, "Metrics"]

    def summary(self) -> Text:
        """Return how the charts are drawn."""
        cursor = next((component for component in self._listed() if component.name == self.list.cursor), None)
        words = ["x time" if self.options.by_time else "x step", "y 1st to 99th percentile"]
        if cursor is not None:
            label = self.options.smoothing.of(cursor).label
            words += [label if self._is_overlay else f"{label}, raw behind it"] if label else []
            joined = f", {cursor.width} joined in each" if cursor.width > 1 else ""
            words.append(f"{count(cursor.points, 'point')}{joined}")
        return Text("   ".join(words), "$style-faint")

    def counts(self) -> Text:
        """Return where the metric at the cursor comes from."""
        origin = next((component.origin for component in self._listed() if component.name == self.list.cursor), "")
        return Text(f"from {plain(origin)}" if origin else "", "$style-faint")

    def hints(self) -> list[Hint]:
        """Return the keys of the screen."""
        smoothing, log, time = "metrics.smoothing", "metrics.log", "metrics.time"
        back = Hint("metrics.back", "Back")
        if self._is_overlay:
            return [
                Hint("metrics.choose", "Show"),
                Hint("metrics.left metrics.right", "Step"),
                Hint("metrics.zoom_in metrics.zoom_out", "Zoom"),
                *(Hint(smoothing, "Smooth"), Hint(log, "Log"), Hint(time, "Time")),
                Hint("metrics.copy", "Copy"),
                Hint("metrics.relaunch", "Relaunch"),
                back,
            ]
        choose = [Hint("metrics.choose", "Choose"), Hint("metrics.zoom", "Zoom")]
        if self.app.size.width < _FULL_HINTS:
            ways = [Hint(smoothing, "Smooth"), Hint(log, "Log"), Hint("metrics.overlay", "Overlay")]
            return [*choose, *ways, back]
        ways = [Hint(smoothing, "Smoothing"), Hint(log, "Log scale"), Hint(time, "Step or time")]
        return [*choose, *ways, Hint("metrics.overlay", "Overlay jobs"), Hint("metrics.export", "Save"), back]

    def action_smoothing(self) -> None:
        """Change to the next smoothing: none, light, strong."""
        levels = list(Smoothing)
        level = levels[(levels.index(self.options.smoothing) + 1) % len(levels)]
        self.options = replace(self.options, smoothing=level)
        self._draw()

    def action_log(self) -> None:
        """Draw the metric at the cursor on a logarithmic axis, or no longer."""
        name = plain_name(self.list.cursor)
        self._log[name] = not self._log.get(name, False)
        self._draw()

    def action_time(self) -> None:
        """Draw by time, or by step again."""
        self.options = replace(self.options, by_time=not self.options.by_time, cursor=None, window=None)
        self._draw()

    def action_next_job(self, step: int) -> None:
        """Go to another job of the table."""
        self.legend.move(step)
        self._draw()

    def action_step(self, step: int) -> None:
        """Move the cursor by a cell or more, to a point that is there."""
        series = list(self._series_of(self.list.cursor).values())
        xs = sorted({x for metric in series for x in x_values(metric, self.options) if math.isfinite(x)})
        if not xs:
            return
        low, high = self.options.window or (xs[0], xs[-1])
        cursor = self.options.cursor
        if cursor is None:
            cursor = high if step < 0 else low
        else:
            wanted = cursor + step * (high - low) / max(1, self._panes[0].view.size.width)
            ahead = [x for x in xs if (x - cursor) * step > 0]
            cursor = min(ahead, key=lambda x: abs(x - wanted), default=cursor)
        self.options = replace(self.options, cursor=cursor, window=self._around(cursor, high - low))
        self._draw()

    def action_zoom_axis(self, factor: float) -> None:
        """Draw less of the x axis, or more, around the cursor or the end."""
        whole = x_limits(list(self._series_of(self.list.cursor).values()), self.options)
        low, high = self.options.window or whole
        width = (high - low) * factor
        middle = high if self.options.cursor is None else self.options.cursor
        start = min(max(middle - width / 2, whole[0]), whole[1] - width)
        window = None if width >= whole[1] - whole[0] else (start, start + width)
        self.options = replace(self.options, window=window)
        self._draw()

    def _around(self, cursor: float, width: float) -> tuple[float, float] | None:
        """Return the part of the axis that is drawn, moved so that the cursor is in it."""
        window = self.options.window
        if window is None or window[0] <= cursor <= window[1]:
            return window
        start = cursor if cursor < window[0] else cursor - width
        return start, start + width

    def action_overlay(self) -> None:
        """Show the metrics of the marked jobs, or of all jobs of this job's sweep, in one chart."""
        if self._others():
            self.app.push_screen(MetricsScreen(self._others(), self._relaunch))

    def _others(self) -> list[JobRow]:
        """Return the marked jobs, else those that were launched together with this one; none where it is alone."""
        group, marked = self.rows[0].group, self.dashboard.jobs.marked
        rows = marked or [row for row in self.dashboard.jobs.rows.values() if group and row.group == group]
        return sorted(rows, key=lambda row: row.submitted_at or 0) if len(rows) > 1 and not self._is_overlay else []

    def action_copy(self) -> None:
        """Copy the points of the metric at the cursor, of all jobs that have a line."""
        name = self.list.cursor
        found = self._series_of(name)
        rows = [(row.name, found[row.handle]) for row in self.rows if row.handle in found.keys() - self._hidden]
        file = io.StringIO()
        write_csv(file, [series for _, series in rows], [name for name, _ in rows] if self._is_overlay else None)
        self.dashboard.terminal_clipboard.copy(file.getvalue(), f"the points of {plain(name)}")

    def action_relaunch(self) -> None:
        """Launch the job, or the one at the cursor of the table, again as it was."""
        if self._relaunch is not None:
            self._relaunch((self.legend.chosen if self._is_overlay else None) or self.rows[0])

    def action_back(self) -> None:
        """Undo the cursor and the zoom, go back."""
        if self.options.cursor is not None or self.options.window is not None:
            self.options = replace(self.options, cursor=None, window=None)
            self._draw()
        elif self._zoomed:
            self._zoomed = False
            self._draw()
        else:
            self.dismiss()

    @work(group="save")
    async def action_export(self) -> None:
        """Save the data and a picture of the screen in the current folder."""
        picture = self.app.export_screenshot()
        tables = [(row.name, list(self.activities.get(row.handle, Activity()).series.values())) for row in self.rows]
        status = self.dashboard.status
        try:
            paths = await asyncio.to_thread(_save, tables, picture)
        except OSError as error:
            status.say(f"Not saved: {error.strerror or error}", failed=True)
        else:
            status.say(f"Saved {', '.join(map(str, paths))}")


def _first_shown(series: Sequence[Series], capacity: int) -> list[str]:
    """Return the metrics whose charts are shown at first: the main one, the usual ones, then the others."""
    main = main_series({metric.name: metric for metric in series})
    names = [metric.name for metric in series]
    usual = [name for wanted in _SHOWN_FIRST for name in names if name.lower() in (wanted, f"train/{wanted}")]
    wanted = dict.fromkeys([*([main.name] if main else []), *usual, *names])
    return list(wanted)[: max(4, capacity)]


def _save(tables: Sequence[tuple[str, Sequence[Series]]], picture: str) -> list[Path]:
    paths = []
    for name, series in tables:
        table = io.StringIO()
        write_csv(table, series)
        paths.append(write_new_file(f"{name}-metrics", "csv", table.getvalue()))
    return [*paths, write_new_file(f"{tables[0][0]}-metrics", "svg", picture)]
