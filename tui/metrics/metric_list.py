"""The list of metrics: chosen or not, name, last value, course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...diagnosis.metrics.chart import sparkline
from ...diagnosis.metrics.files import plain_name
from ...diagnosis.metrics.series import Series
from ...logs.text.sanitize import plain
from ..format import cut
from ..ui import glyphs
from ..ui.drawing import guard_render_line
from ..ui.palette import STYLES, Text
from ..ui.theme import glyphs_of, palette_of

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


@dataclass(frozen=True)
class _Line:
    """A heading, or a metric."""

    text: str
    series: Series | None = None


class MetricList(ScrollView, can_focus=True, inherit_bindings=False):
    """All metrics by group; the cursor stays with its metric when others come."""

    HELP_TITLE = "Metrics"
    DEFAULT_CSS = """
    MetricList { height: 1fr; width: 1fr; background: $bg; overflow: hidden auto; scrollbar-size: 1 1; }
    """
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="metrics.down"),
        Binding("k,up", "move(-1)", "Up", id="metrics.up"),
        Binding("g,home", "move(-9999)", "First", id="metrics.first"),
        Binding("G,end", "move(9999)", "Last", id="metrics.last"),
        Binding("space", "choose", "Show or hide the chart", id="metrics.choose"),
        Binding("enter", "zoom", "Zoom the chart", id="metrics.zoom"),
    ]

    class Moved(Message):
        """The cursor is on another metric."""

    class Chosen(Message):
        """A metric was chosen, or is no more.

        Attributes:
            name: the metric.
        """

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Zoomed(Message):
        """A metric is to be shown alone."""

    def __init__(self) -> None:
        super().__init__(id="metric-list")
        self._lines: list[_Line] = []
        self._chosen: frozenset[str] = frozenset()
        self._was_moved = False
        self.cursor = ""
        """The name of the metric at the cursor; empty where there is none."""

    def show(self, series: Sequence[Series], chosen: Sequence[str]) -> None:
        """Show these metrics.

        Args:
            series: in the order in which they came.
            chosen: the names of those whose charts are shown; the cursor is on the first of them until it is moved.
        """
        self._chosen = frozenset(chosen)
        groups: dict[str, list[Series]] = {name: [] for name in ("TRAIN", *(group for group, _ in _GROUPS))}
        for metric in series:
            groups[group_of(metric.name)].append(metric)
        self._lines = [
            line for group, members in groups.items() if members
            for line in (_Line(group), *(_Line(member.name, member) for member in members))
        ]  # fmt: skip
        names = self.names
        if names and (self.cursor not in names or not self._was_moved):
            # A metric may have another name once its file is found.
            same = (name for name in names if self._was_moved and plain_name(name) == plain_name(self.cursor))
            before, self.cursor = self.cursor, next(same, next(iter(chosen), names[0]))
            if self.cursor != before:
                self.post_message(self.Moved())
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.refresh()

    @property
    def names(self) -> list[str]:
        """The metrics in the order of the list."""
        return [line.text for line in self._lines if line.series is not None]

    def action_move(self, step: int) -> None:
        """Go to another metric."""
        names = self.names
        if not names:
            return
        self._was_moved = True
        at = names.index(self.cursor) if self.cursor in names else 0
        self.cursor = names[min(max(at + step, 0), len(names) - 1)]
        row = next(number for number, line in enumerate(self._lines) if line.series and line.text == self.cursor)
        self.scroll_to_region(Region(0, row, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        """Show the chart of the metric at the cursor, or hide it."""
        if self.cursor:
            self._was_moved = True
            self.post_message(self.Chosen(self.cursor))

    def action_zoom(self) -> None:
        """Show the metric at the cursor alone."""
        if self.cursor:
            self.post_message(self.Zoomed())

    def on_click(self, event: events.Click) -> None:
        """Go to the metric that was clicked."""
        row = event.y + self.scroll_offset.y
        if row < len(self._lines) and self._lines[row].series is not None:
            self._was_moved, self.cursor = True, self._lines[row].text
            self.refresh()
            self.post_message(self.Moved())

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        number = y + self.scroll_offset.y
        width = self.size.width
        colors = palette_of(self.app)
        style = self.visual_style.rich_style
        if number >= len(self._lines):
            return Strip.blank(width, style)
        line = self._lines[number]
        text = (
            Text(f"   {line.text}", STYLES.faint, end="") if line.series is None else self._metric(line.series, width)
        )
        if line.series is not None and line.text == self.cursor:
            style += Style.parse(colors.cursor if self.has_focus else colors.cursor_unfocused)
        text.truncate(width, overflow="crop")
        return text.strip(width, style)

    def _metric(self, series: Series, width: int) -> Text:
        glyph_set = glyphs_of(self.app)
        with_spark = width >= _WITH_SPARKS and glyph_set is not glyphs.ASCII
        room = width - 4 - _VALUE_WIDTH - (_SPARK_WIDTH + 3 if with_spark else 1)
        is_chosen = series.name in self._chosen
        text = Text(end="", no_wrap=True)
        text.append(f" {glyph_set.mark if is_chosen else ' '} ", STYLES.accent)
        text.append(
            f"{cut(plain(series.name), room, glyph_set.cut):<{room}} ", STYLES.text if is_chosen else STYLES.muted
        )
        value_style = STYLES.pending if series.gaps and series.last != series.last else STYLES.text
        text.append(f"{cut(plain(series.printed), _VALUE_WIDTH, glyph_set.cut):>{_VALUE_WIDTH}}", value_style)
        if with_spark:
            text.append(
                f"  {sparkline(series, _SPARK_WIDTH):<{_SPARK_WIDTH}}", STYLES.accent if is_chosen else STYLES.spark
            )
        return text
