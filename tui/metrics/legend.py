"""The jobs of an overlay: shown or hidden, letter, state, what differs in their arguments, last and best value."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from textual.widget import Widget

from ...diagnosis.metrics.chart import LETTERS, Options, x_values
from ...diagnosis.metrics.export import best_value, rank
from ...diagnosis.metrics.scale import x_label
from ...diagnosis.metrics.series import Series, Smoothing
from ...logs.text.sanitize import plain
from ..format import cut, same_digits, split_name, state_word
from ..rows import JobRow
from ..ui.drawing import guard_render
from ..ui.job_cells import name_text, state_text
from ..ui.palette import Text, replica_style
from ..ui.theme import glyphs_of

_MOST_JOBS = 8
_MOST_NAME, _LEAST_NAME, _MOST_VALUE = 24, 12, 12
_FIGURE, _STEP = 11, 10
# Cells of a row before the name, and of the words at its end.
_BEFORE, _AFTER = 20, 12
# A loss has diverged if its last mean is 10 % above its lowest one.
_DIVERGED = 1.1
_COLORS = 8
# Sentences under the table about jobs that left the others.
_MOST_SENTENCES = 2


def curve_style(number: int) -> str:
    """Return the style of a curve; from the ninth on its letter alone tells whose it is."""
    return replica_style(number) if number < _COLORS else "$style-text"


def swept_values(rows: Sequence[JobRow]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the arguments that differ between jobs, and their values, job by job."""
    names = dict.fromkeys(name for row in rows for name in row.named_arguments)
    differing = [name for name in names if len({row.named_arguments.get(name) for row in rows}) > 1]
    return differing, [[row.named_arguments.get(name, _default(row)) for name in differing] for row in rows]


def _default(row: JobRow) -> str:
    return "default" if row.component else ""


