"""Asks before jobs are launched again that would not be as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Button, Static

from ...logs.text.sanitize import plain
from ..format import count, cut
from ..rows import JobRow
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.job_cells import name_text
from ..ui.theme import palette_of, signs_of
from .relaunch import summed_up

if TYPE_CHECKING:
    from ...backends.history.provenance import Changed


class RelaunchDialog(Dialog[str]):
    """Shows what has changed since; answers ``launch`` or ``edit``.

    Args:
        rows: the jobs.
        changes: what has changed since the launch of each, by handle.
    """

    HELP_TITLE = "Relaunch"
    BINDINGS = [
        Binding("y", "answer('launch')", "Launch again", id="dialog.relaunch", show=False),
        Binding("e", "answer('edit')", "Edit it instead", id="dialog.edit", show=False),
        Binding("j,down", "scroll(1)", "Down", id="dialog.down", show=False),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up", show=False),
    ]

    def __init__(self, rows: Sequence[JobRow], changes: Mapping[str, Sequence[Changed]]) -> None:
        super().__init__()
        self._rows = rows
        self._changes = changes

    def heading(self) -> str:
        """Return the title, with how many jobs are meant."""
        return "Launch it again?" if len(self._rows) == 1 else f"Launch {count(len(self._rows), 'job')} again?"

    def lines(self) -> list[Text]:
        """Return which job it is, or of how many something has changed."""
        colors, signs = palette_of(self.app), signs_of(self.app)
        if len(self._rows) == 1:
            name = name_text(self._rows[0].name, TEXT_WIDTH, colors, signs, bold=True)
            return [name, Text(), Text("Since its launch this has changed:", colors.text2)]
        words = f"Since their launches something has changed for {len(self._changes):,} of them:"
        return [Text(words, colors.text2)]

    def compose_question(self) -> ComposeResult:
        """Yield what has changed; it may be longer than the screen."""
        with VerticalScroll(id="relaunch-changes", can_focus=False):
            yield Static(Text("\n", no_wrap=True).join(self._changed()), markup=False)
        colors = palette_of(self.app)
        yield Static(Text("Arguments and run options stay as they were.\n", colors.text2), markup=False)

    def _changed(self) -> list[Text]:
        """Return each change: what it is, what it was, what it is now."""
        colors, signs = palette_of(self.app), signs_of(self.app)
        lines: list[Text] = []
        for one, jobs in summed_up(self._changes):
            what = Text(cut(plain(one.what), TEXT_WIDTH - 12, signs.cut), colors.text)
            if len(self._rows) > 1:
                what.append(f"   {count(jobs, 'job')}", colors.text3)
            lines += [
                what,
                Text(cut(f"  - {plain(one.then)}", TEXT_WIDTH, signs.cut), colors.removed),
                Text(cut(f"  + {plain(one.now)}", TEXT_WIDTH, signs.cut), colors.added),
            ]
        return [*lines, Text()]

    def compose_buttons(self) -> ComposeResult:
        """Yield the harmless button, the other, and what else there is."""
        colors = palette_of(self.app)
        yield Button("Cancel", compact=True, id="keep")
        label = Text("y", colors.failed)
        label.append(" Launch again", colors.text)
        yield Button(label, compact=True, id="confirm")
        hint = Text(end="")
        if len(self._rows) == 1:
            hint = Text.assemble(("e", f"bold {colors.accent}"), (" edit   ", colors.text2))
        hint.append_text(Text.assemble(("esc", f"bold {colors.accent}"), (" back", colors.text2)))
        yield Static(hint, markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to edit where it is one job."""
        return not (action == "answer" and parameters == ("edit",) and len(self._rows) > 1)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        self.dismiss("launch" if event.button.id == "confirm" else None)

    def action_answer(self, answer: str) -> None:
        """Take a key's answer."""
        self.dismiss(answer)

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#relaunch-changes").scroll_relative(y=rows, animate=False)
