"""The table of jobs on the Line API: only the rows on screen are drawn, rows keep their place by handle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..theme import now_of, palette_of, signs_of
from .job_cells import COLUMNS, CellContext, Column

if TYPE_CHECKING:
    from ..job_rows import JobRow

# Text starts one cell from its pane's edge.
INDENT = 1
WIDE_NAME = 28


@dataclass(frozen=True)
class Sort:
    """The column that orders the rows, and whether the largest comes first."""

    column: str = "age"
    reverse: bool = False


class JobTable(ScrollView, can_focus=True, inherit_bindings=False):
    """Jobs in rows. Cursor, scroll and marks stay with their job when rows change, come or go."""

    DEFAULT_CSS = """
    JobTable {
        height: 1fr;
        width: 1fr;
        background: $bg;
        overflow: hidden auto;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
    }
    """

    BINDINGS = [
        Binding("j,down", "move(1)", "Down", show=False, id="table.down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="table.up"),
        Binding("g,home", "edge(-1)", "First", show=False, id="table.first"),
        Binding("G,end", "edge(1)", "Last", show=False, id="table.last"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="table.half_down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="table.half_up"),
        Binding("pagedown", "page(1.0)", "Page down", show=False, id="table.page_down"),
        Binding("pageup", "page(-1.0)", "Page up", show=False, id="table.page_up"),
        Binding("enter", "open", "Open the job", show=False, id="table.open"),
        Binding("space", "mark", "Mark", show=False, id="table.mark"),
        Binding("asterisk", "mark_all", "Mark all shown", key_display="*", show=False, id="table.mark_all"),
        Binding("s", "sort", "Sort by the next column", show=False, id="table.sort"),
        Binding("S", "reverse", "Reverse the order", show=False, id="table.reverse"),
    ]

    sort: reactive[Sort] = reactive(Sort())
    placeholder: reactive[Text] = reactive(Text)

    @dataclass
    class Highlighted(Message):
        """The cursor stands on another job, or on none."""

        row: JobRow | None

    @dataclass
    class Opened(Message):
        """Enter, or a click on the row under the cursor."""

        row: JobRow

    class MarksChanged(Message):
        """Rows were marked or unmarked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: dict[str, JobRow] = {}
        self._order: list[str] = []
        self._cursor: str | None = None
        self.marks: set[str] = set()
        self.dimmed: frozenset[str] = frozenset()
        self._columns: list[tuple[Column, int]] = []
        self._last_sent: JobRow | None = None

    # Rows

    @property
    def _width(self) -> int:
        """The cells of a row, beside the scrollbar, whose place is always kept."""
        return self.scrollable_content_region.width

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._order)

    @property
    def cursor_row(self) -> JobRow | None:
        """The job under the cursor."""
        return self._rows.get(self._cursor) if self._cursor else None

    @property
    def rows(self) -> list[JobRow]:
        """The jobs in the order shown."""
        return [self._rows[handle] for handle in self._order]

    def marked_rows(self) -> list[JobRow]:
        """Return the marked jobs, else the one under the cursor."""
        marked = [self._rows[handle] for handle in self._order if handle in self.marks]
        return marked or ([self.cursor_row] if self.cursor_row else [])

    def set_rows(self, rows: Iterable[JobRow]) -> None:
        """Show these jobs; what did not change is not drawn again."""
        fresh = {row.handle: row for row in rows}
        changed = {handle for handle, row in fresh.items() if self._rows.get(handle) != row}
        if not changed and len(fresh) == len(self._rows):
            return
        self._rows = fresh
        self.marks &= fresh.keys()
        self._reorder()
        self._keep_cursor()
        self._send_highlight()

    def set_dimmed(self, schedulers: frozenset[str]) -> None:
        """Dim the rows of backends that do not answer."""
        if schedulers != self.dimmed:
            self.dimmed = schedulers
            self.refresh()

    def refresh_ages(self) -> None:
        """Draw the ages again; call it once a minute."""
        self.refresh()

    def _reorder(self) -> None:
        column = next(column for column in COLUMNS if column.key == self.sort.column)
        rows = sorted(self._rows.values(), key=column.sort_key, reverse=self.sort.reverse)
        before = self._order
        position = before.index(self._cursor) if self._cursor in before else 0
        self._order = [row.handle for row in rows]
        if self._cursor not in self._rows:
            self._cursor = self._order[min(position, len(self._order) - 1)] if self._order else None
        elif self._cursor is not None and before:
            shift = self._order.index(self._cursor) - position
            if shift and self.scroll_offset.y:
                self.virtual_size = Size(self._width, len(self._order) + 1)
                self.scroll_to(y=self.scroll_offset.y + shift, animate=False, immediate=True)
        self._resize_virtual()
        self.refresh()

    def _resize_virtual(self) -> None:
        self.virtual_size = Size(self._width, len(self._order) + 1)

    def watch_sort(self) -> None:
        """Order the rows anew."""
        if self._rows:
            self._reorder()
            self._keep_cursor()

    def watch_placeholder(self) -> None:
        """Draw the text that stands where there are no rows."""
        self.refresh()

    # Cursor

    def move_to(self, handle: str) -> None:
        """Put the cursor on a job."""
        if handle in self._rows and handle != self._cursor:
            self._cursor = handle
            self._keep_cursor()
            self.refresh()
            self._send_highlight()

    @property
    def _cursor_index(self) -> int:
        return self._order.index(self._cursor) if self._cursor in self._rows else 0

    def _keep_cursor(self) -> None:
        """Scroll so that the cursor's row is in view, under the header."""
        if not self._order or self.size.height < 2:
            return
        body = self.size.height - 1
        index, top = self._cursor_index, round(self.scroll_offset.y)
        if index < top:
            self.scroll_to(y=index, animate=False, immediate=True)
        elif index >= top + body:
            self.scroll_to(y=index - body + 1, animate=False, immediate=True)

    def _send_highlight(self) -> None:
        row = self.cursor_row
        if row != self._last_sent:
            self._last_sent = row
            self.post_message(self.Highlighted(row))

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        if self._order:
            index = min(max(self._cursor_index + rows, 0), len(self._order) - 1)
            self.move_to(self._order[index])

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first (-1) or last (1) row."""
        if self._order:
            self.move_to(self._order[0 if end < 0 else -1])

    def action_page(self, pages: float) -> None:
        """Move the cursor by pages."""
        self.action_move(round(pages * max(1, self.size.height - 1)))

    def action_open(self) -> None:
        """Say that the job under the cursor shall be opened."""
        if self.cursor_row:
            self.post_message(self.Opened(self.cursor_row))

    def action_mark(self) -> None:
        """Mark or unmark the row under the cursor and go on to the next."""
        if self._cursor:
            self.marks ^= {self._cursor}
            self.action_move(1)
            self.refresh()
            self.post_message(self.MarksChanged())

    def action_mark_all(self) -> None:
        """Mark all rows, or none if all are marked."""
        every = set(self._order)
        self.marks = set() if self.marks >= every else every
        self.refresh()
        self.post_message(self.MarksChanged())

    def clear_marks(self) -> None:
        """Unmark all rows."""
        self.marks = set()
        self.refresh()
        self.post_message(self.MarksChanged())

    def action_sort(self) -> None:
        """Order by the next column."""
        keys = [column.key for column, _ in self._columns if column.sortable]
        following = (keys.index(self.sort.column) + 1) % len(keys) if self.sort.column in keys else 0
        self.sort = Sort(keys[following])

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.sort = Sort(self.sort.column, not self.sort.reverse)

    def on_click(self, event: events.Click) -> None:
        """Move to the row that was clicked; open it if the cursor was there."""
        index = event.y - 1 + round(self.scroll_offset.y)
        if event.y >= 1 and 0 <= index < len(self._order):
            if self._order[index] == self._cursor:
                self.action_open()
            else:
                self.move_to(self._order[index])

    # Drawing

    def on_resize(self, _event: events.Resize) -> None:
        """Choose the columns for the new width."""
        self._columns = _layout(self._width, self.app.size.width)
        self._resize_virtual()
        self._keep_cursor()
        self.refresh()

    def on_focus(self) -> None:
        """Show the cursor as the focused one."""
        self.refresh()

    def on_blur(self) -> None:
        """Show the cursor as one without focus."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row of the screen: the header, a job, or nothing."""
        width = self._width
        background = self.rich_style
        if y == 0:
            return self._line(self._header(), width, background)
        index = y - 1 + round(self.scroll_offset.y)
        if index < len(self._order):
            return self._job_line(self._order[index], width, background)
        if y == 1 and not self._order and self.placeholder:
            return self._line([(self.placeholder, width - INDENT)], width, background)
        return Strip.blank(width, background)

    def _header(self) -> list[tuple[Text, int]]:
        colors, signs = palette_of(self.app), signs_of(self.app)
        cells = []
        for column, width in self._columns:
            label = column.label
            if column.key == self.sort.column:
                descending = column.right != self.sort.reverse
                label = f"{signs.descending if descending else signs.ascending}{label}"
            cells.append((Text(label, colors.text3, justify="right" if column.right else "left"), width))
        return cells

    def _job_line(self, handle: str, width: int, background: Style) -> Strip:
        colors = palette_of(self.app)
        row = self._rows[handle]
        context = CellContext(
            palette=colors,
            signs=signs_of(self.app),
            marked=handle in self.marks,
            dimmed=row.scheduler in self.dimmed or row.history,
            now=now_of(self.app),
        )
        cells = [(column.cell(row, context, cell_width), cell_width) for column, cell_width in self._columns]
        style = background
        on_cursor = handle == self._cursor
        if on_cursor:
            style += Style.parse(colors.cursor if self.has_focus else colors.cursor_unfocused)
        strip = self._line(cells, width, style)
        if on_cursor and colors.ansi and self.has_focus:
            # State colours under reverse are patchy: the cursor row is plain reverse there.
            return Strip([Segment(strip.text, style)], width)
        return strip

    def _line(self, cells: list[tuple[Text, int]], width: int, style: Style) -> Strip:
        line = Text(" " * INDENT, end="", no_wrap=True)
        for number, (cell, cell_width) in enumerate(cells):
            text = cell.copy()
            text.truncate(cell_width, overflow="crop")
            pad = " " * (cell_width - text.cell_len)
            if text.justify == "right":
                line.append(pad)
                line.append_text(text)
            else:
                line.append_text(text)
                line.append(pad)
            if number < len(cells) - 1:
                line.append(" " * self._columns[number][0].gap)
        segments = list(line.render(self.app.console))
        return Strip(Segment.apply_style(segments, style)).adjust_cell_length(width, style)


def _layout(width: int, screen_width: int) -> list[tuple[Column, int]]:
    """Return the columns for a table of ``width`` cells on a screen of ``screen_width``, with their widths.

    The last flexible column takes what is left.
    """
    chosen = [column for column in COLUMNS if screen_width >= column.from_width]
    taker = [column for column in chosen if column.flexible][-1]
    # Once WHY takes what is left, a name has a width of its own, in which most unique suffixes still fit.
    widths = [WIDE_NAME if column.key == "name" and column is not taker else column.width for column in chosen]
    spare = width - INDENT - sum(widths) - sum(column.gap for column in chosen[:-1])
    return [
        (column, max(1, cells + (spare if column is taker else 0)))
        for column, cells in zip(chosen, widths, strict=True)
    ]
