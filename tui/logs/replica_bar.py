"""The row of replicas over a log: which one is shown, and which failed."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ...logs.source.replica_log import StreamName
from ..ui.drawing import guard_render
from ..ui.palette import STYLES, Text
from ..ui.theme import glyphs_of
from .rows import TimeMode

_TIMES: dict[TimeMode, list[str]] = {
    "off": [],
    "clock": ["time"],
    "milliseconds": ["milliseconds"],
    "relative": ["since start"],
}


class ReplicaBar(Widget):
    """``a all 16   0  1  2  3✗           combined   time   no wrap``; a click chooses a replica."""

    DEFAULT_CSS = "ReplicaBar { height: 1; width: 1fr; padding: 0 1; }"

    numbers: reactive[tuple[int, ...]] = reactive(())
    """The number of each replica; replicas are chosen by their places."""
    chosen: reactive[int | None] = reactive(None)
    failed: reactive[frozenset[int]] = reactive(frozenset)
    stream: reactive[StreamName] = reactive("combined")
    wrap: reactive[bool] = reactive(False)
    times: reactive[TimeMode] = reactive("off")

    class Chosen(Message):
        """A replica was clicked; None means all of them."""

        def __init__(self, replica: int | None) -> None:
            super().__init__()
            self.replica = replica

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._places: list[tuple[int, int, int | None]] = []

    @guard_render
    def render(self) -> Text:
        """Draw the bar; where not all replicas fit, those around the chosen one are shown."""
        right = self._options()
        row = Text()
        row.append("a ", f"bold {STYLES.accent}")
        self._places = []
        self._add(row, f"all {len(self.numbers)}", None, STYLES.muted if self.chosen is not None else STYLES.text)
        row.append(" ")
        room = self.size.width - row.cell_len - right.cell_len - 2
        for place in self._fitting(room):
            row.append("  ")
            glyph = glyphs_of(self.app).failed if place in self.failed else ""
            style = STYLES.failed if glyph else STYLES.replica(self.numbers[place])
            self._add(row, f"{self.numbers[place]}{glyph}", place, style)
        row.append(" " * max(2, self.size.width - row.cell_len - right.cell_len))
        row.append_text(right)
        row.truncate(self.size.width, overflow="crop")
        return row

    def on_click(self, event: events.Click) -> None:
        """Choose the replica under the pointer."""
        x = event.x - 1
        for start, end, place in self._places:
            if start <= x < end:
                self.post_message(self.Chosen(place))

    def _add(self, row: Text, words: str, place: int | None, style: str) -> None:
        start = row.cell_len
        row.append(words, f"bold underline {style}" if place == self.chosen else style)
        self._places.append((start, row.cell_len, place))

    def _fitting(self, room: int) -> range:
        cell = len(str(max(self.numbers, default=0))) + 3
        most = max(1, room // cell)
        first = max(0, min((self.chosen or 0) - most // 2, len(self.numbers) - most))
        return range(first, min(len(self.numbers), first + most))

    def _options(self) -> Text:
        words = [self.stream, *_TIMES[self.times], "wrap" if self.wrap else "no wrap"]
        return Text("   ".join(words), STYLES.faint)
