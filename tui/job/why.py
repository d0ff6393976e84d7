"""Why a job is as it is: the cause in a sentence, then what the job itself said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.widgets import Static

from ...backends.shared.secrets import mask_text
from ...base.validation import decode_json
from ...diagnosis.ranks import list_ranks
from ...diagnosis.recorder.findings import DEFAULT_GROUP
from ...diagnosis.stacks.text import describe_state
from ...logs.text.sanitize import plain
from ...specs.status import NONE, AppState
from ..cluster.screen import pool_of_job
from ..format import cut, state_word
from ..logs.rows import clock_text
from ..ui.bars import key_text
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.text_pane import TextScroll
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.api import DescribeAppResponse
    from ...diagnosis.failure.explain import Explanation
    from ...diagnosis.recorder.findings import RankPosition
    from ...logs.lines.failure import Failure, LoggedError
    from ..ui.glyphs import Glyphs


# Errors that are listed of those that follow.
_MOST_FOLLOWERS = 4
_LABEL_WIDTH = 13
_MOST_OF_A_FACT = 300
# The table of rank positions: its rows, and the cells between its columns.
_MAX_POSITIONS, _GAP = 6, 2
_POSITION_TITLES = ("RANK", "LAST COLLECTIVE", "STATE", "SINCE")
_KEYS = {
    AppState.FAILED: (
        ("jobs.edit", "edit and relaunch"), ("jobs.logs", "logs at this line"), ("why.copy", "copy the reason"),
    ),
    **dict.fromkeys((AppState.SUBMITTED, AppState.PENDING), (("jobs.cluster", "what is free"),)),
}  # fmt: skip


class WhyScroll(TextScroll):
    """The scrolled body of the pane."""

    HELP_TITLE = "Why"
    BINDINGS = [Binding("y", "screen.copy_reason", "Copy the reason", id="why.copy")]


class WhyPane(Pane):
    """The reason of a job's state."""

    def __init__(self) -> None:
        self.reason = ""
        self._described: DescribeAppResponse | None = None
        self.explanation: Explanation | None = None
        self._content = Static(markup=False)
        self.body = WhyScroll(self._content, id="why-scroll")
        super().__init__("Why", self.body, id="why-pane")

    def show(self, described: DescribeAppResponse, explanation: Explanation | None = None) -> None:
        """Show the reason of a described job, and why it failed once that is known."""
        self._described, self.explanation = described, explanation or self.explanation
        reason = self._text(described).plain
        if reason != self.reason:
            self.reason = reason
            self._draw()

    def on_resize(self) -> None:
        """Cut the lines of other errors for the new width."""
        self._draw()

    def _draw(self) -> None:
        described = self._described
        if described is None:
            return
        keys = Text(end="")
        # Where a job waits for a partition or queue, its backend knows what is free.
        is_free_known = self.screen.check_action("cluster", ()) and pool_of_job(described)
        is_led = described.state is AppState.FAILED or is_free_known
        for name, words in _KEYS.get(described.state, ()) if is_led else ():
            keys.append_text(key_text(self.body, name, f"{words}    "))
        text = self._text(described, self.body.scrollable_content_region.width)
        self._content.update(Text.assemble(text, "\n\n" if keys else "", keys, end=""))

    def _text(self, described: DescribeAppResponse, width: int | None = None) -> Text:
        """Return the reason; where a width is given, each error that follows takes one row of it."""
        glyphs, found = glyphs_of(self.app), self.explanation
        is_news = found is not None and (found.sentence != plain(described.reason) or bool(found.details))
        text = _end_text(found, glyphs, width) if found is not None and is_news else Text(end="")
        text.append_text(_why_text(described, glyphs))
        if found is not None and found.failure.sentence:
            text.rstrip()
            text.append_text(_failure_text(described, found.failure, glyphs, width))
            if described.metadata:
                text.rstrip()
                text.append("\n")
        for name, value in described.metadata.items():
            shown = mask_text(name, plain(value))[:_MOST_OF_A_FACT]
            text.append(f"\n{plain(name):<{_LABEL_WIDTH}} ", "$style-faint").append(shown, "$style-muted")
        return text


def _why_text(described: DescribeAppResponse, glyphs: Glyphs) -> Text:
    """Return the reason: the sentence, notes, then the quoted error of the job."""
    text = Text(end="")
    sentence, evidence = plain(described.reason), described.reasons[1:]
    text.append(sentence or _nothing_said(described.state), "$style-text" if sentence else "$style-muted")
    for told in evidence:
        text.append(f"\n  {plain(told)}", "$style-muted")
    for note in described.notes:
        text.append(f"\n{plain(note)}", "$style-muted")
    quote = error_quote(described.structured_error_msg)
    if quote:
        text.append("\n\n")
        lines = quote.splitlines()
        for number, line in enumerate(lines):
            exception = number == len(lines) - 1 and bool(line) and not line[0].isspace()
            _quote_line(text, line, exception, glyphs)
    return text


def _quote_line(text: Text, line: str, exception: bool, glyphs: Glyphs) -> None:
    text.append(f"{glyphs.quote} ", "$style-failed")
    text.append(plain(line.expandtabs(4)), "$style-failed" if exception else "$style-muted")
    text.append("\n")


