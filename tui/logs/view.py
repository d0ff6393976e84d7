"""The lines of a log on screen: draws only what is visible, follows, pauses, scrolls.

A position is the number of a line, and a row of it where lines wrap. Numbers never change, so a paused view stands
still while lines are added after it, and before it as older ones are counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.reactive import var
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from ...logs.lines.merge import Bounds, LogLine
from ...logs.text.shown import shown_text
from ..ui.drawing import guard_render_line
from ..ui.frames import bytes_written, is_terminal_ready, repaint_interval
from ..ui.theme import glyphs_of, palette_of
from .rows import Marks, RowLayout, RowMaker, TimeMode
from .selection import LogSelection
from .session import AnyLog
from .viewport import Position, Viewport

_WHEEL = 3
_SIDE = 8
# When to look again whether the terminal has taken the last frame.
_TERMINAL_RETRY_S = 0.03
_HIDDEN_RETRY = 0.5
# Between two rows while the pointer is held beyond an edge.
_SCROLL_EVERY_S = 0.05


class LogView(Widget, can_focus=True):
    """Draws an `AnyLog`.

    It reads only the lines on screen, when it is told of a change: at once after a quiet time, else some times a
    second, and only when the terminal has taken the last frame.
    """

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"
    # Dragging selects lines, which stay selected when they scroll away; the screen's own selection does not know them.
    ALLOW_SELECT = False

    wrap: var[bool] = var(False)
    times: var[TimeMode] = var("off")
    following: var[bool] = var(True)

    class Changed(Message):
        """Other lines are shown, or there are more of them."""

        def can_replace(self, message: Message) -> bool:
            """Only the last of several that wait matters."""
            return isinstance(message, LogView.Changed)

    def __init__(self) -> None:
        super().__init__()
        self.placeholder = ""
        """Shown where there is no line."""
        self.on_paint: Callable[[], None] | None = None
        """Called before the lines are read for a repaint."""
        self.start_time: Callable[[], float | None] = lambda: None
        """Tells when the log started (seconds since the epoch), for times that count from there."""
        self.selection: LogSelection | None = None
        """The lines that are selected; motions move its cursor."""
        self.moves = 0
        """How many times a person has moved the view."""
        self._log: AnyLog | None = None
        self._marks: Marks | None = None
        self._numbers: tuple[int, ...] = (0,)
        self._offset = 0
        self._maker: RowMaker | None = None
        self.viewport: Viewport | None = None
        self._rows: list[Strip] = []
        self._row_lines: list[LogLine] = []
        self._paused_end = 0
        self._at_start = False
        # The line to show, once there is a size, and how many rows above it.
        self._goal: tuple[int, int] | None = None
        self.painted_at = 0.0
        """When the log was last read for a repaint (`time.monotonic`)."""
        # What the terminal had been sent by then (bytes).
        self._written_before = 0
        self._timer: Timer | None = None
        self.dragged_from: int | None = None
        """The line that a drag began at, None while nothing is dragged."""
        self._drag_timer: Timer | None = None

    def set_log(self, log: AnyLog | None, numbers: Sequence[int] = (0,)) -> None:
        """Show another log from its end.

        Args:
            log: the log, None for none.
            numbers: the number of each of its replicas.
        """
        self._log = log
        self._numbers = tuple(numbers) or (0,)
        self._offset = 0
        self._at_start = False
        self._goal = None
        self.viewport = None
        self._maker = None
        self.selection = None
        self.end_drag()
        self.following = True
        self._draw()

    def log_changed(self) -> None:
        """Say that the log has changed; it is read when the next repaint is due."""
        if self._timer is None:
            self._take_changes()

    @property
    def bounds(self) -> Bounds:
        """Which lines are known."""
        return self._log.bounds() if self._log is not None else Bounds(0, 0, True)

    @property
    def new_lines(self) -> int:
        """How many lines came since the view was paused."""
        return 0 if self.following else max(0, self.bounds.end - self._paused_end)

    @property
    def last_line(self) -> LogLine | None:
        """The last line on screen."""
        return self._row_lines[-1] if self._row_lines else None

    def follow(self) -> None:
        """Go to the end and stay there; while lines are selected, select up to there."""
        self.moves += 1
        if self.selection is not None:
            self._select_to(self.bounds.end)
            return
        self._at_start = False
        self.following = True
        self._draw()

    def pause(self) -> None:
        """Stand still."""
        if self.following:
            self._paused_end = self.bounds.end
            self.following = False

    def go_to_start(self) -> None:
        """Go to the first line."""
        self.moves += 1
        self.pause()
        if self.selection is not None:
            self.selection.move(-math.inf, self.bounds)
        # While older lines are counted, the first one is not known yet.
        self._at_start = True
        self._draw()

    def scroll_rows(self, rows: int) -> None:
        """Scroll down, or up by a negative number, which pauses; while lines are selected, move the cursor."""
        self.moves += 1
        if self.selection is not None:
            self.selection.move(rows, self.bounds)
            self._select_to(self.selection.cursor)
        else:
            self._scroll(rows)

    def _scroll(self, rows: int) -> None:
        viewport = self.viewport
        if viewport is None:
            return
        if rows < 0:
            self.pause()
        self._at_start = False
        viewport.move(rows)
        self._draw()

    def scroll_pages(self, pages: float) -> None:
        """Scroll by parts of the view's height."""
        self.scroll_rows(int(pages * max(1, self.size.height - 1)) or (1 if pages > 0 else -1))

    def scroll_side(self, steps: int) -> None:
        """Scroll long lines sideways, while they do not wrap."""
        offset = 0 if self.wrap else max(0, self._offset + steps * _SIDE)
        if offset != self._offset:
            self._offset = offset
            self._draw()

    def go_to(self, number: int, above: int = 0) -> None:
        """Show the line with this number below some rows, as far as there are lines to fill the screen, and pause."""
        if self._log is not None:
            self.pause()
            self._at_start = False
            self._goal = number, above
            self._draw()

    def reveal(self, number: int) -> None:
        """Show the line with this number among others, and pause; a line that is on screen stays where it is."""
        self.pause()
        if self.selection is not None:
            self.selection.go_to(number, self.bounds)
        if self.shows(number):
            self._draw()
        else:
            self.go_to(number, self.size.height // 3)
        self._show_match(number)

    def _show_match(self, number: int) -> None:
        """Scroll sideways where the first match of a line would not be on screen."""
        line = next((line for line in self._row_lines if line.number == number), None)
        if line is None or self._marks is None or self._maker is None or self.wrap:
            return
        spans, width = self._marks.spans(line), self._maker.layout.text_width
        if not spans:
            return
        text = shown_text(line.data)
        start, end = (cell_len(text[:place]) for place in spans[0])
        # No further than it takes: what stands before the match is wanted too. The last cell says that a line is cut.
        if start < self._offset:
            self.scroll_side(-math.ceil((self._offset - max(0, start - _SIDE)) / _SIDE))
        if end >= self._offset + width:
            self.scroll_side(math.ceil((end + _SIDE - width - self._offset) / _SIDE))

    def shows(self, number: int) -> bool:
        """Whether a line is on screen."""
        return any(line.number == number for line in self._row_lines)

    def select(self, number: int, to: int | None = None) -> None:
        """Begin to select at the line with this number, and pause."""
        self.moves += 1
        self.pause()
        self.selection = LogSelection(number, number)
        self._select_to(number if to is None else to)

    def unselect(self) -> None:
        """Select nothing."""
        self.end_drag()
        self.selection = None
        self._draw()

    def _select_to(self, number: float) -> None:
        if self.selection is None or self.viewport is None:
            return
        self.selection.go_to(number, self.bounds)
        self._at_start = False
        self.viewport.show(int(self.selection.cursor))
        self._draw()

    def mark(self, marks: Marks | None) -> None:
        """Light up what is searched for."""
        self._marks = marks
        self._maker = None
        self._draw()

    @property
    def first_line(self) -> LogLine | None:
        """The first line on screen."""
        return self._row_lines[0] if self._row_lines else None

    @guard_render_line
    def render_line(self, y: int) -> Strip:
        """Return a row that was drawn before."""
        if y < len(self._rows):
            return self._rows[y]
        return Strip.blank(self.size.width, self.rich_style)

    def on_resize(self) -> None:
        """Draw in the new size."""
        self._draw()

    def on_show(self) -> None:
        """Draw what came while the view was hidden."""
        self._draw()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to select by dragging; a click alone ends a selection."""
        if self.selection is not None:
            self.unselect()
        if event.button == 1 and event.y < len(self._row_lines):
            self.capture_mouse()
            self.dragged_from = self._row_lines[event.y].number

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select up to the line under the pointer; beyond an edge, scroll on."""
        self.drag_to(event.y)

    def on_mouse_up(self) -> None:
        """Keep what is selected."""
        self.release_mouse()
        self.end_drag()

    def end_drag(self) -> None:
        self.dragged_from = None
        if self._drag_timer is not None:
            self._drag_timer.stop()

    def drag_to(self, y: int) -> None:
        """Select up to a row; beyond an edge, scroll on until the pointer moves."""
        anchor, height = self.dragged_from, self.size.height
        if anchor is None:
            return
        if self._drag_timer is not None:
            self._drag_timer.stop()
        if self.selection is not None and not 0 <= y < height:
            self._scroll(-1 if y < 0 else 1)
        row = min(max(y, 0), height - 1, len(self._row_lines) - 1)
        if row < 0:
            return
        number = self._row_lines[row].number
        if self.selection is None:
            self.select(anchor, number)
        else:
            self._select_to(number)
        if not 0 <= y < height:
            self._drag_timer = self.set_timer(_SCROLL_EVERY_S, partial(self.drag_to, y))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up, and pause."""
        event.stop()
        self.moves += 1
        self._scroll(-_WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.moves += 1
        self._scroll(_WHEEL)

    def watch_wrap(self) -> None:
        """Draw again."""
        self._offset = 0
        self._draw()

    def watch_times(self) -> None:
        """Draw again."""
        self._draw()

    def notify_style_update(self) -> None:
        """Draw again in other colours."""
        super().notify_style_update()
        if self.is_mounted:
            self._maker = None
            self._draw()

    def _is_hidden(self) -> bool:
        if not self.is_mounted or not self.size:
            return True
        top = self.app.screen
        return top is not self.screen and not isinstance(top, ModalScreen)

    def _take_changes(self) -> None:
        self._timer = None
        sent = bytes_written(self.app) - self._written_before
        wait = self.painted_at + repaint_interval(sent) - time.monotonic()
        if wait <= 0 and not is_terminal_ready(self.app):
            wait = _TERMINAL_RETRY_S
        elif wait <= 0 and self._is_hidden():
            # Nothing is read for a screen that is covered.
            wait = _HIDDEN_RETRY
        if wait > 0:
            self._timer = self.set_timer(wait, self._take_changes)
            return
        self.painted_at, self._written_before = time.monotonic(), bytes_written(self.app)
        if self.on_paint is not None:
            self.on_paint()
        if self.following or self._at_start or len(self._row_lines) < self.size.height:
            self._draw()
        else:
            self.post_message(self.Changed())

    def _draw(self) -> None:
        """Read the lines on screen and repaint the rows that differ."""
        if not self.is_mounted or not self.size:
            return
        viewport = self._prepare()
        rows: list[Strip] = []
        self._row_lines = []
        if viewport is not None:
            if self.following:
                viewport.to_end()
            elif self._at_start:
                viewport.to_start()
            elif self._goal is not None:
                line, above = self._goal
                viewport.top = Position(line, 0)
                viewport.move(-above)
            self._goal = None
            selected = self.selection.numbers(self.bounds) if self.selection is not None else range(0)
            for line, strip in viewport.visible():
                rows.append(self._selected(strip) if line.number in selected else strip)
                self._row_lines.append(line)
        if not rows and self.placeholder and self._maker is not None:
            rows.append(self._maker.message(self.placeholder))
        self._repaint(rows)
        self.post_message(self.Changed())

    def _selected(self, strip: Strip) -> Strip:
        """Return a row as one of the selected ones."""
        colors = palette_of(self.app)
        style = Style.parse(colors.cursor)
        if colors.ansi:
            # Colours under reverse are patchy: the row is plain reverse there.
            return Strip([Segment(strip.text, self.rich_style + style)], strip.cell_length)
        return Strip([Segment(text, base + style if base else style) for text, base, _ in strip], strip.cell_length)

    def _prepare(self) -> Viewport | None:
        """Return the viewport for the size, the toggles and the theme as they are now."""
        width, height = self.size
        many = len(self._numbers) > 1
        layout = RowLayout(
            width=width,
            wrap=self.wrap,
            times=self.times,
            start=self.start_time() if self.times == "relative" else None,
            numbers=self._numbers,
            number_width=(3 if max(self._numbers) > 99 else 2) if many else 0,
            offset=self._offset,
        )
        if self._maker is None or self._maker.layout != layout:
            self._maker = RowMaker(layout, palette_of(self.app), glyphs_of(self.app), self.rich_style, self._marks)
            if self.viewport is not None:
                self.viewport.set_maker(self._maker.rows, self.wrap)
        if self._log is None:
            self.viewport = None
        elif self.viewport is None:
            self.viewport = Viewport(self._log, self._maker.rows, height, wrap=self.wrap)
        if self.viewport is not None:
            self.viewport.height = height
        return self.viewport

    def _repaint(self, rows: list[Strip]) -> None:
        height = self.size.height
        blank = self._maker.blank if self._maker is not None else Strip.blank(self.size.width, self.rich_style)
        rows += [blank] * (height - len(rows))
        old, self._rows = self._rows, rows
        changed = [y for y in range(height) if y >= len(old) or old[y] != rows[y]]
        if len(changed) * 2 > height:
            self.refresh()
        elif changed:
            width = self.size.width
            self.refresh(*(Region(0, y, width, 1) for y in changed))
