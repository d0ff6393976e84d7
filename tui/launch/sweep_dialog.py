"""The question before a sweep is launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Button

from ...logs.text.sanitize import plain
from ..format import count, cut
from ..ui.dialog import MOST_LISTED, TEXT_WIDTH, CountDialog
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from .plan import LaunchPlan


class SweepDialog(CountDialog):
    """Lists the jobs and asks for their count."""

    HELP_TITLE = "Sweep"
    COUNT_FOR = "launch them"
    BINDINGS = [Binding("ctrl+s", "confirm", "Launch them", priority=True, id="dialog.sweep")]

    def __init__(self, plans: Sequence[LaunchPlan]) -> None:
        super().__init__(len(plans))
        self._plans = plans

    def heading(self) -> str:
        return f"Launch {count(len(self._plans), 'job')}?"

    def lines(self) -> list[Text]:
        glyphs = glyphs_of(self.app)
        first = self._plans[0]
        lines = [Text(cut(plain(first.name), TEXT_WIDTH, glyphs.cut), f"bold {STYLES.text}"), Text()]
        lines += [
            Text(cut(f"{number:>4}  {plain(plan.label)}", TEXT_WIDTH, glyphs.cut), STYLES.text)
            for number, plan in enumerate(self._plans[:MOST_LISTED], 1)
        ]
        if len(self._plans) > MOST_LISTED:
            lines.append(Text(f"      and {len(self._plans) - MOST_LISTED} more", STYLES.faint))
        return [*lines, Text(), Text("They share a group, which the table can show and filter.", STYLES.muted), Text()]

    def compose_buttons(self) -> ComposeResult:
        yield Button("Back to the form", compact=True, id="keep")
        yield Button("Launch", compact=True, id="confirm")
