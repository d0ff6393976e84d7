"""The dialog that chooses and orders the columns of the job table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from ..ui.dialog import Dialog
from ..ui.job_cells import COLUMNS_BY_KEY
from ..ui.palette import STYLES

_WORDS_WIDTH = 12


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """A list of all columns; it answers with the keys of the chosen ones in order, empty for what fits the width.

    Args:
        chosen: the keys that are shown now, in order.
    """

    HELP_TITLE = "Columns"
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="columns.down", show=False),
        Binding("k,up", "move(-1)", "Up", id="columns.up", show=False),
        Binding("space", "show", "Show or hide", id="columns.show", show=False),
        Binding("J,shift+down", "shift(1)", "Move the column right", id="columns.move_right", show=False),
        Binding("K,shift+up", "shift(-1)", "Move the column left", id="columns.move_left", show=False),
        Binding("d", "default", "As fits the width", id="columns.default", show=False),
        Binding("enter", "apply", "Apply", id="columns.apply", show=False),
    ]

    def __init__(self, chosen: Sequence[str]) -> None:
        super().__init__()
        known = [key for key, column in COLUMNS_BY_KEY.items() if column.label]
        self._shown = {key for key in chosen if key in known}
        self._keys = [key for key in chosen if key in known] + [key for key in known if key not in self._shown]
        self._cursor = 0
        self._list = Static(markup=False, id="dialog-text")
        self._list.can_focus = True

    def compose(self) -> ComposeResult:
        """Yield the box with the list."""
        with Vertical(id="dialog") as box:
            box.border_title = "Columns"
            yield self._list

    def first_focus(self) -> Widget:
        """Return the list: there are no buttons."""
        return self._list

    def on_mount(self) -> None:
        """Draw the list."""
        self._draw()

    def action_move(self, step: int) -> None:
        """Go to another column."""
        self._cursor = min(max(self._cursor + step, 0), len(self._keys) - 1)
        self._draw()

    def action_show(self) -> None:
        """Show or hide the column; one stays."""
        shown = self._shown ^ {self._keys[self._cursor]}
        if shown:
            self._shown = shown
        self._draw()

    def action_shift(self, step: int) -> None:
        """Move the column among the others."""
        target = self._cursor + step
        if 0 <= target < len(self._keys):
            keys = self._keys
            keys[self._cursor], keys[target] = keys[target], keys[self._cursor]
            self._cursor = target
            self._draw()

    def action_default(self) -> None:
        """Show what fits the width, in the usual order."""
        self.dismiss(())

    def action_apply(self) -> None:
        """Show the chosen columns."""
        self.dismiss(tuple(key for key in self._keys if key in self._shown))

    def _draw(self) -> None:
        text = Text(end="", no_wrap=True)
        for number, key in enumerate(self._keys):
            column = COLUMNS_BY_KEY[key]
            on = key in self._shown
            line = Text(f" {'[x]' if on else '[ ]'} ", STYLES.text if on else STYLES.faint, end="")
            line.append(column.label.ljust(_WORDS_WIDTH), STYLES.text if on else STYLES.faint)
            line.append(column.words, STYLES.muted if on else STYLES.faint)
            line.pad_right(max(0, 60 - line.cell_len))
            if number == self._cursor:
                line.stylize(STYLES.cursor)
            text.append_text(line).append("\n")
        text.append("\n")
        for keys, words in (("space", "show"), ("J K", "move"), ("d", "as fits"), ("enter", "apply"), ("esc", "back")):
            text.append(f" {keys}", f"bold {STYLES.accent}").append(f" {words}  ", STYLES.muted)
        self._list.update(text)
