"""The log pane: replicas, lines and state of one job's logs, and the keys that act on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import var

from ...logs.pattern.pattern import PatternError
from ...logs.source.replica_log import ReplicaLog
from ...logs.text.sanitize import plain
from ..dashboard import OnDashboard
from ..format import count
from ..ui.bars import key_of
from ..ui.palette import Text
from .export import ExportError, copied_text, run_steps
from .replica_bar import ReplicaBar
from .replica_picker import ALL, ReplicaPicker
from .rows import TIME_MODES
from .save import save
from .search import LogSearch, Mode
from .session import AnyLog, LogGrew, LogSession
from .status import LogStatus, StatusRow, state_text, status_of
from .text import LineForm
from .view import LogView

if TYPE_CHECKING:
    from .save_dialog import SaveRequest

_log = logging.getLogger(__name__)

LOG_BINDINGS: list[BindingType] = [
    Binding("f,G,end", "follow", "Follow", id="logs.follow"),
    Binding("g,home", "start", "First line", id="logs.start"),
    Binding("j,down", "scroll(1)", "Down", id="logs.down"),
    Binding("k,up", "scroll(-1)", "Up, and pause", id="logs.up"),
    Binding("ctrl+d", "page(0.5)", "Half a page down", id="logs.half_down"),
    Binding("ctrl+u", "page(-0.5)", "Half a page up", id="logs.half_up"),
    Binding("pagedown", "page(1)", "A page down", id="logs.page_down"),
    Binding("pageup", "page(-1)", "A page up", id="logs.page_up"),
    Binding("right", "side(1)", "Right", id="logs.right"),
    Binding("left", "side(-1)", "Left", id="logs.left"),
    Binding("w", "wrap", "Wrap long lines", id="logs.wrap"),
    Binding("t", "times", "Times: off, clock, milliseconds, since the start", id="logs.times"),
    Binding("o", "stream", "stdout, stderr, combined", id="logs.stream"),
    Binding("less_than_sign", "neighbour(-1)", "Previous replica", id="logs.previous"),
    Binding("greater_than_sign", "neighbour(1)", "Next replica", id="logs.next"),
    Binding("a", "merged", "All replicas merged", id="logs.merged"),
    Binding("number_sign", "choose", "Choose a replica", id="logs.choose"),
    Binding("v", "select", "Select lines", id="logs.select"),
    Binding("y", "copy", "Copy the selected lines, or this one", id="logs.copy"),
    Binding("S", "save", "Save to a file", id="logs.save"),
    Binding("ctrl+g", "ask('jump')", "Go to a line or a time", id="logs.jump"),
    Binding("T", "since", "Only the last 1m, 10m, 1h, or all", id="logs.since"),
    Binding("m", "plain", "Plain view in a pager", id="logs.plain"),
    Binding("slash", "ask('search')", "Search", id="logs.search"),
    Binding("n", "match(1)", "Next match", id="logs.match"),
    Binding("N", "match(-1)", "Previous match", id="logs.match_back"),
    Binding("ampersand", "ask('filter')", "Keep matching lines; !text drops them", id="logs.filter"),
    Binding("e", "error(1)", "Next error", id="logs.error"),
    Binding("E", "error(-1)", "Previous error", id="logs.error_back"),
    Binding("escape", "leave", "Leave the selection, then the search", id="logs.leave"),
    *(
        Binding(str(number), f"replica({number})", f"Replica {number}", id=f"logs.replica_{number}")
        for number in range(10)
    ),
]


# From this width on the replicas have a row of their own, and lines their time.
_WIDE = 100
_TIMES_FROM = 70


class LogPane(OnDashboard, Vertical):
    """Shows the logs of a job's replicas, merged or one of them, as they come.

    A thread of its own reads the files; it is ended when other logs are shown or the pane goes away.
    """

    DEFAULT_CSS = "LogPane { width: 1fr; height: 1fr; }"
    BINDING_GROUP_TITLE = "Logs"
    BINDINGS = LOG_BINDINGS

    compact: var[bool] = var(False)
    """Leave out the status row and the replicas' row, for a layout that says the state in its title."""

    @dataclass
    class StatusChanged(Message):
        """The pane follows, stands still, has more lines, or shows another replica or stream."""

        status: LogStatus

        def can_replace(self, message: Message) -> bool:
            """Only the last of several that wait matters."""
            return isinstance(message, LogPane.StatusChanged)

    @dataclass
    class Said(Message):
        """Something to tell the person, such as that nothing was found."""

        text: str
        failed: bool = False

    @dataclass
    class Copied(Message):
        """A text to be copied, and what it is, such as ``12 lines``."""

        text: str
        what: str

    def __init__(self) -> None:
        super().__init__(id="log-pane")
        self.status = LogStatus()
        """What the pane shows and does now."""
        self.job_name = ""
        """The job's name, for the name of a file that its log is saved to."""
        self._bar = ReplicaBar()
        self._view = LogView()
        self._row = StatusRow()
        self.session = LogSession(self)
        self._search = LogSearch(self._view, self.session, self.say, self._show_log)
        self._is_saving = False
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
        self._view.start_time = self.session.start_time
        self._arrange()
        self._open()

    def on_unmount(self) -> None:
        """End the reading thread."""
        self.session.close()

    def on_resize(self) -> None:
        """Take the layout of the new width."""
        self._arrange()

    # What is shown

    def show(self, logs: Sequence[ReplicaLog], *, is_final: Callable[[], bool] | None = None) -> None:
        """Show the logs of a job's replicas from their end; they are numbered in this order.

        Args:
            logs: the replicas.
            is_final: tells whether the job has ended; it is called in the reading thread.
        """
        self.session.choose(logs, is_final)
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
        self.session.look()

    def set_failed(self, replicas: frozenset[int]) -> None:
        """Mark the replicas that failed, by their places."""
        self._failed = replicas
        self._refresh_status()

    def select_replica(self, replica: int | None) -> None:
        """Show one replica by its place, or all of them (None)."""
        session = self.session
        count = len(session.logs)
        if count > 1 and replica != session.replica and (replica is None or 0 <= replica < count):
            with self._search.kept_places():
                session.replica = replica
                self._open()

    def set_error_patterns(self, patterns: Sequence[str]) -> None:
        """Take regular expressions that are errors besides those that are known."""
        self._search.error_patterns = patterns

    def show_cause(self) -> None:
        """Go to the error that the log ended of, once it has ended and is read; nothing happens if there is none.

        Any key that moves the view before cancels it.
        """
        self._search.go_to_cause()

    def say(self, text: str, *, failed: bool = False) -> None:
        """Let the screen tell a person something."""
        self.post_message(self.Said(text, failed))

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
        self.workers.cancel_group(self, "copy")
        self.session.close()
        if not self.is_mounted:
            return
        self.session.open()
        self._view.on_paint = self.session.seen
        self._view.placeholder = self._reason
        self._show_log()
        self._arrange()
        self.refresh_bindings()

    def _show_log(self) -> None:
        self._view.set_log(self.session.log, self.session.numbers)
        self._search.attach()

    def _arrange(self) -> None:
        """Show and hide rows and times by the pane's width."""
        width = self.size.width
        self._bar.display = not self.compact and len(self.session.logs) > 1 and width >= _WIDE
        self._row.display = not self.compact
        if not self._times_chosen:
            self._view.times = "clock" if width >= _TIMES_FROM and not self.compact else "off"
        self._refresh_status()

    def _refresh_status(self) -> None:
        status = status_of(self.session, self._view, self._reason, self._failed)
        self._row.options_shown = not self._bar.display
        self._row.status = self._bar.status = status
        if status != self.status:
            if (status.state == "selecting") != (self.status.state == "selecting"):
                self.refresh_bindings()
            self.status = status
            self.post_message(self.StatusChanged(status))

    def on_log_grew(self, message: LogGrew) -> None:
        """Take note of what the reading thread found."""
        session = self.session
        if session.is_read(message.log) and session.is_behind:
            self._open()
        elif session.is_read(message.log):
            empty = session.since and message.log.bounds().complete
            self._view.placeholder = session.failure or (f"no line in the last {session.since}" if empty else "")
            self._view.log_changed()
            self._search.grew()

    def on_log_view_changed(self) -> None:
        """Say what is shown now."""
        self._refresh_status()

    def on_replica_bar_chosen(self, message: ReplicaBar.Chosen) -> None:
        """Show the replica that was clicked."""
        self.select_replica(message.replica)

    def on_pill_pressed(self) -> None:
        """Follow again."""
        self._view.follow()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim keys that can do nothing for these logs."""
        count = len(self.session.logs)
        if action == "stream":
            return True if self.session.has_streams else None
        if action in ("neighbour", "choose", "merged"):
            return True if count > 1 else None
        if action == "match":
            # Without a search the key is the screen's.
            return self._search.is_searching
        if action == "leave":
            return self._view.selection is not None or self._is_saving or bool(self._search.display)
        if action in ("ask", "error", "select", "copy", "save", "since", "plain"):
            return True if self.session.log is not None else None
        if action == "replica":
            return True if count > 1 and parameters[0] in self.session.all_numbers else None
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
        with self._search.kept_places():
            self.session.next_stream()
            self._open()

    def action_since(self) -> None:
        """Show what came in the last minute, ten minutes, hour, or all of it."""
        self._search.forget_places()
        self.session.next_since()
        self._open()

    def action_neighbour(self, step: int) -> None:
        """Show the replica before or after; from all merged the last or the first one."""
        count, replica = len(self.session.logs), self.session.replica
        start = (-1 if step > 0 else count) if replica is None else replica
        self.select_replica((start + step) % count)

    def action_merged(self) -> None:
        """Show all replicas."""
        self.select_replica(None)

    def action_replica(self, number: int) -> None:
        """Show the replica with a number."""
        self.select_replica(self.session.all_numbers.index(number))

    @work(group="dialog")
    async def action_choose(self) -> None:
        """Choose a replica from a list."""
        session = self.session
        number = await self.app.push_screen_wait(ReplicaPicker(session.logs, session.replica, self._failed))
        if number is not None:
            self.select_replica(None if number == ALL else number)

    def action_leave(self) -> None:
        """Leave what is entered, one level: saving, the selection, then search and filters."""
        if self._is_saving:
            self.workers.cancel_group(self, "save")
        elif self._view.selection is not None:
            self._view.unselect()
        else:
            self._search.action_leave()

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

    # Out of the pane

    def action_select(self) -> None:
        """Begin to select lines, where the search stopped or at the end of the screen; again: select none."""
        last, current = self._view.last_line, self._search.current
        if self._view.selection is not None:
            self._view.unselect()
        elif last is not None:
            self._view.select(last.number if current is None else current)

    def action_copy(self) -> None:
        """Copy the selected lines, else the line that the search stopped at, else those on screen."""
        view, current, log = self._view, self._search.current, self.session.log
        if view.selection is not None:
            numbers = view.selection.numbers(view.bounds)
        elif current is not None:
            numbers = range(current, current + 1)
        else:
            first, last = view.first_line, view.last_line
            numbers = range(first.number, last.number + 1) if first is not None and last is not None else range(0)
        if log is not None and numbers:
            self._copy(log, numbers)
            view.unselect()

    @work(group="copy", exclusive=True)
    async def _copy(self, log: AnyLog, numbers: range) -> None:
        with self._failure_shown("Copying"):
            text = await run_steps(copied_text(log, numbers))
            self.post_message(self.Copied(text, count(len(numbers), "line")))

    @work(group="dialog")
    async def action_save(self) -> None:
        """Ask where to save the log, and save it."""
        from .save_dialog import SaveDialog

        session, bounds = self.session, self._view.bounds
        which = "merged" if session.replica is None else str(session.numbers[0])
        words = [session.words, count(bounds.end - bounds.first, "line")]
        words += [session.stream] if session.stream != "combined" else []
        words += [f"since {session.since}"] if session.since else []
        words += [self._search.rule_words] if session.rules else []
        path = f"{_file_name(self.job_name) or 'log'}-{which}.log"
        request = await self.app.push_screen_wait(SaveDialog(path, "   ".join(words)))
        if request is not None and session.log is not None:
            self._save(request)

    @work(group="save", exclusive=True)
    async def _save(self, request: SaveRequest) -> None:
        session = self.session
        if request.kind == "all":
            log, form = session.everything(), LineForm(tuple(range(len(session.logs))), "date")
        else:
            log, form = session.anew(), self._form() if request.kind == "shown" else None

        def report(share: float | None) -> None:
            progress = "" if share is None else f" {int(share * 100)} %"
            self.say(f"Saving{progress}   {key_of(self, 'logs.leave')} stops it")

        self._is_saving = True
        self.refresh_bindings()
        try:
            with self._failure_shown("Saving"):
                self.say(str(await run_steps(save(log, request.path, form, replace=request.replace), report)))
        except asyncio.CancelledError:
            self.say("Saving was stopped: the partial file was removed")
            raise
        finally:
            self._is_saving = False
            self.refresh_bindings()

    @contextmanager
    def _failure_shown(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ExportError, PatternError) as error:
            self.say(str(error), failed=True)
        except Exception as error:
            _log.exception("%s a log failed", what)
            self.say(f"{what} failed: {error}", failed=True)

    def action_plain(self) -> None:
        """Leave the screen for a pager with the log as plain text."""
        from .pager import MOST_PRINTED, pager_command, plain_lines, show_plain

        try:
            command = pager_command()
        except ValueError as error:
            self.say(f"PAGER is not a command: {error}", failed=True)
            return
        failure = ""
        lines = plain_lines(self.session.anew(), self._form(), *([] if command else [MOST_PRINTED]))
        try:
            with self.app.suspend():
                failure = show_plain(lines, command)
        except SuspendNotSupported:
            failure = "this terminal cannot be suspended for a plain view"
        if failure:
            self.say(failure, failed=True)

    def _form(self) -> LineForm:
        """Return how lines are shown."""
        times = self._view.times
        return LineForm(self.session.numbers, times, self.session.start_time() if times == "relative" else None)


def _file_name(name: str) -> str:
    """Return a job's name as part of a file's name."""
    return "".join(char if char.isalnum() or char in "-_.+=" else "_" for char in plain(name)).lstrip(".")
