"""Rows under a header with a cursor, on the Line API: only the rows on screen are drawn."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .drawing import guard_render_line
from .palette import Text
from .theme import palette_of

INDENT = 1
"""The cells before the first column."""


class CursorTable(ScrollView, can_focus=True, inherit_bindings=False):
    """A table that knows how many rows it has and draws each by its number; subclasses have the rows."""

    DEFAULT_CSS = """
    CursorTable {
        height: 1fr;
        width: 1fr;
        background: $bg;
        overflow: hidden auto;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
    }
    """
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="table.down"),
        Binding("k,up", "move(-1)", "Up", id="table.up"),
        Binding("g,home", "edge(-1)", "First", id="table.first"),
        Binding("G,end", "edge(1)", "Last", id="table.last"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", id="table.half_down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", id="table.half_up"),
        Binding("pagedown", "page(1.0)", "Page down", id="table.page_down"),
        Binding("pageup", "page(-1.0)", "Page up", id="table.page_up"),
    ]

    placeholder: reactive[Text] = reactive(Text)

    # What a subclass has

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    @property
    def cursor_index(self) -> int:
        """The number of the row at the cursor; 0 if there are no rows."""
        raise NotImplementedError

    def move_to_index(self, index: int) -> None:
        """Put the cursor on a row that exists."""
        raise NotImplementedError

    def action_open(self) -> None:
        """Open the row at the cursor, if there is one."""
        raise NotImplementedError

    def fit_columns(self) -> None:
        """Choose the columns for the width."""
        raise NotImplementedError

    def draw_header(self, style: Style) -> Strip:
        raise NotImplementedError

    def draw_row(self, index: int, style: Style) -> Strip:
        raise NotImplementedError

    # Cursor

    @property
    def _width(self) -> int:
        """The cells of a row, beside the scrollbar, whose place is always kept."""
        return self.scrollable_content_region.width

    def _resize_virtual(self) -> None:
        self.virtual_size = Size(self._width, self.row_count + 1)

    def _keep_cursor(self) -> None:
        """Scroll so that the cursor's row is in view, under the header."""
        if not self.row_count or self.size.height < 2:
            return
        body = self.size.height - 1
        index, top = self.cursor_index, round(self.scroll_offset.y)
        if index < top:
            self.scroll_to(y=index, animate=False, immediate=True)
        elif index >= top + body:
            self.scroll_to(y=index - body + 1, animate=False, immediate=True)

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        if self.row_count:
            self.move_to_index(min(max(self.cursor_index + rows, 0), self.row_count - 1))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first (-1) or last (1) row."""
        self.action_move(end * self.row_count)

    def action_page(self, pages: float) -> None:
        """Move the cursor by pages."""
        self.action_move(round(pages * max(1, self.size.height - 1)))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked, or open it."""
        index = event.y - 1 + round(self.scroll_offset.y)
        if event.y >= 1 and 0 <= index < self.row_count:
            if index == self.cursor_index:
                self.action_open()
            else:
                self.move_to_index(index)

    # Drawing

    def on_resize(self) -> None:
        self.fit_columns()
        self._resize_virtual()
        self._keep_cursor()

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        return self._rendered(y)

    def _rendered(self, y: int) -> Strip:
        """Draw one row of the screen: the header, a row, the placeholder, or nothing."""
        width, style = self._width, self.rich_style
        index = y - 1 + round(self.scroll_offset.y)
        if y == 0:
            return self.draw_header(style)
        if index < self.row_count:
            is_at_cursor, colors = index == self.cursor_index, palette_of(self.app)
            if is_at_cursor:
                style += Style.parse(colors.cursor if self.has_focus else colors.cursor_unfocused)
            strip = self.draw_row(index, style)
            if is_at_cursor and colors.ansi and self.has_focus:
                # State colours under reverse are patchy: the cursor row is plain reverse there.
                return Strip([Segment(strip.text, style)], width)
            return strip
        if y == 1 and not self.row_count and self.placeholder:
            return Text.assemble(" " * INDENT, self.placeholder).strip(width, style)
        return Strip.blank(width, style)
