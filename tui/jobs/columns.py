"""The dialog that chooses and orders the columns of the job table."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from ..ui.job_cells import COLUMNS_BY_KEY
from ..ui.list_dialog import ListDialog
from ..ui.palette import Text

_WORDS_WIDTH = 12


class ColumnsDialog(ListDialog[tuple[str, ...]]):
    """A list of all columns; it answers with the keys of the chosen ones in order, empty for what fits the width.

    Args:
        chosen: the keys that are shown now, in order.
    """

    HELP_TITLE = "Columns"
    HINTS = (
        ("columns.show", "show"),
        ("columns.move_right columns.move_left", "move"),
        ("columns.default", "fit width"),
        ("columns.apply", "apply"),
        ("dialog.back", "back"),
    )
    BINDINGS = [
        Binding("space", "show", "Show or hide", id="columns.show"),
        Binding("J,shift+down", "shift(1)", "Move the column right", id="columns.move_right"),
        Binding("K,shift+up", "shift(-1)", "Move the column left", id="columns.move_left"),
        Binding("d", "default", "Columns that fit the width", id="columns.default"),
        Binding("enter", "apply", "Apply", id="columns.apply"),
    ]

    def __init__(self, chosen: Sequence[str]) -> None:
        super().__init__("Columns")
        known = [key for key, column in COLUMNS_BY_KEY.items() if column.label]
        self._shown = {key for key in chosen if key in known}
        self._keys = [key for key in chosen if key in known] + [key for key in known if key not in self._shown]

    def rows(self) -> list[Text]:
        """Return the columns, each with whether it is shown."""
        rows = []
        for key in self._keys:
            column, shown = COLUMNS_BY_KEY[key], key in self._shown
            row = Text("[x] " if shown else "[ ] ", "$style-text" if shown else "$style-faint")
            row.append(column.label.ljust(_WORDS_WIDTH), "$style-text" if shown else "$style-faint")
            rows.append(row.append(column.words, "$style-muted" if shown else "$style-faint"))
        return rows

    def choose(self, row: int) -> None:
        """Show or hide a column that was clicked."""
        self.show_rows(row)
        self.action_show()

    def action_show(self) -> None:
        """Show or hide the column at the cursor; the last that is shown stays."""
        self._shown = self._shown ^ {self._keys[self.cursor]} or self._shown
        self.show_rows()

    def action_shift(self, step: int) -> None:
        """Move the column among the others."""
        keys, cursor = self._keys, self.cursor
        target = cursor + step
        if 0 <= target < len(keys):
            keys[cursor], keys[target] = keys[target], keys[cursor]
            self.show_rows(target)

    def action_default(self) -> None:
        """Show what fits the width, in the usual order."""
        self.dismiss(())

    def action_apply(self) -> None:
        """Show the chosen columns."""
        self.dismiss(tuple(key for key in self._keys if key in self._shown))
