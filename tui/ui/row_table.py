"""A table with a cursor on the Line API: only the rows on screen are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..format import cut
from .drawing import guard_render_line
from .palette import STYLES, Text
from .theme import glyphs_of, palette_of

if TYPE_CHECKING:
    from ...backends.shared.cluster_columns import Table

_INDENT, _GAP = 1, 2
# The last column that fits is cut to this width before another one is left out.
_LEAST = 14


class RowTable(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of text under a header. The cursor stays on its row, by the first cell, when rows change."""

    DEFAULT_CSS = """
    RowTable {
        height: 1fr;
        width: 1fr;
        background: $bg;
        overflow: hidden auto;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
    }
    """
    HELP_TITLE = "Table"
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="rows.down"),
        Binding("k,up", "move(-1)", "Up", id="rows.up"),
        Binding("g,home", "move(-999999)", "First", id="rows.first"),
        Binding("G,end", "move(999999)", "Last", id="rows.last"),
        Binding("ctrl+d,pagedown", "page(1)", "Page down", id="rows.page_down"),
        Binding("ctrl+u,pageup", "page(-1)", "Page up", id="rows.page_up"),
        Binding("enter", "open", "Open", id="rows.open"),
    ]

    placeholder: reactive[Text] = reactive(Text)

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
        self._fit()
        self._keep_cursor()
        self.refresh()

    def _fit(self) -> None:
        """Choose the columns for the width; the last one may be cut."""
        self.virtual_size = Size(self._width, len(self._rows) + 1)
        self._fitting = []
        if self._table is None:
            return
        widths, ranks = self._table.widths, self._table.ranks
        kept = [*range(len(widths))]

        def excess() -> int:
            return _INDENT + sum(widths[each] + _GAP for each in kept) - _GAP - self._width

        while len(kept) > 1 and excess() > max(0, widths[kept[-1]] - _LEAST):
            # Of equal ranks the last one goes.
            kept.remove(max(kept, key=lambda each: (ranks[each], each)))
        self._fitting = [(each, widths[each]) for each in kept]
        if kept and (over := excess()) > 0:
            self._fitting[-1] = kept[-1], max(1, widths[kept[-1]] - over)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def on_resize(self, _event: events.Resize) -> None:
        self._fit()
        self._keep_cursor()

    # Cursor

    def _keep_cursor(self) -> None:
        body, top = max(1, self.size.height - 1), round(self.scroll_offset.y)
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, immediate=True)
        elif self._cursor >= top + body:
            self.scroll_to(y=self._cursor - body + 1, animate=False, immediate=True)

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._cursor = max(0, min(self._cursor + rows, len(self._rows) - 1))
        self._keep_cursor()
        self.refresh()
        self.post_message(self.Moved(self.cursor_name))

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(1, self.size.height - 2))

    def action_open(self) -> None:
        """Open the row at the cursor."""
        if self._rows:
            self.post_message(self.Opened(self.cursor_name))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked, or open it."""
        row = event.y - 1 + round(self.scroll_offset.y)
        if event.y >= 1 and row < len(self._rows):
            if row == self._cursor:
                self.action_open()
            else:
                self.action_move(row - self._cursor)

    # Drawing

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        width, style = self._width, self.rich_style
        row = y - 1 + round(self.scroll_offset.y)
        if y == 0 and self._table is not None and self._table.rows:
            return self._line(self._table.labels, STYLES.faint).strip(width, style)
        if y >= 1 and row < len(self._rows):
            cells, colors = self._rows[row], palette_of(self.app)
            line = self._line(cells, STYLES.text if cells[0] in self._bright else STYLES.muted)
            if row == self._cursor:
                style += Style.parse(colors.cursor if self.has_focus else colors.cursor_unfocused)
                if colors.ansi and self.has_focus:
                    return Strip([Segment(line.plain.ljust(width), style)]).adjust_cell_length(width, style)
            return line.strip(width, style)
        if y == 1 and not self._rows:
            return Text.assemble(" " * _INDENT, self.placeholder).strip(width, style)
        return Strip.blank(width, style)

    def _line(self, cells: Sequence[str], style: str) -> Text:
        line, glyph = Text(" " * _INDENT, end=""), glyphs_of(self.app).cut
        for number, width in self._fitting:
            text = cut(cells[number], width, glyph)
            line.append(text, style).append(" " * (width - cell_len(text) + _GAP))
        return line


def _has_all(row: Sequence[str], words: Sequence[str]) -> bool:
    text = " ".join(row).lower()
    return all(word in text for word in words)
