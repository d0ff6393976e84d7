"""The log pane: replicas, lines and state of one job's logs, and the keys that act on them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from rich.text import Text
from textual import events
from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import var

from ...backends.logs.filtering import FilteredLog
from ...backends.logs.follow import LogFollower
from ...backends.logs.merge import MergedLog
from ...backends.logs.replica_log import ReplicaLog
from ...backends.logs.replica_reader import StreamName
from ..theme import palette_of
from .log_dump import dump_lines, show_plain
from .log_finder import LineFound, LogFinder, PatternError, SearchTold
from .log_keys import LOG_BINDINGS
from .log_rows import TIME_MODES, Marks
from .log_status import LogState, LogStatus, PillPressed, StatusRow, state_text
from .log_view import LogView
from .replica_bar import ReplicaBar
from .replica_picker import ALL, ReplicaPicker
from .search_row import SearchRow

_STREAMS: tuple[StreamName, ...] = ("combined", "stdout", "stderr")
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

    class Grew(Message, bubble=False):
        """The reading thread has found something."""

        def __init__(self, log: MergedLog) -> None:
            super().__init__()
            self.log = log

    class Said(Message):
        """Something to tell the person, such as that nothing was found."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.status = LogStatus()
        """What the pane shows and does now."""
        self._bar = ReplicaBar()
        self._view = LogView()
        self._row = StatusRow()
        self._logs: tuple[ReplicaLog, ...] = ()
        self._failed: frozenset[int] = frozenset()
        self._is_final: Callable[[], bool] | None = None
        self._follower: LogFollower | None = None
        self._log: MergedLog | None = None
        self._finder = LogFinder(self)
        self._search_row = SearchRow()
        self._replica: int | None = None
        self._stream: StreamName = "combined"
        self._times_chosen = False
        self._reason = ""

    def compose(self) -> ComposeResult:
        """Yield the replicas, the lines and the state."""
        yield self._bar
        yield self._view
        yield self._row
        yield self._search_row

    def on_mount(self) -> None:
        """Begin to read what `show` was told before."""
        self._arrange()
        self._open()

    def on_unmount(self) -> None:
        """End the reading thread."""
        self._close()

    def on_resize(self, _event: events.Resize) -> None:
        """Take the layout of the new width."""
        self._arrange()

    def show(self, logs: Sequence[ReplicaLog], *, is_final: Callable[[], bool] | None = None) -> None:
        """Show the logs of a job's replicas from their end; they are numbered in this order.

        Args:
            logs: the replicas.
            is_final: tells whether the job has ended; it is called in the reading thread.
        """
        self._logs = tuple(logs)
        self._is_final = is_final
        self._failed = frozenset()
        self._finder.clear()
        self._search_row.close()
        self._reason = ""
        self._replica = 0 if len(self._logs) == 1 else None
        self._stream = "combined"
        self._open()

    def clear(self, reason: str = "") -> None:
        """Show no log, and why."""
        self._logs = ()
        self._is_final = None
        self._reason = reason
        self._open()

    def check_final(self) -> None:
        """Look at once whether the job has ended."""
        if self._follower is not None:
            self._follower.look()

    def set_failed(self, replicas: frozenset[int]) -> None:
        """Mark the replicas that failed, by their numbers."""
        self._failed = replicas
        self._bar.failed = replicas

    def select_replica(self, replica: int | None) -> None:
        """Show one replica by its number, or all of them (None)."""
        if len(self._logs) > 1 and replica != self._replica and (replica is None or 0 <= replica < len(self._logs)):
            self._replica = replica
            self._open()

    def focus_log(self) -> None:
        """Give the lines the focus."""
        self._view.focus()

    def state_text(self) -> Text:
        """Return the state in its colour, such as ``Following``."""
        return state_text(self.status, palette_of(self.app))

    def watch_compact(self) -> None:
        """Take the layout with or without rows of state."""
        if self.is_mounted:
            self._arrange()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim keys that can do nothing for these logs."""
        if action == "stream":
            return True if any(log.stdout or log.stderr for log in self._logs) else None
        if action in ("neighbour", "choose", "merged"):
            return True if len(self._logs) > 1 else None
        if action == "match":
            # Without a search the key is the screen's.
            return self._finder.search is not None
        if action == "unsearch":
            return self._finder.is_active or self._search_row.display
        if action in ("search", "filter", "error"):
            return self._follower is not None
        if action == "replica":
            return True if len(self._logs) > 1 and parameters[0] in range(len(self._logs)) else None
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
        """Show no time, the time of day, or that with milliseconds."""
        self._times_chosen = True
        self._view.times = TIME_MODES[(TIME_MODES.index(self._view.times) + 1) % len(TIME_MODES)]

    def action_stream(self) -> None:
        """Show both streams, stdout or stderr."""
        self._stream = _STREAMS[(_STREAMS.index(self._stream) + 1) % len(_STREAMS)]
        self._open()

    def action_neighbour(self, step: int) -> None:
        """Show the replica before or after; from all merged the last or the first one."""
        count = len(self._logs)
        start = (-1 if step > 0 else count) if self._replica is None else self._replica
        self.select_replica((start + step) % count)

    def action_merged(self) -> None:
        """Show all replicas."""
        self.select_replica(None)

    def action_replica(self, number: int) -> None:
        """Show one replica."""
        self.select_replica(number)

    def action_choose(self) -> None:
        """Choose a replica from a list."""

        def take(number: int | None) -> None:
            if number is not None:
                self.select_replica(None if number == ALL else number)

        self.app.push_screen(ReplicaPicker(self._logs, self._replica, self._failed), take)

    def action_plain(self) -> None:
        """Leave the screen for the bare terminal, with the last lines as plain text."""
        if self._follower is None:
            return
        lines = dump_lines(self._follower.log, self._numbers(), times=self._view.times != "off")
        try:
            with self.app.suspend():
                show_plain(lines, sys.stdout, sys.stdin)
        except SuspendNotSupported:
            self.notify("This terminal cannot be left for a plain view.", severity="warning", markup=False)

    def action_search(self) -> None:
        """Type what to search for."""
        self._search_row.ask("search")

    def action_filter(self) -> None:
        """Type which lines to keep or to drop."""
        self._search_row.ask("filter")

    def action_match(self, step: int) -> None:
        """Go to the next or the previous line that matches."""
        self._find(forward=step > 0)

    def action_error(self, step: int) -> None:
        """Go to the next or the previous error."""
        self._find(forward=step > 0, errors=True)

    def action_unsearch(self) -> None:
        """Search for nothing, show all lines."""
        filtered = bool(self._finder.rules)
        self._finder.clear()
        self._search_row.close()
        self._view.focus()
        if filtered:
            self._open()
        else:
            self._view.mark(None)
        self.refresh_bindings()

    def on_search_row_submitted(self, message: SearchRow.Submitted) -> None:
        """Search or filter by what was typed."""
        message.stop()
        if not message.text:
            self.action_unsearch()
            return
        try:
            if message.mode == "filter":
                self._finder.add_rule(message.text, regex=message.regex)
            else:
                self._finder.set_pattern(message.text, regex=message.regex)
        except PatternError as error:
            self._search_row.say(Text(str(error), palette_of(self.app).removed))
            return
        self._view.focus()
        if message.mode == "filter":
            self._filter()
        else:
            self._mark()
            self._find(forward=not self._view.following, from_here=True)
        self._say_search()
        self.refresh_bindings()

    def on_search_row_cleared(self, message: SearchRow.Cleared) -> None:
        """Search for nothing any more."""
        message.stop()
        self.action_unsearch()

    def on_search_told(self, message: SearchTold) -> None:
        """Say how far the search is."""
        if message.search is self._finder.search:
            message.search.seen()
            self._say_search()

    def on_line_found(self, message: LineFound) -> None:
        """Show the line that was found."""
        if message.line is None:
            self.post_message(self.Said(f"no {message.what} {'below' if message.forward else 'above'}"))
            return
        self._finder.current = message.line
        self._mark()
        self._view.reveal(message.line)

    def _find(self, *, forward: bool, errors: bool = False, from_here: bool = False) -> None:
        """Look for a match or an error from the line that the last one was at, or from what is on screen."""
        view, current = self._view, self._finder.current
        edge = view.first_line if forward else view.last_line
        if current is not None and not from_here:
            start = current + (1 if forward else -1)
        elif edge is not None:
            start = edge.number
        else:
            return
        self._finder.find(start, forward=forward, errors=errors)

    def _mark(self) -> None:
        finder = self._finder
        self._view.mark(Marks(finder.spans, finder.current) if finder.search or finder.current is not None else None)

    def _say_search(self) -> None:
        self._search_row.display = True
        self._search_row.say(self._finder.words(palette_of(self.app)))

    def _filter(self) -> None:
        """Show only what the filters let through."""
        follower, log = self._follower, self._log
        if follower is None or log is None:
            return
        shown = FilteredLog(log, self._finder.rules) if self._finder.rules else log
        follower.turn_to(shown)
        self._view.set_log(shown, self._numbers())
        self._finder.attach(shown)
        self._mark()

    def on_log_pane_grew(self, message: Grew) -> None:
        """Take note of what the reading thread found."""
        if self._follower is not None and message.log is self._log:
            self._view.placeholder = self._follower.failure
            self._view.log_changed()
            self._finder.grew()

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

    def _numbers(self) -> tuple[int, ...]:
        return tuple(range(len(self._logs))) if self._replica is None else (self._replica,)

    def _open(self) -> None:
        """Read and show the chosen replicas and stream, in place of what was shown."""
        self._close()
        if not self.is_mounted:
            return
        numbers = self._numbers()
        follower = log = None
        if self._logs:
            log = MergedLog([self._logs[number] for number in numbers], self._stream)
            follower = LogFollower(log, partial(self._tell, log), self._is_final)
        self._follower, self._log = follower, log
        self._view.on_paint = follower.seen if follower else None
        self._view.placeholder = self._reason
        self._view.set_log(follower.log if follower else None, numbers)
        if follower is not None:
            follower.start()
        if self._finder.rules:
            self._filter()
        else:
            self._finder.attach(log)
            self._mark()
        self._arrange()
        self.refresh_bindings()

    def _tell(self, log: MergedLog) -> None:
        """Called in the reading thread, which never waits for the event loop."""
        # The loop may be gone already when the app ends.
        with suppress(RuntimeError):
            self.post_message(self.Grew(log))

    def _close(self) -> None:
        self._finder.close()
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def _arrange(self) -> None:
        """Show and hide rows and times by the pane's width."""
        width = self.size.width
        self._bar.display = not self.compact and len(self._logs) > 1 and width >= _WIDE
        self._row.display = not self.compact
        if not self._times_chosen:
            self._view.times = "clock" if width >= _TIMES_FROM and not self.compact else "off"
        self._refresh_status()

    def _refresh_status(self) -> None:
        status = self._make_status()
        bar = self._bar
        bar.replica_count, bar.chosen, bar.failed = len(self._logs), self._replica, self._failed
        bar.stream, bar.wrap, bar.times = self._stream, self._view.wrap, self._view.times != "off"
        self._row.options_shown = not bar.display
        self._row.status = status
        if status != self.status:
            self.status = status
            self.post_message(self.StatusChanged(status))

    def _make_status(self) -> LogStatus:
        if self._follower is None:
            return LogStatus(reason=self._reason)
        view = self._view
        bounds = view.bounds
        last = view.last_line
        return LogStatus(
            state=self._state(bounds.end - bounds.first),
            reason=self._follower.failure,
            line_count=bounds.end - bounds.first,
            exact=bounds.complete,
            new_lines=view.new_lines,
            replica=self._replica,
            replica_count=len(self._logs),
            shown=self._shown_words(),
            stream=self._stream,
            wrap=view.wrap,
            line=last.number - bounds.first + 1 if last is not None and bounds.complete else None,
            at=last.time if last is not None else None,
            at_end=last is None or last.number == bounds.end - 1,
        )

    def _state(self, line_count: int) -> LogState:
        follower = self._follower
        if follower is None or follower.failure:
            return "none"
        if follower.ended:
            return "ended"
        if not line_count:
            return "waiting"
        return "following" if self._view.following else "paused"

    def _shown_words(self) -> str:
        count = len(self._logs)
        if count == 1:
            return "1 replica"
        return f"{count} merged" if self._replica is None else f"replica {self._replica} of {count}"
