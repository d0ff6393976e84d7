"""What a log pane shows and does now, and the row that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ...logs.source.replica_log import StreamName
from ...logs.text.sanitize import plain
from ..format import count
from ..ui.bars import key_text
from ..ui.drawing import guard_render
from ..ui.palette import Text
from .rows import TimeMode, clock_text
from .session import LogSession
from .view import LogView

LogState = Literal["following", "paused", "selecting", "ended", "waiting", "none"]

# The word of each state, and its style.
_STATES: dict[LogState, tuple[str, str]] = {
    "following": ("Following", "bold $style-running"),
    "paused": ("Paused", "bold $style-pending"),
    "selecting": ("Selecting", "bold $style-accent"),
    "ended": ("Ended", "$style-faint"),
    "waiting": ("Waiting for the first line", "$style-faint"),
    "none": ("", "$style-faint"),
}

_SELECTING = (("logs.copy", "copy"), ("logs.leave", "leave"))


@dataclass(frozen=True)
class LogStatus:
    """The state of a log pane.

    Attributes:
        state: whether it follows the log, stands still, lines are selected, it shows all of a finished one, or has
            nothing yet.
        line_count: lines that are known.
        exact: whether older lines have all been counted.
        gone: lines at its start that were dropped.
        at_start: whether the first line that is known is on screen.
        selected: lines that are selected.
        since: how far back it goes, such as ``10m``; empty where it is all there.
        new_lines: lines that came since it was paused.
        replica: the place of the replica shown, None for all of them.
        shown: what is shown in words, such as ``16 merged`` or ``replica 3 of 16``.
        stream: which stream is shown.
        wrap: whether long lines wrap.
        line: the number of the last line on screen, from 1, None where it is not known.
        at: when that line came (seconds since the epoch), None where it is not known.
        at_end: whether the log's last line is on screen.
        reason: why there is no log, in words; empty where there is one.
        numbers: the number of each replica; replicas are chosen by their places.
        failed: the places of the replicas that failed.
        times: which time stands before each line.
    """

    state: LogState = "none"
    line_count: int = 0
    exact: bool = True
    gone: int = 0
    at_start: bool = False
    selected: int = 0
    since: str = ""
    new_lines: int = 0
    replica: int | None = None
    shown: str = ""
    stream: StreamName = "combined"
    wrap: bool = False
    line: int | None = None
    at: float | None = None
    at_end: bool = True
    reason: str = ""
    numbers: tuple[int, ...] = ()
    failed: frozenset[int] = frozenset()
    times: TimeMode = "off"


def state_text(status: LogStatus) -> Text:
    """Return the state as a word in its colour."""
    word, style = _STATES[status.state]
    return Text.assemble((word or plain(status.reason), style))


def count_words(status: LogStatus) -> str:
    """Return the number of lines; ``+`` says that older ones are still being counted."""
    return count(status.line_count, "line") if status.exact else f"{status.line_count:,}+ lines"


class PillPressed(Message):
    """The figure of new lines was clicked."""


class StatusRow(Widget):
    """``Following  48,112 lines          wrap off  combined``."""

    DEFAULT_CSS = "StatusRow { height: 1; width: 1fr; padding: 0 1; }"

    status: reactive[LogStatus] = reactive(LogStatus)
    options_shown: reactive[bool] = reactive(True)

    @guard_render
    def render(self) -> Text:
        """Draw the row; what matters least goes first when there is no room."""
        width = self.size.width
        state = state_text(self.status)
        lefts = [self._left(detail) for detail in (2, 1, 0)] + [Text()]
        rights = [self._right(with_hint=True), self._right(with_hint=False), Text()]
        choices = [(0, 0), (0, 1), (1, 1), (2, 1), (3, 1), (2, 2), (3, 2)]
        row = Text()
        for left, right in choices:
            gap = width - state.cell_len - lefts[left].cell_len - rights[right].cell_len
            if gap >= 2 or (left, right) == choices[-1]:
                row.append_text(state).append_text(lefts[left]).append(" " * gap).append_text(rights[right])
                break
        row.truncate(width, overflow="crop")
        return row

    def on_click(self) -> None:
        """Let the pane follow again."""
        if self.status.new_lines:
            self.post_message(PillPressed())

    def _left(self, detail: int) -> Text:
        """Return where the view is, and what the log lacks, in more or less detail: 2, 1 or 0."""
        status = self.status
        text = self._position(with_time=detail == 2)
        if status.since:
            text.append(f"   since {status.since}", "$style-pending")
        if status.gone and status.at_start:
            words = f"oldest {count(status.gone, 'line')} dropped" if detail else f"{status.gone:,} dropped"
            text.append(f"   {words}", "$style-pending")
        return text

    def _position(self, *, with_time: bool) -> Text:
        status = self.status
        text = Text()
        if not status.line_count:
            return text
        if status.state == "selecting":
            return text.append(f"  {count(status.selected, 'line')} of {status.line_count:,}", "$style-muted")
        if status.at_end and status.state != "paused":
            return text.append(f"  {count_words(status)}", "$style-faint")
        if status.line is None:
            return text.append(f"  of {count_words(status)}", "$style-faint")
        text.append(f"  line {status.line:,} of {status.line_count:,}", "$style-muted")
        if with_time and status.at is not None:
            text.append(f"   {clock_text(status.at)}", "$style-faint")
        return text

    def _right(self, *, with_hint: bool) -> Text:
        status = self.status
        text = Text()
        if status.state == "selecting":
            for name, word in _SELECTING if with_hint else _SELECTING[:1]:
                text.append("   " if text else "").append_text(key_text(self, name, word))
        elif status.state == "paused":
            if status.new_lines:
                text.append(f" +{count(status.new_lines, 'new line')} ", "$style-accent-fill")
            if with_hint or not status.new_lines:
                text.append("  " if text else "").append_text(key_text(self, "logs.follow", "to follow"))
        elif self.options_shown and status.state != "none":
            text.append(f"wrap {'on' if status.wrap else 'off'}  {status.stream}", "$style-faint")
        return text


def status_of(session: LogSession, view: LogView, reason: str, failed: frozenset[int]) -> LogStatus:
    """Return what a pane shows and does now.

    Args:
        session: the log.
        view: its lines on screen.
        reason: why there is no log.
        failed: the places of the replicas that failed.
    """
    if session.log is None:
        return LogStatus(reason=reason)
    bounds = view.bounds
    first, last = view.first_line, view.last_line
    return LogStatus(
        state=_state_of(session, view),
        reason=session.failure,
        line_count=bounds.end - bounds.first + bounds.gone,
        exact=bounds.complete,
        gone=bounds.gone,
        at_start=first is not None and first.number == bounds.first,
        selected=len(view.selection.numbers(bounds)) if view.selection is not None else 0,
        since=session.since,
        new_lines=view.new_lines,
        replica=session.replica,
        shown=session.words,
        stream=session.stream,
        wrap=view.wrap,
        line=last.number - bounds.first + bounds.gone + 1 if last is not None and bounds.complete else None,
        at=last.time if last is not None else None,
        at_end=last is None or last.number == bounds.end - 1,
        numbers=session.all_numbers,
        failed=failed,
        times=view.times,
    )


def _state_of(session: LogSession, view: LogView) -> LogState:
    if session.failure:
        return "none"
    if view.selection is not None:
        return "selecting"
    if session.ended:
        return "ended"
    if view.bounds.first == view.bounds.end:
        return "waiting"
    return "following" if view.following else "paused"
