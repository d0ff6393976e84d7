"""The table of jobs on the Line API: only the rows on screen are drawn, rows keep their place by handle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from ...specs.status import AppState
from ..ui.cursor_table import INDENT, CursorTable
from ..ui.drawing import guard_render_line
from ..ui.job_cells import COLUMNS_BY_KEY, CellContext, Column, column_widths
from ..ui.palette import Text
from ..ui.theme import glyphs_of, now_of
from .row_order import RowOrder

if TYPE_CHECKING:
    from ..rows import JobRow, RowProgress


@dataclass(frozen=True)
class Sort:
    """The column that orders the rows, and whether the largest comes first."""

    column: str = "age"
    reverse: bool = False


class JobTable(CursorTable):
    """Jobs in rows. Cursor, scroll and marks stay with their job when rows change, come or go."""

    BINDINGS = [
        Binding("enter", "open", "Open the job", id="table.open"),
        Binding("space", "mark", "Mark", id="table.mark"),
        Binding("asterisk", "mark_all", "Mark all shown", id="table.mark_all"),
        Binding("s", "sort", "Sort by the next column", id="table.sort"),
        Binding("S", "reverse", "Reverse the order", id="table.reverse"),
    ]

    sort: reactive[Sort] = reactive(Sort(), init=False)

    @dataclass
    class Highlighted(Message):
        """The cursor stands on another job, or on none."""

        row: JobRow | None

    @dataclass
    class Opened(Message):
        """Enter, or a click on the row under the cursor."""

        row: JobRow

    @dataclass
    class Sorted(Message):
        """The rows are in another order now."""

        sort: Sort

    class MarksChanged(Message):
        """Rows were marked or unmarked."""

    def __init__(self) -> None:
        super().__init__(id="table")
        self._rows: dict[str, JobRow] = {}
        self._order = RowOrder(COLUMNS_BY_KEY[Sort().column].sort_key)
        # The order depends on how far jobs are.
        self._by_progress = False
        # Which job each row of the screen was drawn for, and how it looks.
        self._drawn: dict[int, str | None] = {}
        self._strips: dict[int, Strip] = {}
        self._cursor: str | None = None
        self.marks: set[str] = set()
        # Marked jobs that a filter hides: no key acts on them, and they are marked again once they are shown.
        self.hidden_marks: set[str] = set()
        self.dimmed: frozenset[str] = frozenset()
        self._columns: list[tuple[Column, int]] = []
        self._wanted: tuple[str, ...] = ()
        self._one_backend = False
        self._kinds: set[str] = set()
        self._telling: set[str] = set()
        self._progress: dict[str, RowProgress] = {}
        self._last_sent: JobRow | None = None
        # Whether a person has chosen a row; until then the cursor is on the newest job.
        self._is_chosen = False

    # Rows

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._order)

    @property
    def is_end_in_sight(self) -> bool:
        """Whether there are no rows below the screen."""
        return self.row_count <= self.scroll_offset.y + max(0, self.size.height - 1)

    def has_row(self, handle: str) -> bool:
        """Return whether a job has a row."""
        return handle in self._rows

    @property
    def cursor_row(self) -> JobRow | None:
        """The job under the cursor."""
        return self._rows.get(self._cursor) if self._cursor else None

    @property
    def rows(self) -> list[JobRow]:
        """The jobs in the order shown."""
        return [self._rows[handle] for handle in self._order.handles()]

    def marked_rows(self) -> list[JobRow]:
        """Return the marked jobs in the order shown, else the one under the cursor."""
        marked = sorted(self.marks, key=self._order.index)
        return [self._rows[handle] for handle in marked] or ([self.cursor_row] if self.cursor_row else [])

    def targets(self) -> Iterator[JobRow]:
        """Give the jobs of `marked_rows` in any order: many keys ask for them with each change."""
        if self.marks:
            return (self._rows[handle] for handle in self.marks)
        return iter([self.cursor_row] if self.cursor_row else [])

    def set_rows(self, rows: Iterable[JobRow]) -> None:
        """Show these jobs and no others."""
        self._rows = {row.handle: row for row in rows}
        self._show_marks(self.marks | self.hidden_marks)
        with self._cursor_kept():
            self._order.reset(self._rows.values())
        self._kinds, before, self._telling = set(), self._telling, set()
        self._learn(self._rows.values(), before)
        self.refresh()

    def _learn(self, rows: Iterable[JobRow], before: Set[str]) -> None:
        """Show the columns that tell jobs apart; ``before`` are those that were shown for that."""
        self._kinds.update(row.kind for row in rows if row.kind)
        if len(self._kinds) > 1:
            self._telling.add("kind")
        if any(row.arguments or row.swept for row in rows):
            self._telling.add("args")
        if self._columns and self._telling != before:
            self._columns = self._fitting_columns()
            self.refresh()

    def _show_marks(self, marks: set[str]) -> None:
        """Part marks by whether their rows are shown."""
        shown = marks & self._rows.keys()
        self.hidden_marks = marks - shown
        if shown != self.marks:
            self.marks = shown
            self.post_message(self.MarksChanged())

    def change_rows(self, changed: Iterable[JobRow], removed: Mapping[str, str | None]) -> None:
        """Take over what changed; only rows that are on screen and look different now are drawn again.

        Args:
            changed: the rows.
            removed: rows that go, each with the row that stands for it now, which gets its cursor; None for none.
        """
        touched: set[str] = set()
        with self._cursor_kept():
            self._cursor = (removed.get(self._cursor) if self._cursor else None) or self._cursor
            for handle in removed:
                if self._rows.pop(handle, None) is not None:
                    self._order.drop(handle)
            for row in changed:
                self._rows[row.handle] = row
                self._order.put(row)
                touched.add(row.handle)
        if self.marks or self.hidden_marks:
            self._show_marks(self.marks | self.hidden_marks)
        self._learn([self._rows[handle] for handle in touched], self._telling.copy())
        self._draw_changed(touched)

    def hold_cursor(self) -> None:
        """Keep the cursor on its job from now on, whatever is launched."""
        self._is_chosen = True

    def choose_columns(self, wanted: Sequence[str]) -> None:
        """Show these columns, by their keys, as far as they fit; none: those for the width."""
        self._wanted = tuple(key for key in wanted if key in COLUMNS_BY_KEY)
        if self._columns:
            self._columns = self._fitting_columns()
            self.refresh()

    def show_one_backend(self, one_backend: bool) -> None:
        """Choose the columns for the jobs of one backend, or of all."""
        if one_backend != self._one_backend:
            self._one_backend = one_backend
            self._columns = self._fitting_columns()

    def _fitting_columns(self) -> list[tuple[Column, int]]:
        form = {"one_backend": self._one_backend, "telling": self._telling}
        return column_widths(self._width, self.app.size.width, self._wanted, **form)

    @property
    def shown_columns(self) -> list[str]:
        """The keys of the columns that were chosen, or of those that are shown."""
        return list(self._wanted) or [column.key for column, _ in self._columns if column.label]

    @property
    def left_out(self) -> list[str]:
        """The labels of the chosen columns that do not fit."""
        shown = {column.key for column, _ in self._columns}
        return [COLUMNS_BY_KEY[key].label for key in self._wanted if key not in shown]

    @property
    def on_screen(self) -> tuple[list[str], list[str]]:
        """The running jobs that are on the screen, of which it is shown how far they are, and those that have ended."""
        first = self.scroll_offset.y
        seen = self.rows[first : first + self.size.height]
        running = [row.handle for row in seen if row.state is AppState.RUNNING]
        return running, [row.handle for row in seen if row.is_final]

    def show_progress(self, progress: Mapping[str, RowProgress]) -> None:
        """Show how far jobs are."""
        changed = {handle for handle, known in progress.items() if self._progress.get(handle) != known}
        self._progress.update(progress)
        for handle in self._progress.keys() - self._rows.keys():
            del self._progress[handle]
        if self._by_progress:
            with self._cursor_kept():
                for handle in changed & self._rows.keys():
                    self._order.put(self._rows[handle])
            self._draw_changed(set())
        self._draw_lines([y for y, handle in self._drawn.items() if handle in changed and y < self.size.height])

    @property
    def cursor_stall(self) -> float | None:
        """How many seconds the job at the cursor is taken to be stalled; None where it is not."""
        known = self._progress.get(self._cursor or "")
        row = self.cursor_row
        is_stalled = known is not None and known.stalled != "" and row is not None and row.state is AppState.RUNNING
        return known.stalled_seconds if known is not None and is_stalled else None

    def set_dimmed(self, schedulers: frozenset[str]) -> None:
        """Dim the rows of backends that do not answer."""
        if schedulers != self.dimmed:
            self.dimmed = schedulers
            self.refresh()

    def refresh_ages(self) -> None:
        """Draw the rows again whose age looks different now; call it once a minute."""
        self._draw_lines(self._differing_lines())

    @contextmanager
    def _cursor_kept(self) -> Iterator[None]:
        """Keep the cursor on its job, and that job on its row of the screen, while rows change."""
        cursor, size = self._cursor, len(self._order)
        position = self._order.index(cursor) if cursor is not None and cursor in self._order else None
        yield
        cursor = self._cursor
        if not self._is_chosen and len(self._order):
            self._cursor = self._handle_at(len(self._order) - 1 if self.sort == Sort("age", reverse=True) else 0)
        elif cursor is None or cursor not in self._order:
            last = len(self._order) - 1
            self._cursor = self._handle_at(min(position or 0, last)) if last >= 0 else None
        elif position is not None:
            shift = self._order.index(cursor) - position
            if shift and self.scroll_offset.y:
                self._resize_virtual()
                self.scroll_to(y=self.scroll_offset.y + shift, animate=False, immediate=True)
        if len(self._order) != size:
            self._resize_virtual()
        self._keep_cursor()
        self._send_highlight()

    def _handle_at(self, index: int) -> str:
        return self._order.handles(index, 1)[0]

    def _draw_changed(self, touched: set[str]) -> None:
        """Draw the rows of the screen that hold another job, or one of the touched ones."""
        top = round(self.scroll_offset.y)
        lines = range(1, self.size.height)
        now = dict(zip(lines, self._order.handles(top, len(lines)), strict=False))
        self._draw_lines([y for y in lines if self._drawn.get(y) != now.get(y) or now.get(y) in touched])

    def _differing_lines(self) -> list[int]:
        drawn = [(y, strip) for y, strip in self._strips.items() if y < self.size.height]
        return [y for y, strip in drawn if self.render_line(y) != strip]

    def _draw_lines(self, lines: list[int]) -> None:
        if lines:
            self.refresh(*(Region(0, y, self._width, 1) for y in lines))

    def watch_sort(self) -> None:
        """Order the rows anew."""
        column = COLUMNS_BY_KEY[self.sort.column]
        key, by_progress = column.sort_key, column.progress_key
        if by_progress is not None:
            key = lambda row: by_progress(self._progress.get(row.handle))  # noqa: E731
        self._by_progress = by_progress is not None
        order = RowOrder(key, reverse=self.sort.reverse)
        order.reset(self._rows.values())
        with self._cursor_kept():
            self._order = order
        self.post_message(self.Sorted(self.sort))

    # Cursor

    def move_to(self, handle: str) -> None:
        """Put the cursor on a job."""
        self.hold_cursor()
        if handle in self._rows and handle != self._cursor:
            self._cursor = handle
            self._keep_cursor()
            self.refresh()
            self._send_highlight()

    @property
    def cursor_index(self) -> int:
        return self._order.index(self._cursor) if self._cursor is not None and self._cursor in self._order else 0

    def _send_highlight(self) -> None:
        row = self.cursor_row
        if row != self._last_sent:
            self._last_sent = row
            self.post_message(self.Highlighted(row))

    def move_to_index(self, index: int) -> None:
        self.move_to(self._handle_at(index))

    def action_open(self) -> None:
        """Say that the job under the cursor shall be opened."""
        if self.cursor_row:
            self.post_message(self.Opened(self.cursor_row))

    def action_mark(self) -> None:
        """Mark or unmark the row under the cursor and go on to the next."""
        if self._cursor:
            self.hold_cursor()
            self.marks ^= {self._cursor}
            self.action_move(1)
            self.refresh()
            self.post_message(self.MarksChanged())

    def action_mark_all(self) -> None:
        """Mark all rows, or none if all are marked."""
        every = set(self._rows)
        self.marks = set() if self.marks >= every else every
        self.refresh()
        self.post_message(self.MarksChanged())

    def clear_marks(self) -> None:
        """Unmark all rows."""
        self.marks, self.hidden_marks = set(), set()
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
        """Sort by the column whose header was clicked; a click on a row is the `CursorTable`'s."""
        if event.y == 0:
            self._sort_by_column_at(event.x)

    def _sort_by_column_at(self, x: int) -> None:
        start = INDENT
        for column, width in self._columns:
            if column.sortable and start <= x < start + width:
                self.sort = Sort(column.key, column.key == self.sort.column and not self.sort.reverse)
            start += width + column.gap

    # Drawing

    def fit_columns(self) -> None:
        self._columns = self._fitting_columns()

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        """Draw one row of the screen: the header, a job, or nothing."""
        self._strips[y] = strip = self._rendered(y)
        return strip

    def _rendered(self, y: int) -> Strip:
        index = y - 1 + round(self.scroll_offset.y)
        self._drawn[y] = self._handle_at(index) if y and index < len(self._order) else None
        return super()._rendered(y)

    def draw_header(self, style: Style) -> Strip:
        return self._line(self._header(), self._width, style)

    def draw_row(self, index: int, style: Style) -> Strip:
        return self._job_line(self._handle_at(index), self._width, style)

    def _header(self) -> list[tuple[Text, int]]:
        glyphs = glyphs_of(self.app)
        cells = []
        for column, width in self._columns:
            label = column.label
            if column.key == self.sort.column:
                descending = column.right != self.sort.reverse
                label = f"{glyphs.descending if descending else glyphs.ascending}{label}"
            cells.append((Text(label, "$style-faint", justify="right" if column.right else "left"), width))
        return cells

    def _job_line(self, handle: str, width: int, style: Style) -> Strip:
        row = self._rows[handle]
        context = CellContext(
            glyphs=glyphs_of(self.app),
            marked=handle in self.marks,
            dimmed=row.scheduler in self.dimmed or row.history,
            now=now_of(self.app),
            progress=self._progress.get(handle),
            has_why=any(column.key == "why" for column, _ in self._columns),
            has_args=any(column.key == "args" for column, _ in self._columns),
        )
        cells = [(column.cell(row, context, cell_width), cell_width) for column, cell_width in self._columns]
        return self._line(cells, width, style)

    def _line(self, cells: list[tuple[Text, int]], width: int, style: Style) -> Strip:
        line = Text(" " * INDENT)
        for number, (cell, cell_width) in enumerate(cells):
            text = cell.copy()
            text.truncate(cell_width, overflow="crop")
            pad = " " * (cell_width - text.cell_len)
            if text.justify == "right":
                line.append(pad).append_text(text)
            else:
                line.append_text(text).append(pad)
            if number < len(cells) - 1:
                line.append(" " * self._columns[number][0].gap)
        return line.strip(width, style)
