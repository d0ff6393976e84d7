"""A chart of one metric, or of one metric of several jobs, with a title."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from textual.widget import Widget

from ...diagnosis.metrics.chart import Options, Role, Span, draw_chart
from ...diagnosis.metrics.scale import x_label
from ...diagnosis.metrics.series import Series
from ...logs.text.sanitize import plain
from ..ui import glyphs
from ..ui.drawing import guard_render
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of
from .legend import curve_style, value_at

# From this width on, a title has room for the smoothing in full.
_WIDE = 60
_STYLE_OF = {
    Role.BLANK: "",
    Role.AXIS: "$style-faint",
    Role.RAW: "$style-spark",
    Role.SMOOTH: "bold $style-text",
    Role.GAP: "$style-pending",
}


def _style(span: Span) -> str:
    return curve_style(span.curve) if span.role is Role.CURVE else _STYLE_OF[span.role]


class ChartView(Widget):
    """The chart itself; it is drawn anew only where its series, its options or its size changed."""

    DEFAULT_CSS = "ChartView { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._series: tuple[Series, ...] = ()
        self._letters: tuple[int, ...] = ()
        self._options = Options()
        self._drawn_for: object = None
        self._drawn = Text()

    def show(self, series: Sequence[Series], options: Options, letters: Sequence[int] = ()) -> None:
        """Draw these series, of several the last one on top, with their letters."""
        self._series, self._options, self._letters = tuple(series), options, tuple(letters)
        if self._key() != self._drawn_for:
            self.refresh()

    @guard_render
    def render(self) -> Text:
        """Draw the chart in the widget's size."""
        key = self._key()
        if key != self._drawn_for:
            self._drawn_for, self._drawn = key, self._draw()
        return self._drawn

    def _key(self) -> object:
        state = tuple(
            (metric.name, metric.points, metric.last if metric.last == metric.last else "nan")
            for metric in self._series
        )
        return state, self._letters, self._options, self.size, glyphs_of(self.app) is glyphs.ASCII

    def _draw(self) -> Text:
        width, height = self.size
        if width < 12 or height < 3:
            return Text()
        if not self._series:
            return Text(" No values yet", "$style-faint")
        options = replace(self._options, ascii=glyphs_of(self.app) is glyphs.ASCII)
        rows = draw_chart(self._series, width, height, options, self._letters or None)
        lines = (Text(no_wrap=True, end="").append_tokens((span.text, _style(span)) for span in row) for row in rows)
        return Text("\n", no_wrap=True, end="").join(lines)


class ChartPane(Pane):
    """A chart under its title: name, how it is drawn, how many values are nan, the last value."""

    def __init__(self, *, id: str | None = None) -> None:
        self.view = ChartView()
        super().__init__("", self.view, id=id)

    def show(
        self,
        name: str,
        series: Sequence[Series],
        options: Options,
        *,
        chosen: bool = False,
        letters: Sequence[int] = (),
    ) -> None:
        """Draw series of one metric.

        Args:
            name: the metric.
            series: one, or one a job.
            options: how they are drawn.
            chosen: the cursor is on this metric.
            letters: of several jobs, which letter each has.
        """
        self.rule.active = chosen
        self.rule.title = Text(plain(name))
        labels = {options.smoothing.of(metric).label for metric in series}
        # The last value is more important than the whole label.
        words = [label if self.size.width >= _WIDE else label.partition(" ")[0] for label in labels - {""}]
        words += ["log"] if options.log else []
        self.rule.info = Text("  ".join(words))
        right = Text(end="")
        if len(series) == 1:
            gaps = series[0].gaps
            if options.cursor is not None:
                at = f"at {x_label(options.cursor, options.by_time)}  {value_at(series[0], options.cursor, options)}"
                right.append(f"{at}   ", "$style-accent")
            right.append(f"! {gaps:,} NaN   " if gaps else "", "$style-pending")
            right.append(plain(series[0].printed), "$style-text" if math.isfinite(series[0].last) else "$style-pending")
        self.rule.right = right
        self.view.show(series, options, letters)