def _failure_text(described: DescribeAppResponse, failure: Failure, glyphs: Glyphs, width: int | None) -> Text:
    """Return which error of the logs was the first, quoted unless the job reported it, and which ones follow."""
    text = Text("\n", end="")
    cause, followers = failure.cause, failure.consequences
    quote = error_quote(described.structured_error_msg)
    if cause is None:
        if failure.sentence not in quote:
            for line in failure.last_lines:
                text.append("\n")
                _quote_line(text, line, False, glyphs)
                text.rstrip()
        return text.append("\nno known error was found; these are the last lines of stderr", "$style-faint")
    if cause.text not in quote:
        text.append("\n")
        _quote_line(text, cause.text, True, glyphs)
    text.append("\n")
    if cause.time is not None:
        text.append(f"{clock_text(cause.time, milliseconds=True)}   ", "$style-faint")
    text.append(_replica_name(described, cause), "$style-muted")
    if not followers:
        which = "only" if failure.is_only else "last"
        return text.append(f"   the {which} error in the logs", "$style-faint")
    text.append(f"   first of {len(followers) + 1} errors", "$style-faint")
    if effects := sum(error.is_consequence for error in followers):
        text.append(f", {effects} follow{'s' if effects == 1 else ''} from it", "$style-faint")
    for error in followers[:_MOST_FOLLOWERS]:
        at = "" if error.time is None else f"{clock_text(error.time, milliseconds=True)}   "
        name = f"{_replica_name(described, error)}   "
        said = plain(error.text)
        if width is not None:
            said = cut(said, max(10, width - len(at) - len(name)), glyphs.cut)
        text.append(f"\n{at}", "$style-faint").append(name, "$style-muted").append(said, "$style-faint")
    if len(followers) > _MOST_FOLLOWERS:
        text.append(f"\nand {len(followers) - _MOST_FOLLOWERS} more", "$style-faint")
    return text


def _replica_name(described: DescribeAppResponse, error: LoggedError) -> str:
    replicas = [replica for status in described.roles_statuses for replica in status.replicas]
    if error.replica >= len(replicas):
        return f"replica {error.replica}"
    return f"{plain(replicas[error.replica].role)}/{replicas[error.replica].id}"


def _end_text(found: Explanation, glyphs: Glyphs, width: int | None) -> Text:
    """Return the finding, the positions of all ranks, further findings, and the last calls of the rank that failed."""
    text = Text(end="").append(f"{plain(found.sentence)}\n", "bold $style-text")
    if found.positions:
        text.append("\n").append_text(_positions_text(found.positions, glyphs, width))
        text.append(f"{plain(found.evidence)}\n", "$style-faint")
        text.append("\n" if found.details else "")
    for sentence in found.details:
        text.append(f"{plain(sentence)}\n", "$style-muted")
    if found.stack:
        text.append(f"\n{plain(found.stack_title)}\n", "$style-muted")
        for frame in found.stack:
            _quote_line(text, f'File "{frame.file}", line {frame.line}, in {frame.function}', False, glyphs)
    return text.append("\n")


def _positions_text(positions: Sequence[RankPosition], glyphs: Glyphs, width: int | None) -> Text:
    """Return a row for each group of ranks, the blocking ones in red."""
    rows = [_POSITION_TITLES]
    for position in positions[:_MAX_POSITIONS]:
        call = position.collective
        group = f" of {call.group}" if call and call.description != DEFAULT_GROUP else ""
        since = clock_text(position.since_ns / 1e9) if position.since_ns else ""
        called = f"{call.op} #{call.seq}{group}" if call else ""
        rows.append((list_ranks(position.ranks), plain(called), plain(describe_state(position)), since))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # The state is the longest, and its first word is the most important.
    for column, least in ((2, 8), (0, 8), (1, 12)):
        excess = sum(widths) + _GAP * (len(widths) - 1) - (width or 10_000)
        widths[column] = max(min(widths[column], least), widths[column] - max(0, excess))
    text = Text(end="")
    styles = ["$style-faint", *("$style-failed" if each.is_blocking else "$style-text" for each in positions)]
    for row, style in zip(rows, styles, strict=False):
        cells = [cut(cell, size, glyphs.cut).ljust(size) for cell, size in zip(row, widths, strict=True)]
        text.append((" " * _GAP).join(cells).rstrip() + "\n", style)
    if len(positions) > _MAX_POSITIONS:
        text.append(f"and {len(positions) - _MAX_POSITIONS} more\n", "$style-faint")
    return text


def _nothing_said(state: AppState) -> str:
    if state is AppState.SUCCEEDED:
        return "Every replica ended with exit code 0."
    return f"{state_word(state)}: the backend gives no reason."


def error_quote(structured: str) -> str:
    """Return the error that a job reported: the traceback of an error file, the message, or the text as it is.

    The two schemas of torchelastic's error file are read: nested (``message.message`` and
    ``message.extraInfo.py_callstack``) and flat (``message``).
    """
    if structured == NONE:
        return ""
    try:
        data = decode_json(structured)
    except ValueError:
        return structured
    message = data.get("message", data) if isinstance(data, dict) else data
    if isinstance(message, dict):
        extra = message.get("extraInfo")
        stack = extra.get("py_callstack") if isinstance(extra, dict) else None
        message = stack or message.get("message") or json.dumps(message, indent=1)
    return str(message)
