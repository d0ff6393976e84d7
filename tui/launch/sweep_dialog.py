"""Asks before a sweep is launched: which jobs, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from ...logs.text.sanitize import plain
from ..format import count, cut
from ..ui.dialog import MOST_LISTED, TEXT_WIDTH, Dialog
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from .plan import LaunchPlan


class SweepDialog(Dialog[bool]):
    """Asks for the count.

    Args:
        plans: what would be launched.
    """

    HELP_TITLE = "Sweep"
    BINDINGS = [Binding("ctrl+s", "confirm", "Launch them", priority=True, id="dialog.sweep", show=False)]

    def __init__(self, plans: Sequence[LaunchPlan]) -> None:
        super().__init__()
        self._plans = plans
        self._count = Input(compact=True, id="dialog-count")
        self._count.cursor_blink = False

    def heading(self) -> str:
        """Return the title, with how many jobs are meant."""
        return f"Launch {count(len(self._plans), 'job')}?"

    def lines(self) -> list[Text]:
        """Return what each job has of its own."""
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

    def compose_question(self) -> ComposeResult:
        """Ask for the count."""
        yield Static(Text(f"Type {len(self._plans)} to launch them", STYLES.muted), markup=False)
        yield self._count

    def compose_buttons(self) -> ComposeResult:
        """Yield the harmless button, and the other."""
        yield Button("Back to the form", compact=True, id="keep")
        yield Button("Launch", compact=True, id="confirm")

    def first_focus(self) -> Widget:
        """Return the count: nothing happens without it."""
        return self._count

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        if event.button.id == "confirm":
            self.action_confirm()
        else:
            self.dismiss(False)

    def on_input_submitted(self) -> None:
        """Launch once the count is right."""
        self.action_confirm()

    def action_confirm(self) -> None:
        """Answer yes, if the count was typed."""
        if self._count.value.strip() == str(len(self._plans)):
            self.dismiss(True)
        else:
            self.set_focus(self._count)
