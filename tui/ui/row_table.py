"""A table of texts; the columns that fit are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip

from ..format import cut
from .cursor_table import INDENT, CursorTable
from .palette import Text
from .theme import glyphs_of

if TYPE_CHECKING:
    from ...backends.shared.cluster_columns import Table

_GAP = 2
# The last column that fits is cut to this width before another one is left out.
_LEAST = 14


class RowTable(CursorTable):
    """Rows of text. The cursor stays on its row, by the first cell, when rows change."""

    HELP_TITLE = "Table"
    BINDINGS = [Binding("enter", "open", "Open", id="rows.open")]

    @dataclass
    class Moved(Message):
        """The cursor is on another row, which has this first cell."""

        name: str

    @dataclass
    class Opened(Message):
        """Enter, or a click on the row at the cursor, which has this first cell."""

        name: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._table: Table | None = None
        self._rows: Sequence[tuple[str, ...]] = ()
        self._bright: frozenset[str] = frozenset()
        self._cursor = 0
        # The columns that fit, by their numbers, with their widths.
        self._fitting: list[tuple[int, int]] = []

    @property
    def cursor_name(self) -> str:
        """The first cell of the row at the cursor; empty if there are no rows."""
        return self._rows[self._cursor][0] if self._rows else ""

    @property
    def cursor_index(self) -> int:
        return self._cursor

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def show(self, table: Table | None, bright: frozenset[str], words: str = "", cursor: str = "") -> None:
        """Show rows.

        Args:
            table: the rows; None for none.
            bright: the first cells of rows that stand out.
            words: only rows that contain each of these words are shown.
            cursor: the first cell of the row for the cursor; empty for where it is.
        """
        wanted, before = words.lower().split(), cursor or self.cursor_name
        rows = table.rows if table is not None else ()
        if wanted:
            rows = [row for row in rows if _has_all(row, wanted)]
        at = next((number for number, row in enumerate(rows) if row[0] == before), None)
        self._table, self._rows, self._bright = table, rows, bright
        self._cursor = at if at is not None else min(self._cursor, max(0, len(rows) - 1))
        self.fit_columns()
        self._resize_virtual()
        self._keep_cursor()
        self.refresh()

    def fit_columns(self) -> None:
        """Choose the columns for the width; the last one may be cut."""
        self._fitting = []
        if self._table is None:
            return
        widths, ranks = self._table.widths, self._table.ranks
        kept = [*range(len(widths))]

        def excess() -> int:
            return INDENT + sum(widths[each] + _GAP for each in kept) - _GAP - self._width

        while len(kept) > 1 and excess() > max(0, widths[kept[-1]] - _LEAST):
            # Of equal ranks the last one goes.
            kept.remove(max(kept, key=lambda each: (ranks[each], each)))
        self._fitting = [(each, widths[each]) for each in kept]
        if kept and (over := excess()) > 0:
            self._fitting[-1] = kept[-1], max(1, widths[kept[-1]] - over)

    def move_to_index(self, index: int) -> None:
        self._cursor = index
        self._keep_cursor()
        self.refresh()
        self.post_message(self.Moved(self.cursor_name))

    def action_open(self) -> None:
        if self._rows:
            self.post_message(self.Opened(self.cursor_name))

    def draw_header(self, style: Style) -> Strip:
        return self._line(self._table.labels if self._table and self._table.rows else (), "$style-faint", style)

    def draw_row(self, index: int, style: Style) -> Strip:
        cells = self._rows[index]
        return self._line(cells, "$style-text" if cells[0] in self._bright else "$style-muted", style)

    def _line(self, cells: Sequence[str], color: str, style: Style) -> Strip:
        line, glyph = Text(" " * INDENT, end=""), glyphs_of(self.app).cut
        for number, width in self._fitting if cells else ():
            text = cut(cells[number], width, glyph)
            line.append(text, color).append(" " * (width - cell_len(text) + _GAP))
        return line.strip(self._width, style)


def _has_all(row: Sequence[str], words: Sequence[str]) -> bool:
    text = " ".join(row).lower()
    return all(word in text for word in words)
