"""The replicas of a job: one sign each, and what is known of the chosen one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ...backends.logs.sanitize import plain
from ...specs import ReplicaState, ReplicaStatus
from ..signs import ASCII
from ..sparkline import figure, spark_words, sparkline
from ..theme import now_of, palette_of, signs_of
from ..words import clock, duration
from .job_cells import state_style, state_text
from .pane import Pane

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse, ReplicaUsage
    from ..palette import Palette

CELL_WIDTH = 6
# Samples that are kept of each replica, and the cells beside their picture.
_MOST_SAMPLES = 120
_USAGE_WORDS = 26
_GIB = 1 << 30


class ReplicaGrid(Widget, can_focus=True):
    """A cell a replica; the arrows choose one."""

    HELP_TITLE = "Replicas"
    DEFAULT_CSS = "ReplicaGrid { height: auto; width: 1fr; padding: 0 1; }"
    BINDINGS = [
        Binding("left,h", "move(-1)", "Previous replica", show=False),
        Binding("right", "move(1)", "Next replica", show=False),
        Binding("up,k", "row(-1)", "Row up", show=False),
        Binding("down,j", "row(1)", "Row down", show=False),
        Binding("enter", "choose", "Show this replica's log", show=False),
    ]

    replicas: reactive[tuple[ReplicaStatus, ...]] = reactive((), layout=True)
    chosen: reactive[int] = reactive(0)

    @dataclass
    class Chosen(Message):
        """Another replica is chosen; ``opened`` when its log is asked for."""

        number: int
        opened: bool = False

    @property
    def per_row(self) -> int:
        """Cells in a row; ten or eight where there is room, so that numbers are easy to find."""
        fitting = max(1, self.content_size.width // CELL_WIDTH)
        return next((count for count in (16, 10, 8, 4) if count <= fitting), fitting)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that the cells take in ``width``, eight at most."""
        del container, viewport
        fitting = max(1, width // CELL_WIDTH)
        per_row = next((count for count in (16, 10, 8, 4) if count <= fitting), fitting)
        return min(8, max(1, -(-len(self.replicas) // per_row)))

    def render_line(self, y: int) -> Strip:
        """Draw a row of cells; the row of the chosen one is kept in sight."""
        colors, signs = palette_of(self.app), signs_of(self.app)
        per_row, height = self.per_row, max(1, self.content_size.height)
        top = max(0, self.chosen // per_row - height + 1)
        line = Text(no_wrap=True, end="")
        for number in range((top + y) * per_row, min((top + y + 1) * per_row, len(self.replicas))):
            replica = self.replicas[number]
            style = colors.text2 if replica.state is not ReplicaState.FAILED else colors.failed
            cell = Text(f"{number:>2} ", style, end="")
            cell.append(signs.state(replica.state), state_style(replica.state, colors))
            if number == self.chosen:
                cell.stylize(colors.cursor if self.has_focus else colors.cursor_unfocused)
            line.append_text(cell)
            line.append(" " * max(1, CELL_WIDTH - cell.cell_len))
        width = self.content_size.width
        segments = list(line.render(self.app.console))
        base = Style.null() + self.rich_style
        return Strip(Segment.apply_style(segments, base)).adjust_cell_length(width, base)

    def action_move(self, step: int) -> None:
        """Choose the next or the previous replica."""
        if self.replicas:
            self.chosen = min(max(self.chosen + step, 0), len(self.replicas) - 1)
            self.post_message(self.Chosen(self.chosen))

    def action_row(self, rows: int) -> None:
        """Choose the replica a row below or above."""
        self.action_move(rows * self.per_row)

    def action_choose(self) -> None:
        """Ask for the log of the chosen replica."""
        if self.replicas:
            self.post_message(self.Chosen(self.chosen, opened=True))

    def on_click(self, event: events.Click) -> None:
        """Choose the replica that was clicked."""
        number = event.y * self.per_row + event.x // CELL_WIDTH
        if 0 <= number < len(self.replicas):
            self.chosen = number
            self.post_message(self.Chosen(number))


class ReplicasPane(Pane):
    """The grid of replicas over the facts of the chosen one."""

    def __init__(self) -> None:
        super().__init__("Replicas", id="replicas-pane")
        self.grid = ReplicaGrid(id="replica-grid")
        self.facts = FactLines()
        self._picked = False
        self._usages: dict[tuple[str, int], deque[ReplicaUsage]] = {}

    def compose_body(self) -> ComposeResult:
        """Yield the grid and the facts."""
        yield self.grid
        yield self.facts

    def show(self, described: DescribeAppResponse) -> None:
        """Show the replicas; the first that failed is chosen until a person chooses."""
        replicas = tuple(replica for status in described.roles_statuses for replica in status.replicas)
        roles = "  ".join(f"{plain(role.name)} {role.num_replicas}" for role in described.roles)
        self.rule.info = Text(roles)
        if replicas != self.grid.replicas:
            self.grid.replicas = replicas
            if not self._picked:
                self.grid.chosen = first_failed(replicas)
        self._show_facts()

    def add_usage(self, usages: Sequence[ReplicaUsage]) -> None:
        """Take note of what the replicas use now."""
        for usage in usages:
            self._usages.setdefault((usage.role, usage.replica), deque(maxlen=_MOST_SAMPLES)).append(usage)
        self._show_facts()

    def on_replica_grid_chosen(self, _message: ReplicaGrid.Chosen) -> None:
        """Show the facts of the chosen replica."""
        self._picked = True
        self._show_facts()

    def _show_facts(self) -> None:
        grid = self.grid
        if grid.chosen < len(grid.replicas):
            colors = palette_of(self.app)
            replica = grid.replicas[grid.chosen]
            lines = replica_lines(replica, colors, self)
            samples = self._usages.get((replica.role, replica.id))
            if samples:
                width = max(8, self.facts.size.width - _USAGE_WORDS)
                lines = (*lines, Text(), *usage_lines(samples, width, colors, ascii_only=signs_of(self.app) is ASCII))
            self.facts.lines = lines


class FactLines(Widget):
    """Lines of facts, cut at the width."""

    DEFAULT_CSS = "FactLines { height: 1fr; width: 1fr; padding: 0 1; margin-top: 1; }"

    lines: reactive[tuple[Text, ...]] = reactive(())

    def render(self) -> Text:
        """Draw the lines."""
        drawn = []
        for line in self.lines:
            copy = line.copy()
            copy.truncate(self.size.width, overflow="ellipsis")
            drawn.append(copy)
        return Text("\n", no_wrap=True, end="").join(drawn)


def first_failed(replicas: Sequence[ReplicaStatus]) -> int:
    """Return the number of the failed replica that ended first, or 0 if none failed."""
    failed = [
        (replica.finished_at or float("inf"), number)
        for number, replica in enumerate(replicas)
        if replica.state is ReplicaState.FAILED
    ]
    return min(failed)[1] if failed else 0


def replica_lines(replica: ReplicaStatus, colors: Palette, widget: Widget) -> tuple[Text, ...]:
    """Return what is known of one replica."""
    head = Text(f"{plain(replica.role)}/{replica.id}", f"bold {colors.text}", end="")
    head.append("  ")
    head.append_text(state_text(replica.state, colors, signs_of(widget.app)))
    if replica.signal:
        head.append(f"  {replica.signal}", colors.text)
    elif replica.exit_code is not None:
        head.append(f"  exit {replica.exit_code}", colors.text)
    lines = [head]
    facts = []
    if replica.started_at is not None and replica.finished_at is not None:
        facts.append(duration(replica.finished_at - replica.started_at))
    if replica.restarts:
        facts.append(f"{replica.restarts} restarts")
    if replica.pid is not None:
        facts.append(f"pid {replica.pid}")
    facts.append(plain(replica.hostname))
    lines.append(Text(", ".join(facts), colors.text2))
    for label, at in (("started", replica.started_at), ("ended", replica.finished_at)):
        if at is not None:
            line = Text(f"{label:<9}", colors.text3, end="")
            line.append(clock(at, now_of(widget.app)), colors.text2)
            lines.append(line)
    if replica.reason and replica.reason != f"exit {replica.exit_code}":
        lines.append(Text(plain(replica.reason), colors.text2))
    return tuple(lines)


def usage_lines(samples: Sequence[ReplicaUsage], width: int, colors: Palette, *, ascii_only: bool) -> list[Text]:
    """Return a line for each thing that is used: its name, its course, and what it is now of what there is.

    Args:
        samples: what was measured, the latest last.
        width: cells of the course.
        colors: the palette.
        ascii_only: the course is told in figures.
    """
    last = samples[-1]
    courses = (
        ("cpu", _course(samples, "cpu"), last.cpu_total, "cores"),
        ("mem", _course(samples, "memory", _GIB), (last.memory_total or 0) / _GIB, "GB"),
        ("gpu", _course(samples, "gpu"), last.gpus, "busy"),
        ("vram", _course(samples, "gpu_memory", _GIB), (last.gpu_memory_total or 0) / _GIB, "GB"),
    )
    lines = []
    for name, values, total, unit in courses:
        if not values or not total:
            continue
        line = Text(f"{name:<5}", colors.text3, no_wrap=True, end="")
        course = spark_words(values) if ascii_only else sparkline(values, total, width)
        line.append(course.ljust(width), colors.text3 if ascii_only else colors.spark)
        line.append(f"  {figure(values[-1])} of {figure(total)} {unit}", colors.text2)
        lines.append(line)
    return lines


def _course(samples: Sequence[ReplicaUsage], what: str, unit: float = 1.0) -> list[float]:
    values = (getattr(sample, what) for sample in samples)
    return [value / unit for value in values if value is not None]
