"""The list of metrics: chosen or not, name, last value, course."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ...diagnosis.metrics.chart import sparkline
from ...diagnosis.metrics.files import plain_name
from ...diagnosis.metrics.series import Series
from ...logs.text.sanitize import plain
from ..format import cut
from ..ui import glyphs
from ..ui.options import Options
from ..ui.palette import Text
from ..ui.theme import glyphs_of

_GROUPS = (
    ("EVAL", ("eval", "val", "test", "valid")),
    (
        "SPEED",
        ("tok", "tps", "it/s", "time", "throughput", "samples_per", "samplespersec", "mfu", "tflop", "fps", "wps"),
    ),
    ("MACHINE", ("mem", "gpu", "cpu", "vram", "max_mem")),
)
_VALUE_WIDTH, _SPARK_WIDTH = 10, 10
# Below so many cells there is no course.
_WITH_SPARKS = 34


def group_of(name: str) -> str:
    """Return the heading under which a metric stands."""
    lowered = name.lower()
    if lowered.startswith(_GROUPS[0][1]):
        return "EVAL"
    return next((group for group, words in _GROUPS[1:] if any(word in lowered for word in words)), "TRAIN")


class MetricList(Options, inherit_bindings=False):
    """All metrics by group; the cursor stays with its metric when others come."""

    HELP_TITLE = "Metrics"
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="metrics.down"),
        Binding("k,up", "move(-1)", "Up", id="metrics.up"),
        Binding("g,home", "move(-9999)", "First", id="metrics.first"),
        Binding("G,end", "move(9999)", "Last", id="metrics.last"),
        Binding("space", "screen.choose", "Show or hide the chart", id="metrics.choose"),
        Binding("enter", "screen.zoom", "Zoom the chart", id="metrics.zoom"),
    ]

    def __init__(self) -> None:
        super().__init__(id="metric-list", markup=False)
        self.was_moved = False
        """Whether the user has put the cursor where it is."""

    @property
    def cursor(self) -> str:
        """The name of the metric at the cursor; empty where there is none."""
        option = self.highlighted_option
        return option.id or "" if option is not None else ""

    def show(self, series: Sequence[Series], chosen: Sequence[str]) -> None:
        """Show these metrics.

        Args:
            series: in the order in which they came.
            chosen: the names of those whose charts are shown; the cursor is on the first of them until it is moved.
        """
        before = self.cursor
        options: list[Option] = []
        groups: dict[str, list[Series]] = {name: [] for name in ("TRAIN", *(group for group, _ in _GROUPS))}
        for metric in series:
            groups[group_of(metric.name)].append(metric)
        for group, members in groups.items():
            if members:
                options.append(Option(Text(f"   {group}", "$style-faint"), disabled=True))
                options += [
                    Option(self._metric(member, is_chosen=member.name in chosen), member.name) for member in members
                ]
        names = [option.id or "" for option in options]
        # A metric may have another name once its file is found.
        same = [name for name in names if name and plain_name(name) == plain_name(before)]
        cursor = before if before in same else next(iter(same), "")
        if not (cursor and self.was_moved):
            cursor = next(iter([*chosen, *filter(None, names)]), "")
        with self.prevent(OptionList.OptionHighlighted):
            self.set_options(options)
            if cursor == before:
                self.highlighted = names.index(cursor) if cursor else None
        # Another metric has another chart.
        self.highlighted = names.index(cursor) if cursor else None

    def action_move(self, step: int) -> None:
        """Go to another metric."""
        rows = [row for row, option in enumerate(self.options) if option.id]
        if self.highlighted is not None:
            self.was_moved = True
            self.highlighted = rows[min(max(rows.index(self.highlighted) + step, 0), len(rows) - 1)]

    def on_option_list_option_selected(self) -> None:
        """Stay at the metric that was clicked."""
        self.was_moved = True

    def _metric(self, series: Series, *, is_chosen: bool) -> Text:
        glyph_set, width = glyphs_of(self.app), self.scrollable_content_region.width
        with_spark = width >= _WITH_SPARKS and glyph_set is not glyphs.ASCII
        room = max(1, width - 4 - _VALUE_WIDTH - (_SPARK_WIDTH + 3 if with_spark else 1))
        text = Text(end="", no_wrap=True)
        text.append(f" {glyph_set.mark if is_chosen else ' '} ", "$style-accent")
        text.append(
            f"{cut(plain(series.name), room, glyph_set.cut):<{room}} ", "$style-text" if is_chosen else "$style-muted"
        )
        value_style = "$style-pending" if series.gaps and series.last != series.last else "$style-text"
        text.append(f"{cut(plain(series.printed), _VALUE_WIDTH, glyph_set.cut):>{_VALUE_WIDTH}}", value_style)
        if with_spark:
            text.append(
                f"  {sparkline(series, _SPARK_WIDTH):<{_SPARK_WIDTH}}", "$style-accent" if is_chosen else "$style-spark"
            )
        return text
