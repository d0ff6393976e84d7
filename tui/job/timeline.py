"""The timeline of a job's states: glyphs with durations between them, words and clock times below; not to scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive
from textual.widget import Widget

from ...specs.status import is_terminal
from ..format import clock, duration, state_word
from ..ui.drawing import guard_render
from ..ui.job_cells import state_style
from ..ui.palette import Text
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.api import StateChange
    from ..ui.glyphs import Glyphs


class Timeline(Widget):
    """Three rows: the line, the states, the times."""

    DEFAULT_CSS = "Timeline { height: 3; width: 1fr; padding: 0 1; }"

    changes: reactive[tuple[StateChange, ...]] = reactive(())

    @guard_render
    def render(self) -> Text:
        """Draw the timeline in the widget's width; the oldest changes go first when there is no room."""
        return timeline_text(self.changes, self.size.width, glyphs_of(self.app), now_of(self.app))


def timeline_text(changes: Sequence[StateChange], width: int, glyphs: Glyphs, now: float) -> Text:
    """Return the three rows of a timeline in ``width`` cells."""
    shown = list(changes)
    while len(shown) > 1 and _needed(shown, now) > width:
        shown.pop(0)
    if not shown:
        return Text("\n\n")
    last_width = max(len(state_word(shown[-1].state)), len(clock(shown[-1].at, now)))
    running_on = not is_terminal(shown[-1].state)
    gaps = len(shown) - 1
    step = min(32, (width - last_width) // gaps) if gaps else 0
    line, words, times = Text(), Text(), Text()
    for number, change in enumerate(shown):
        style = state_style(change.state)
        line.append(glyphs.state(change.state), style)
        words.append(state_word(change.state), style)
        times.append(clock(change.at, now), "$style-faint")
        if number < gaps:
            took = f" {duration(shown[number + 1].at - change.at)} "
            rule = max(0, step - 1 - len(took))
            line.append(glyphs.rule * (rule // 2), "$style-line")
            line.append(took, "$style-muted")
            line.append(glyphs.rule * (rule - rule // 2), "$style-line")
            for row in (words, times):
                row.append(" " * max(1, step * (number + 1) - row.cell_len))
    if running_on:
        line.append(f" {glyphs.rule * 3}", "$style-line")
    return Text("\n").join([line, words, times])


def _needed(changes: Sequence[StateChange], now: float) -> int:
    return sum(max(len(state_word(change.state)), len(clock(change.at, now))) + 2 for change in changes)
