"""The jobs of an overlay: letter, state, what differs in their arguments, last and best value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.widget import Widget

from ...diagnosis.metrics.chart import LETTERS
from ...diagnosis.metrics.export import best_value, rank
from ...diagnosis.metrics.series import Series
from ...logs.text.sanitize import plain
from ..format import cut
from ..rows import JobRow
from ..ui.job_cells import state_text
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

_MOST_NAME, _VALUE_WIDTH = 30, 12
# Cells of a row beside the name and the values that differ.
_FIXED = 54


def swept_values(rows: Sequence[JobRow]) -> list[str]:
    """Return, for each job, the words of its arguments that not all jobs have."""
    words = [row.arguments.split() for row in rows]
    common = set(words[0]).intersection(*words[1:]) if words else set()
    return [" ".join(word for word in mine if word not in common) for mine in words]


class Legend(Widget):
    """The table under an overlay, the best job first."""

    DEFAULT_CSS = "Legend { width: 1fr; height: auto; max-height: 12; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="metrics-legend")
        self._rows: Sequence[JobRow] = ()
        self._series: Mapping[str, Series] = {}
        self._hidden: frozenset[str] = frozenset()
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

    def show(self, rows: Sequence[JobRow], series: Mapping[str, Series]) -> None:
        """Show jobs, with the series of one metric by handle."""
        self._rows, self._series = rows, series
        self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Go to another job."""
        self.cursor = min(max(self.cursor + step, 0), max(0, len(self._rows) - 1))
        self.refresh()

    def render(self) -> Text:
        """Draw the table."""
        glyphs = glyphs_of(self.app)
        swept = dict(zip((row.handle for row in self._rows), swept_values(self._rows), strict=True))
        letters = {row.handle: (LETTERS[n % len(LETTERS)], STYLES.replica(n)) for n, row in enumerate(self._rows)}
        rest = max(16, self.size.width - _FIXED)
        name_width = min(_MOST_NAME, rest * 2 // 3)
        values_width = rest - name_width
        header = f"     {'STATE':<12} {'JOB':<{name_width}} {'VALUES':<{values_width}}"
        header += f" {'LAST':>{_VALUE_WIDTH}} {'BEST':>{_VALUE_WIDTH}}"
        text = Text(header, STYLES.faint, no_wrap=True, end="")
        for number, row in enumerate(self.order):
            letter, style = letters[row.handle]
            line = Text(end="", no_wrap=True)
            line.append(f" {letter}  ", f"bold {style}")
            state = state_text(row.state, glyphs)
            state.pad_right(max(0, 13 - state.cell_len))
            line.append(" ").append_text(state)
            line.append(f"{cut(row.name, name_width, glyphs.cut):<{name_width}} ", STYLES.text)
            line.append(f"{cut(plain(swept[row.handle]), values_width, glyphs.cut):<{values_width}} ", STYLES.muted)
            series = self._series.get(row.handle)
            best = best_value(series) if series else None
            last = plain(series.printed) if series else ""
            line.append(f"{cut(last, _VALUE_WIDTH, glyphs.cut):>{_VALUE_WIDTH}} ", STYLES.text)
            line.append(f"{'' if best is None else f'{best:.6g}':>{_VALUE_WIDTH}}", STYLES.text)
            line.append("  best" if number == 0 and best is not None else "", STYLES.running)
            diverged = series is not None and series.last != series.last
            line.append("  ! nan" if diverged else "", STYLES.pending)
            if number == self.cursor:
                line.pad_right(max(0, self.size.width - line.cell_len))
                line.stylize(STYLES.cursor)
            text.append("\n").append_text(line)
        return text
