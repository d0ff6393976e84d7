"""What a running job is doing: what should be known of it, a chart of its loss, its other values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widget import Widget
from textual.widgets import Static

from ...diagnosis.metrics.chart import Options, sparkline, wants_log
from ...diagnosis.metrics.series import Series
from ...diagnosis.progress.activity import Activity
from ...diagnosis.progress.stalls import Kind
from ...logs.text.sanitize import plain
from ..format import clock
from ..metrics.chart import ChartView
from ..metrics.metric_list import group_of
from ..stacks.cells import finding_text
from ..ui import glyphs
from ..ui.drawing import guard_render
from ..ui.job_cells import progress_bar
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ..messages import StacksTaken

_SPARK_WIDTH = 8
# Names and files that the status line has room for.
_MOST_NAMES, _MOST_FILES = 4, 2
# Values beside the chart: the usual ones first, then the others.
_FIRST_VALUES = ("lr", "learning_rate", "learning rate", "tok/s", "tps", "grad_norm", "grad norm")


class DoingChart(ChartView, can_focus=True):
    """The chart, which takes the focus so that `tab` reaches the pane."""

    HELP_TITLE = "Progress"


class DoingPane(Pane):
    """The main metric of a job as a chart, other values in a row, and above them what is not well."""

    def __init__(self) -> None:
        self.chart = DoingChart()
        self._notes = Static(id="doing-notes", markup=False)
        self._stacks = Static(id="doing-stacks", markup=False)
        self._values = Static(id="doing-values", markup=False)
        self._activity = Activity()
        super().__init__("Progress", self._notes, self._stacks, self.chart, self._values, id="doing-pane")

    def show(self, activity: Activity, taken: StacksTaken | None = None) -> None:
        """Show what a job is doing, and of a stalled one where its ranks stand."""
        self._activity = activity
        main = activity.main
        stalled = activity.observed(Kind.STALLED)
        self.rule.title = Text("Stalled" if stalled else "Progress")
        info = Text(plain(main.name) if main else "")
        if stalled and not math.isnan(stalled.since):
            info = Text(f"since {clock(stalled.since, now_of(self.app))}")
        self.rule.info = info
        right = Text()
        if main is not None:
            right.append(plain(main.printed), "$style-text" if math.isfinite(main.last) else "$style-pending")
            label = Options().smoothing.of(main).label
            right.append(f" {label}" if label else "", "$style-faint")
        self.rule.right = right
        notes = [*(observation.sentence for observation in activity.observations), *activity.failures[:1]]
        self._notes.update(Text("\n").join(Text(f"! {_capital(plain(note))}", "$style-pending") for note in notes))
        self._notes.display = bool(notes)
        self._stacks.display = taken is not None
        if taken is not None:
            head = Text("\n").append("Stacks", "bold $style-text")
            head.append(f"   {clock(taken.at, now_of(self.app))}, {plain(taken.how)}\n", "$style-muted")
            self._stacks.update(head.append_text(finding_text(taken.found)))
        series = [main] if main else []
        log = main is not None and wants_log(main)
        self.chart.show(series, Options(log=log))
        self._draw_values()

    def on_resize(self) -> None:
        """Show as many values as there is room for."""
        self._draw_values()

    def _draw_values(self) -> None:
        main = self._activity.main
        others = [metric for metric in self._activity.series.values() if metric is not main]
        with_sparks = glyphs_of(self.app) is not glyphs.ASCII and self.size.width >= 60
        row = Text()
        for series in _ordered(others):
            cell = Text(f" {plain(series.name)} ", "$style-muted")
            cell.append(plain(series.printed), "$style-text")
            if with_sparks:
                cell.append(f" {sparkline(series, _SPARK_WIDTH)}", "$style-spark")
            if row.cell_len + cell.cell_len + 2 > self.size.width:
                break
            row.append("  " if row else "").append_text(cell)
        self._values.update(row)
        self._values.display = bool(others)


def _ordered(series: Sequence[Series]) -> list[Series]:
    def place(series: Series) -> tuple[int, int]:
        name = series.name.lower().removeprefix("train/")
        usual = _FIRST_VALUES.index(name) if name in _FIRST_VALUES else len(_FIRST_VALUES)
        return usual, group_of(series.name) == "MACHINE"

    return sorted(series, key=place)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def sources(activity: Activity) -> str:
    """Return where the figures come from: `Metrics from metrics.csv, and from the log: lr, tok/s`."""
    series = activity.series.values()
    logged = [metric.name for metric in series if metric.origin.startswith("log of ")]
    files = dict.fromkeys(Path(metric.origin).name for metric in series if metric.name not in logged)
    names = ", ".join(logged[:_MOST_NAMES]) + (", ..." if len(logged) > _MOST_NAMES else "")
    words = []
    if files:
        words.append(f"from {', '.join(files) if len(files) <= _MOST_FILES else f'{len(files)} files'}")
    if logged:
        words.append(f"from the log: {names}")
    if not words:
        return ""
    # Of a job that pauses no rate is shown.
    paused = activity.observed(Kind.QUIET, Kind.STALLED)
    has_rate = activity.progress.rate and activity.progress.moved_at is not None and paused is None
    return plain(f"Metrics {', and '.join(words)}{'; rate over 5 min' if has_rate else ''}")


class ProgressRow(Widget):
    """A bar of one row in half cells: how much of a job is done."""

    DEFAULT_CSS = "ProgressRow { height: 1; width: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="job-progress")
        self._fraction = 0.0
        self._style = "$style-running"

    def show(self, fraction: float | None, *, is_stalled: bool) -> None:
        """Show a part from 0 to 1; hide the bar where the end is not known."""
        self.display = fraction is not None
        style = "$style-pending" if is_stalled else "$style-running"
        if fraction is not None and (fraction, style) != (self._fraction, self._style):
            self._fraction, self._style = fraction, style
            self.refresh()

    @guard_render
    def render(self) -> Text:
        """Draw the bar."""
        return progress_bar(self._fraction, self.size.width, self._style, is_ascii=glyphs_of(self.app) is glyphs.ASCII)
