"""The replicas of a job: one glyph each, and what is known of the chosen one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ...logs.text.sanitize import plain
from ...specs.status import ReplicaState, ReplicaStatus
from ..ui.drawing import guard_render, guard_render_line
from ..ui.glyphs import ASCII
from ..ui.job_cells import first_failed, state_style
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.replica_numbers import DIGITS, TypedNumber, replica_numbers
from ..ui.theme import glyphs_of
from .replica_facts import port_lines, reach_line, replica_lines, usage_lines

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse, PublishedPort, ReplicaUsage
    from ...diagnosis.progress.stalls import Observation

CELL_WIDTH = 6
# Samples that are kept of each replica, and the cells beside their picture.
_MOST_SAMPLES = 120
_USAGE_WORDS = 26


class ReplicaGrid(Widget, can_focus=True):
    """A cell a replica; the arrows choose one."""

    HELP_TITLE = "Replicas"
    DEFAULT_CSS = "ReplicaGrid { height: auto; width: 1fr; padding: 0 1; }"
    BINDINGS = [
        Binding("left,h", "move(-1)", "Previous replica", id="replicas.left"),
        Binding("right", "move(1)", "Next replica", id="replicas.right"),
        Binding("up,k", "row(-1)", "Row up", id="replicas.up"),
        Binding("down,j", "row(1)", "Row down", id="replicas.down"),
        Binding("enter", "choose", "Show this replica's log", id="replicas.show"),
        Binding("y", "screen.copy_port", "Copy the ssh command of its ports", id="replicas.copy_port"),
        *DIGITS,
    ]

    replicas: reactive[tuple[ReplicaStatus, ...]] = reactive((), layout=True)
    chosen: reactive[int] = reactive(0)
    slow: reactive[str] = reactive("")
    """Which replica is slower than the others, such as ``trainer/7``."""

    def __init__(self) -> None:
        super().__init__(id="replica-grid")
        self._typed = TypedNumber()

    @dataclass
    class Chosen(Message):
        """Another replica is chosen; ``opened`` when its log is asked for."""

        number: int
        opened: bool = False

    @property
    def per_row(self) -> int:
        """Cells in a row."""
        return cells_per_row(self.content_size.width)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that the cells take in ``width``, eight at most."""
        del container, viewport
        return min(8, max(1, -(-len(self.replicas) // cells_per_row(width))))

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        """Draw a row of cells; the row of the chosen one is kept in sight."""
        glyphs = glyphs_of(self.app)
        per_row, top = self.per_row, self._top
        numbers = self._numbers
        line = Text()
        for place in range((top + y) * per_row, min((top + y + 1) * per_row, len(self.replicas))):
            replica = self.replicas[place]
            style = "$style-muted" if replica.state is not ReplicaState.FAILED else "$style-failed"
            cell = Text(f"{numbers[place]:>2} ", style)
            if f"{replica.role}/{replica.id}" == self.slow:
                cell.append("!", "$style-pending")
            else:
                cell.append(glyphs.state(replica.state), state_style(replica.state))
            if place == self.chosen:
                cell.stylize("$style-cursor" if self.has_focus else "$style-cursor-unfocused")
            line.append_text(cell)
            line.append(" " * max(1, CELL_WIDTH - cell.cell_len))
        return line.strip(self.content_size.width, self.rich_style)

    @property
    def _top(self) -> int:
        """The first row that is in sight."""
        return max(0, self.chosen // self.per_row - max(1, self.content_size.height) + 1)

    @property
    def _numbers(self) -> tuple[int, ...]:
        return replica_numbers((replica.role, replica.id) for replica in self.replicas)

    def action_digit(self, digit: str) -> None:
        """Choose the replica whose number is typed, digit by digit."""
        self.action_move(self._typed.add(digit, self._numbers, self.chosen) - self.chosen)

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
        offset = event.get_content_offset(self)
        if offset is not None and (column := offset.x // CELL_WIDTH) < self.per_row:
            number = (self._top + offset.y) * self.per_row + column
            if number < len(self.replicas):
                self.action_move(number - self.chosen)


def cells_per_row(width: int) -> int:
    """Return the cells of a row of ``width``; ten or eight where there is room, so that numbers are easy to find."""
    fitting = max(1, width // CELL_WIDTH)
    return next((count for count in (16, 10, 8, 4) if count <= fitting), fitting)


class ReplicasPane(Pane):
    """The grid of replicas over the facts of the chosen one."""

    def __init__(self) -> None:
        self.grid = ReplicaGrid()
        self.facts = FactLines()
        super().__init__("Replicas", self.grid, self.facts, id="replicas-pane")
        self._picked = False
        self._slow: Observation | None = None
        self._ports: list[PublishedPort] = []
        self._usages: dict[tuple[str, int], deque[ReplicaUsage]] = {}

    def show(self, described: DescribeAppResponse) -> None:
        """Show the replicas; the first that failed is chosen until a person chooses."""
        replicas = tuple(replica for status in described.roles_statuses for replica in status.replicas)
        roles = "  ".join(f"{plain(name)} {number}" for name, number in described.replica_counts.items())
        self.rule.info = Text(roles)
        self._ports = described.ports
        if replicas != self.grid.replicas:
            self.grid.replicas = replicas
            if not self._picked:
                self.grid.chosen = first_failed(replicas)
        self._show_facts()

    def show_slow(self, slow: Observation | None) -> None:
        """Mark the replica that is slower than the others."""
        self._slow = slow
        self.grid.slow = slow.replica if slow else ""
        self.rule.right = Text().append("1 slow" if slow else "", "$style-pending")
        self._show_facts()

    def add_usage(self, usages: Sequence[ReplicaUsage]) -> None:
        """Take note of what the replicas use now."""
        for usage in usages:
            self._usages.setdefault((usage.role, usage.replica), deque(maxlen=_MOST_SAMPLES)).append(usage)
        self._show_facts()

    def on_replica_grid_chosen(self) -> None:
        """Show the facts of the chosen replica."""
        self._picked = True
        self._show_facts()

    @property
    def chosen(self) -> ReplicaStatus | None:
        """The replica that is chosen."""
        return self.grid.replicas[self.grid.chosen] if self.grid.chosen < len(self.grid.replicas) else None

    @property
    def has_ports(self) -> bool:
        """Whether any replica publishes a port."""
        return bool(self._ports)

    @property
    def reach_lines(self) -> list[str]:
        """The commands that make the ports of the chosen replica reachable from a person's own machine."""
        return [reach_line(port) for port in self._chosen_ports()]

    def _chosen_ports(self) -> list[PublishedPort]:
        replica = self.chosen
        return [port for port in self._ports if replica and (port.role, port.replica) == (replica.role, replica.id)]

    def _show_facts(self) -> None:
        replica = self.chosen
        if replica is not None:
            lines = (*replica_lines(replica, self), *port_lines(self._chosen_ports()))
            if self._slow is not None and self._slow.replica == f"{replica.role}/{replica.id}":
                who, _, evidence = plain(self._slow.sentence).partition(", ")
                lines = (*lines, Text(f"! {who}", "$style-pending"), Text(evidence, "$style-muted"))
            samples = self._usages.get((replica.role, replica.id))
            if samples:
                width = max(8, self.facts.size.width - _USAGE_WORDS)
                lines = (*lines, Text(), *usage_lines(samples, width, ascii_only=glyphs_of(self.app) is ASCII))
            self.facts.lines = lines


class FactLines(Widget):
    """Lines of facts, cut at the width."""

    DEFAULT_CSS = """
    FactLines { height: 1fr; width: 1fr; padding: 0 1; margin-top: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    lines: reactive[tuple[Text, ...]] = reactive(())

    @guard_render
    def render(self) -> Text:
        return Text("\n").join(self.lines)
