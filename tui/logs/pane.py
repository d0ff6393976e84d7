"""The log pane: replicas, lines and state of one job's logs, and the keys that act on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import var

from ...logs.source.replica_log import ReplicaLog
from ..format import count
from .export import ExportDone, ExportTold
from .output import LogOutput
from .reading import LogGrew, LogReading
from .replica_bar import ReplicaBar
from .replica_picker import ALL, ReplicaPicker
from .rows import TIME_MODES
from .search import LogSearch
from .search_row import Mode
from .status import LogStatus, PillPressed, StatusRow, state_text, status_of
from .view import LogView

LOG_BINDINGS: list[BindingType] = [
    Binding("f,G,end", "follow", "Follow", id="logs.follow", key_display="f G", show=False),
    Binding("g,home", "start", "First line", id="logs.start", key_display="g", show=False),
    Binding("j,down", "scroll(1)", "Down", id="logs.down", key_display="j", show=False),
    Binding("k,up", "scroll(-1)", "Up, and pause", id="logs.up", key_display="k", show=False),
    Binding("ctrl+d", "page(0.5)", "Half a page down", id="logs.half_down", show=False),
    Binding("ctrl+u", "page(-0.5)", "Half a page up", id="logs.half_up", show=False),
    Binding("pagedown", "page(1)", "A page down", id="logs.page_down", show=False),
    Binding("pageup", "page(-1)", "A page up", id="logs.page_up", show=False),
    Binding("right", "side(1)", "Right", id="logs.right", show=False),
    Binding("left", "side(-1)", "Left", id="logs.left", show=False),
    Binding("w", "wrap", "Wrap long lines", id="logs.wrap", show=False),
    Binding("t", "times", "Times: off, clock, milliseconds, since the start", id="logs.times", show=False),
    Binding("o", "stream", "stdout, stderr, combined", id="logs.stream", show=False),
    Binding("less_than_sign", "neighbour(-1)", "Previous replica", id="logs.previous", key_display="<", show=False),
    Binding("greater_than_sign", "neighbour(1)", "Next replica", id="logs.next", key_display=">", show=False),
    Binding("a", "merged", "All replicas merged", id="logs.merged", show=False),
    Binding("number_sign", "choose", "Choose a replica", id="logs.choose", key_display="#", show=False),
    Binding("v", "select", "Select lines", id="logs.select", show=False),
    Binding("y", "copy", "Copy the selected lines, or this one", id="logs.copy", show=False),
    Binding("S", "save", "Save to a file", id="logs.save", show=False),
    Binding("ctrl+g", "ask('jump')", "Go to a line or a time", id="logs.jump", show=False),
    Binding("T", "since", "Only the last 1m, 10m, 1h, or all", id="logs.since", show=False),
    Binding("m", "plain", "Plain view in a pager", id="logs.plain", show=False),
    Binding("slash", "ask('search')", "Search", id="logs.search", key_display="/", show=False),
    Binding("n", "match(1)", "Next match", id="logs.match", show=False),
    Binding("N", "match(-1)", "Previous match", id="logs.match_back", show=False),
    Binding(
        "ampersand",
        "ask('filter')",
        "Keep matching lines; !text drops them",
        id="logs.filter",
        key_display="&",
        show=False,
    ),
    Binding("e", "error(1)", "Next error", id="logs.error", show=False),
    Binding("E", "error(-1)", "Previous error", id="logs.error_back", show=False),
    Binding("escape", "leave", "Leave the selection, then the search", id="logs.leave", show=False),
    *(
        Binding(str(number), f"replica({number})", f"Replica {number}", id=f"logs.replica_{number}", show=False)
        for number in range(10)
    ),
]


# From this width on the replicas have a row of their own, and lines their time.
_WIDE = 100
_TIMES_FROM = 70


class LogPane(Vertical):
    """Shows the logs of a job's replicas, merged or one of them, as they come.

    A thread of its own reads the files; it is ended when other logs are shown or the pane goes away.
    """

    DEFAULT_CSS = "LogPane { width: 1fr; height: 1fr; }"
    BINDING_GROUP_TITLE = "Logs"
    BINDINGS = LOG_BINDINGS

    compact: var[bool] = var(False)
    """Leave out the status row and the replicas' row, for a layout that says the state in its title."""

    class StatusChanged(Message):
        """The pane follows, stands still, has more lines, or shows another replica or stream."""

        def __init__(self, status: LogStatus) -> None:
            super().__init__()
            self.status = status

        def can_replace(self, message: Message) -> bool:
            """Only the last of several that wait matters."""
            return isinstance(message, LogPane.StatusChanged)

    class Said(Message):
        """Something to tell the person, such as that nothing was found."""

        def __init__(self, text: str, *, failed: bool = False) -> None:
            super().__init__()
            self.text = text
            self.failed = failed

    class Copied(Message):
        """A text to be copied, and what it is, such as ``12 lines``."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.status = LogStatus()
        """What the pane shows and does now."""
        self.job_name = ""
        """The job's name, for the name of a file that its log is saved to."""
        self._bar = ReplicaBar()
        self._view = LogView()
        self._row = StatusRow()
        self.reading = LogReading(self)
        self._search = LogSearch(self._view, self.reading)
        self._output = LogOutput(self, self._view, self.reading, self._search, self.say)
        self._failed: frozenset[int] = frozenset()
        self._times_chosen = False
        self._reason = ""

    def compose(self) -> ComposeResult:
        """Yield the replicas, the lines and the state."""
        yield self._bar
        yield self._view
        yield self._row
        yield self._search

    def on_mount(self) -> None:
        """Begin to read what `show` was told before."""
        self._view.start_time = self.reading.start_time
        self._arrange()
        self._open()

    async def on_unmount(self) -> None:
        """End the reading thread, and what is being saved."""
        self.reading.close()
        await self._output.leave()

    def on_resize(self, _event: events.Resize) -> None:
        """Take the layout of the new width."""
        self._arrange()

    # What is shown

    def show(self, logs: Sequence[ReplicaLog], *, is_final: Callable[[], bool] | None = None) -> None:
        """Show the logs of a job's replicas from their end; they are numbered in this order.

        Args:
            logs: the replicas.
            is_final: tells whether the job has ended; it is called in the reading thread.
        """
        self.reading.choose(logs, is_final)
        self._failed = frozenset()
        self._search.clear()
        self._reason = ""
        self._open()

    def clear(self, reason: str = "") -> None:
        """Show no log, and why."""
        self.show(())
        self._reason = reason
        self._open()

    def check_final(self) -> None:
        """Look at once whether the job has ended."""
        self.reading.look()

    def set_failed(self, replicas: frozenset[int]) -> None:
        """Mark the replicas that failed, by their places."""
        self._failed = replicas
        self._bar.failed = replicas

    def select_replica(self, replica: int | None) -> None:
        """Show one replica by its place, or all of them (None)."""
        reading = self.reading
        count = len(reading.logs)
        if count > 1 and replica != reading.replica and (replica is None or 0 <= replica < count):
            with self._search.travel.kept_places():
                reading.replica = replica
                self._open()

    def set_error_patterns(self, patterns: Sequence[str]) -> None:
        """Take regular expressions that are errors besides those that are known."""
        self._search.set_error_patterns(patterns)

    def show_cause(self) -> None:
        """Go to the error that the log ended of, once it has ended and is read; nothing happens if there is none.

        Any key that moves the view before cancels it.
        """
        self._search.travel.go_to_cause()

    def say(self, text: str, *, failed: bool = False) -> None:
        """Let the screen tell a person something."""
        self.post_message(self.Said(text, failed=failed))

    def focus_log(self) -> None:
        """Give the lines the focus."""
        self.screen.set_focus(self._view)

    def state_text(self) -> Text:
        """Return the state in its colour, such as ``Following``."""
        return state_text(self.status)

    def watch_compact(self) -> None:
        """Take the layout with or without rows of state."""
        if self.is_mounted:
            self._arrange()

    def _open(self) -> None:
        """Read and show what is chosen, in place of what was shown."""
        self._output.stop_copying()
        self.reading.close()
        if not self.is_mounted:
            return
        self.reading.open()
        self._view.on_paint = self.reading.seen
        self._view.placeholder = self._reason
        self._show_log()
        self._arrange()
        self.refresh_bindings()

    def _show_log(self) -> None:
        self._view.set_log(self.reading.log, self.reading.numbers)
        self._search.attach(self.reading.log)

    def _arrange(self) -> None:
        """Show and hide rows and times by the pane's width."""
        width = self.size.width
        self._bar.display = not self.compact and len(self.reading.logs) > 1 and width >= _WIDE
        self._row.display = not self.compact
        if not self._times_chosen:
            self._view.times = "clock" if width >= _TIMES_FROM and not self.compact else "off"
        self._refresh_status()

    def _refresh_status(self) -> None:
        status = status_of(self.reading, self._view, self._reason)
        bar, reading = self._bar, self.reading
        bar.numbers, bar.chosen, bar.failed = reading.all_numbers, reading.replica, self._failed
        bar.stream, bar.wrap, bar.times = reading.stream, self._view.wrap, self._view.times
        self._row.options_shown = not bar.display
        self._row.status = status
        if status != self.status:
            if (status.state == "selecting") != (self.status.state == "selecting"):
                self.refresh_bindings()
            self.status = status
            self.post_message(self.StatusChanged(status))

    def on_log_grew(self, message: LogGrew) -> None:
        """Take note of what the reading thread found."""
        reading = self.reading
        if reading.is_read(message.log) and reading.is_behind:
            self._open()
        elif reading.is_read(message.log):
            empty = reading.since and message.log.bounds().complete
            self._view.placeholder = reading.failure or (f"no line in the last {reading.since}" if empty else "")
            self._view.log_changed()
            self._search.grew()

    def on_log_view_changed(self, message: LogView.Changed) -> None:
        """Say what is shown now."""
        message.stop()
        self._refresh_status()

    def on_replica_bar_chosen(self, message: ReplicaBar.Chosen) -> None:
        """Show the replica that was clicked."""
        message.stop()
        self.select_replica(message.replica)

    def on_pill_pressed(self, message: PillPressed) -> None:
        """Follow again."""
        message.stop()
        self._view.follow()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim keys that can do nothing for these logs."""
        count = len(self.reading.logs)
        if action == "stream":
            return True if self.reading.has_streams else None
        if action in ("neighbour", "choose", "merged"):
            return True if count > 1 else None
        if action == "match":
            # Without a search the key is the screen's.
            return self._search.is_searching
        if action == "leave":
            return self._view.selection is not None or self._output.saving or bool(self._search.display)
        if action in ("ask", "error", "select", "copy", "save", "since", "plain"):
            return True if self.reading.log is not None else None
        if action == "replica":
            return True if count > 1 and parameters[0] in self.reading.all_numbers else None
        return True

    def action_follow(self) -> None:
        """Follow the log."""
        self._view.follow()

    def action_start(self) -> None:
        """Go to the first line."""
        self._view.go_to_start()

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self._view.scroll_rows(rows)

    def action_page(self, pages: float) -> None:
        """Scroll by pages."""
        self._view.scroll_pages(pages)

    def action_side(self, steps: int) -> None:
        """Scroll sideways."""
        self._view.scroll_side(steps)

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self._view.wrap = not self._view.wrap

    def action_times(self) -> None:
        """Show no time, the time of day, that with milliseconds, or the time since the start."""
        self._times_chosen = True
        self._view.times = TIME_MODES[(TIME_MODES.index(self._view.times) + 1) % len(TIME_MODES)]

    def action_stream(self) -> None:
        """Show both streams, stdout or stderr."""
        with self._search.travel.kept_places():
            self.reading.next_stream()
            self._open()

    def action_since(self) -> None:
        """Show what came in the last minute, ten minutes, hour, or all of it."""
        self._search.travel.forget()
        self.reading.next_since()
        self._open()

    def action_neighbour(self, step: int) -> None:
        """Show the replica before or after; from all merged the last or the first one."""
        count, replica = len(self.reading.logs), self.reading.replica
        start = (-1 if step > 0 else count) if replica is None else replica
        self.select_replica((start + step) % count)

    def action_merged(self) -> None:
        """Show all replicas."""
        self.select_replica(None)

    def action_replica(self, number: int) -> None:
        """Show the replica with a number."""
        self.select_replica(self.reading.all_numbers.index(number))

    def action_choose(self) -> None:
        """Choose a replica from a list."""

        def take(number: int | None) -> None:
            if number is not None:
                self.select_replica(None if number == ALL else number)

        self.app.push_screen(ReplicaPicker(self.reading.logs, self.reading.replica, self._failed), take)

    def action_leave(self) -> None:
        """Leave what is entered, one level: saving, the selection, then search and filters."""
        if self._output.saving:
            self._output.stop_saving()
        elif self._view.selection is not None:
            self._view.unselect()
        else:
            self._search.leave()

    # Search, filters, errors, places

    def action_ask(self, mode: Mode) -> None:
        """Type what to search for, which lines to keep or drop, or where to go."""
        self._search.ask(mode)

    def action_match(self, step: int) -> None:
        """Go to the next or the previous line that matches."""
        self._search.step(forward=step > 0)

    def action_error(self, step: int) -> None:
        """Go to the next or the previous error."""
        self._search.step(forward=step > 0, errors=True)

    def on_log_search_filtered(self, message: LogSearch.Filtered) -> None:
        """Show only what the filters let through."""
        message.stop()
        self.reading.filter(message.rules)
        self._show_log()

    def on_log_search_missed(self, message: LogSearch.Missed) -> None:
        """Say that there is none."""
        message.stop()
        self.say(message.words)

    # Out of the pane

    def action_select(self) -> None:
        """Begin to select lines, where the search stopped or at the end of the screen; again: select none."""
        self._output.select()

    def action_copy(self) -> None:
        """Copy the selected lines, else the line that the search stopped at, else those on screen."""
        self._output.copy()

    def action_save(self) -> None:
        """Ask where to save the log, and save it."""
        self._output.ask_to_save(self.job_name)

    def action_plain(self) -> None:
        """Leave the screen for a pager with the log as plain text."""
        self._output.show_plain()

    def on_export_told(self, message: ExportTold) -> None:
        """Say how far it is."""
        self._output.tell(message)

    def on_export_done(self, message: ExportDone) -> None:
        """Say what came of it."""
        if (copied := self._output.finish(message)) is not None:
            self.post_message(self.Copied(copied.text, count(copied.lines, "line")))