class Legend(Widget):
    """The rows of the table under an overlay, the best job first."""

    DEFAULT_CSS = "Legend { width: 1fr; height: auto; }"

    def __init__(self) -> None:
        super().__init__(id="metrics-legend")
        self._rows: Sequence[JobRow] = ()
        self._series: Mapping[str, Series] = {}
        self._hidden: frozenset[str] = frozenset()
        self._options = Options()
        self.cursor = 0
        """The place of the chosen job in the table."""

    @property
    def order(self) -> list[JobRow]:
        """The jobs as they stand in the table."""
        known = self._series
        return sorted(self._rows, key=lambda row: rank(known[row.handle]) if row.handle in known else float("inf"))

    @property
    def chosen(self) -> JobRow | None:
        """The job at the cursor."""
        order = self.order
        return order[min(self.cursor, len(order) - 1)] if order else None

    def show(
        self, rows: Sequence[JobRow], series: Mapping[str, Series], hidden: Collection[str], options: Options
    ) -> None:
        """Show jobs.

        Args:
            rows: the jobs in the order of their launch.
            series: the series of one metric, by handle.
            hidden: the handles of jobs without a line.
            options: how the chart is drawn, with its cursor.
        """
        self._rows, self._series, self._hidden, self._options = rows, series, frozenset(hidden), options
        self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Go to another job."""
        self.cursor = min(max(self.cursor + step, 0), max(0, len(self._rows) - 1))
        self.refresh()

    @guard_render
    def render(self) -> Text:
        """Draw the table: as many columns as there is room for, and the rows around the cursor."""
        glyphs = glyphs_of(self.app)
        names, values = swept_values(self._rows)
        # Name, width, the cell of each job, and style.
        swept = [
            (name, min(_MOST_VALUE, max(map(len, (name, *cells)))), cells, "$style-text")
            for name, *cells in zip(names, *values, strict=True)
        ]
        series = [self._series.get(row.handle) for row in self._rows]
        figures = [
            (name, width, same_digits([figure(each) if each else "" for each in series]), "$style-muted")
            for name, width, figure in self._figures()
        ]
        room = self.size.width - _BEFORE - _AFTER - _LEAST_NAME
        # Jobs are distinguished by their values first, then by their figures.
        while (spare := room - sum(width + 1 for _, width, *_ in (*swept, *figures))) < 0:
            if len(figures) > 1:
                figures.pop(2 if len(figures) > 2 else -1)
            elif not swept:
                break
            else:
                swept.pop()
        columns = [*swept, *figures]
        name_width = max(1, min(_MOST_NAME, _LEAST_NAME + spare))
        text = Text(f"       {'STATE':<13}{'JOB':<{name_width}}", "$style-faint", no_wrap=True, end="")
        text.append("".join(f" {cut(plain(name.upper()), width, glyphs.cut):>{width}}" for name, width, *_ in columns))
        letters = {row.handle: number for number, row in enumerate(self._rows)}
        first = max(0, min(self.cursor - _MOST_JOBS + 1, len(self._rows) - _MOST_JOBS))
        order = self.order
        turns = {row.handle: _turn(self._series[row.handle]) for row in order if row.handle in self._series}
        diverged = {handle: turn for handle, turn in turns.items() if turn is not None}
        best = next((row for row in order if row.handle not in diverged), None)
        for place, row in list(enumerate(order))[first : first + _MOST_JOBS]:
            number = letters[row.handle]
            line = Text(" ", end="", no_wrap=True)
            line.append(glyphs.mark if row.handle not in self._hidden else " ", "$style-accent")
            line.append(f" {LETTERS[number % len(LETTERS)]}  ", f"bold {curve_style(number)}")
            state = state_text(row.state, glyphs)
            state.pad_right(max(0, 13 - state.cell_len))
            line.append(" ").append_text(state)
            # The values in the columns distinguish jobs, not the suffix.
            name = name_text(split_name(row.name)[0] if names else row.name, name_width, glyphs)
            name.pad_right(max(0, name_width - name.cell_len))
            line.append_text(name)
            for _, width, cells, style in columns:
                line.append(f" {cut(plain(cells[number]), width, glyphs.cut):>{width}}", style)
            line.append_text(_words(series[number], is_best=row is best, has_diverged=row.handle in diverged))
            if place == min(self.cursor, len(self._rows) - 1):
                line.pad_right(max(0, self.size.width - line.cell_len))
                line.stylize("$style-cursor")
            line.truncate(self.size.width, overflow="crop")
            text.append("\n").append_text(line)
        left = [row for row in order if row.handle in diverged][:_MOST_SENTENCES]
        for number, row in enumerate(left):
            sentence = self._divergence(row, diverged[row.handle], letters[row.handle])
            text.append("\n" if number else "\n\n").append_text(sentence)
        return text

    def _divergence(self, row: JobRow, turn: float, number: int) -> Text:
        """Say from which step on a job left the others, and how it ended or where it is."""
        step = x_label(self._series[row.handle].steps()[-1], False)
        line = Text(" ", end="", no_wrap=True)
        line.append(LETTERS[number % len(LETTERS)], f"bold {curve_style(number)}")
        line.append(f" left the others at step {x_label(turn, False)}", "$style-text")
        if row.is_final:
            why = f": {plain(row.why)}" if row.why else ""
            line.append(f" and {state_word(row.state).lower()} at {step}{why}", "$style-text")
        else:
            line.append(f" and is at {step}", "$style-text")
        if line.cell_len > self.size.width:
            line.truncate(self.size.width - 1, overflow="crop")
            line.append(glyphs_of(self.app).cut)
        return line

    def _figures(self) -> list[tuple[str, int, Callable[[Series], str]]]:
        """Return the columns of figures: name, width, what stands there. The first two are the last that go."""
        columns: list[tuple[str, int, Callable[[Series], str]]] = [
            ("last", _FIGURE, lambda series: plain(series.printed)),
            ("best", _FIGURE, lambda series: "" if (best := best_value(series)) is None else f"{best:.6g}"),
            ("at step", _STEP, _step_of_best),
            ("step", _STEP, lambda series: x_label(series.steps()[-1], False) if len(series) else ""),
        ]
        cursor, options = self._options.cursor, self._options
        if cursor is not None:
            name = f"at {x_label(cursor, options.by_time)}"
            columns.append((name, max(_FIGURE, len(name)), lambda series: value_at(series, cursor, options)))
        return columns


def value_at(series: Series, cursor: float, options: Options) -> str:
    """Return the last value at a place of the x axis or before it; empty before the first."""
    pairs = zip(x_values(series, options), series.buckets(), strict=True)
    found = [bucket.last for x, bucket in pairs if x <= cursor]
    return f"{found[-1]:.6g}" if found else ""


def _step_of_best(series: Series) -> str:
    best = best_value(series)
    found = (bucket.step for bucket in series.buckets() if best is not None and best in (bucket.low, bucket.high))
    return next((x_label(step, False) for step in found), "")


def _words(series: Series | None, *, is_best: bool, has_diverged: bool) -> Text:
    best = best_value(series) if series else None
    words = Text(end="")
    if series is None or best is None:
        return words
    words.append("  best" if is_best else "", "bold $style-running")
    if not math.isfinite(series.last):
        words.append("  ! nan", "$style-pending")
    elif has_diverged:
        words.append("  ! diverged", "$style-pending")
    return words


def _turn(series: Series) -> float | None:
    """Return the step from which on the smoothed loss has risen; None if it has not, or of few points."""
    if best_value(series) != series.best_low or Smoothing.STRONG.of(series) is Smoothing.NONE:
        return None
    smooth = zip(series.smoothed(Smoothing.STRONG), series.steps(), strict=True)
    known = [(value, step) for value, step in smooth if value == value]
    # The curve is less smooth at its ends.
    end = len(known) // 10 or 1
    lowest, step = min(known[end:-end])
    last = sum(value for value, _ in known[-end:]) / end
    return step if last > lowest * _DIVERGED > 0 else None
