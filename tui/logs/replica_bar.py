"""The row of replicas over a log: which one is shown, and which failed."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ..ui.drawing import guard_render
from ..ui.palette import Text, replica_style
from ..ui.theme import glyphs_of
from .rows import TimeMode
from .status import LogStatus

_TIMES: dict[TimeMode, list[str]] = {
    "off": [],
    "clock": ["time"],
    "milliseconds": ["milliseconds"],
    "relative": ["since start"],
}


class ReplicaBar(Widget):
    """``a all 16   0  1  2  3✗           combined   time   no wrap``; a click chooses a replica."""

    DEFAULT_CSS = "ReplicaBar { height: 1; width: 1fr; padding: 0 1; }"

    # The replicas keep their own style.
    auto_links = reactive(False)
    status: reactive[LogStatus] = reactive(LogStatus, repaint=False)

    @dataclass
    class Chosen(Message):
        """A replica was clicked; None means all of them."""

        replica: int | None

    def watch_status(self, before: LogStatus, now: LogStatus) -> None:
        """Draw again, unless only lines came, as they do many times a second."""
        if _drawn(before) != _drawn(now):
            self.refresh()

    @guard_render
    def render(self) -> Text:
        """Draw the bar; where not all replicas fit, those around the chosen one are shown."""
        status = self.status
        words = [status.stream, *_TIMES[status.times], "wrap" if status.wrap else "no wrap"]
        right = Text("   ".join(words), "$style-faint")
        row = Text("a ", "bold $style-accent")
        style = "$style-muted" if status.replica is not None else "$style-text"
        row = Text.assemble(row, self._choice(f"all {len(status.numbers)}", None, style), " ")
        for place in self._fitting(self.size.width - row.cell_len - right.cell_len - 2):
            glyph = glyphs_of(self.app).failed if place in status.failed else ""
            style = "$style-failed" if glyph else replica_style(status.numbers[place])
            row.append("  ").append_text(self._choice(f"{status.numbers[place]}{glyph}", place, style))
        row.append(" " * max(2, self.size.width - row.cell_len - right.cell_len))
        row.append_text(right)
        row.truncate(self.size.width, overflow="crop")
        return row

    def _choice(self, words: str, place: int | None, style: str) -> Text:
        text = Text(words, f"bold underline {style}" if place == self.status.replica else style)
        text.apply_meta({"@click": f"choose({place})"})
        return text

    def action_choose(self, place: int | None) -> None:
        """Choose the replica that was clicked."""
        self.post_message(self.Chosen(place))

    def _fitting(self, room: int) -> range:
        numbers, chosen = self.status.numbers, self.status.replica or 0
        cell = len(str(max(numbers, default=0))) + 3
        most = max(1, room // cell)
        first = max(0, min(chosen - most // 2, len(numbers) - most))
        return range(first, min(len(numbers), first + most))


def _drawn(status: LogStatus) -> tuple[object, ...]:
    """Return the parts of a status that the bar shows."""
    return status.replica, status.numbers, status.failed, status.stream, status.times, status.wrap
