"""The dialogs that ask before something ends: cancel, delete, quit. The first button is the harmless one."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Button, Static

from ...backends.types import BY_TORCHX
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..format import count, cut
from ..rows import JobRow, backend_word
from ..ui.bars import key_of, key_text
from ..ui.dialog import MOST_LISTED, TEXT_WIDTH, CountDialog, Dialog
from ..ui.job_cells import name_text, state_text, state_times_text
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.api import Finding

# Lines that say why something failed with one of them.
MOST_WHY = 2


class ConfirmDialog(CountDialog):
    """Asks about jobs; for more than one the count must be typed.

    Args:
        rows: the jobs.
    """

    KEEP = "Keep"
    CONFIRM = "Confirm"
    CONFIRM_SEVERAL = ""
    """The label of the button for more than one job, without their count."""
    COMMAND = ""

    BINDINGS = [Binding("y", "confirm", "Confirm", id="dialog.confirm", show=False)]

    def __init__(self, rows: Sequence[JobRow]) -> None:
        super().__init__(len(rows))
        self.rows = rows

    def consequence(self) -> list[str]:
        """Return what will happen, a sentence in lines."""
        return []

    def lines(self) -> list[Text]:
        """Return the jobs, their facts, the consequence and the command."""
        facts = self._one(self.rows[0]) if len(self.rows) == 1 else self._several()
        text = [Text(line, STYLES.muted) for line in self.consequence()]
        command = ["torchx-tui", self.COMMAND, plain(self.rows[0].handle)]
        if len(self.rows) == 1:
            text.append(Text(cut(f"$ {shlex.join(command)}", TEXT_WIDTH, glyphs_of(self.app).cut), STYLES.faint))
        return [*facts, Text(), *text, Text()]

    def _one(self, row: JobRow) -> list[Text]:
        glyphs = glyphs_of(self.app)
        # Backends count the replicas of an ended job that succeeded. Of past and lost jobs nobody counts any.
        counts = f"{row.running} of {row.wanted} {'succeeded' if row.is_final else 'running'}"
        is_counted = not row.history and row.state is not AppState.UNKNOWN
        lines = [name_text(row.name, TEXT_WIDTH, glyphs, bold=True), Text()]
        for label, value in (
            ("state", state_times_text(row, glyphs, now_of(self.app))),
            ("where", Text(backend_word(row.scheduler, long=True), STYLES.text)),
            ("replicas", Text(counts if is_counted else f"{row.wanted}", STYLES.text)),
        ):
            line = Text(f"{label:<11}", STYLES.faint, end="")
            line.append_text(value)
            lines.append(line)
        return lines

    def _several(self) -> list[Text]:
        glyphs = glyphs_of(self.app)
        lines = []
        for row in self.rows[:MOST_LISTED]:
            line = state_text(row.state, glyphs)
            line.append(" " * (14 - line.cell_len))
            line.append_text(name_text(row.name, TEXT_WIDTH - 14, glyphs))
            lines.append(line)
        if len(self.rows) > MOST_LISTED:
            lines.append(Text(f"and {len(self.rows) - MOST_LISTED} more", STYLES.faint))
        return lines

    def compose_buttons(self) -> ComposeResult:
        """Yield the harmless button, the other, and how to go back."""
        yield Button(self.KEEP, compact=True, id="keep")
        is_one = not self.asks_for_count
        words = self.CONFIRM if is_one else f"{self.CONFIRM_SEVERAL or self.CONFIRM} {count(len(self.rows), 'job')}"
        key = key_of(self, "dialog.confirm") if is_one else "enter"
        label = Text(key, STYLES.failed).append(f" {words}", STYLES.text)
        yield Button(label, compact=True, id="confirm")
        yield Static(key_text(self, "dialog.back", "back"), markup=False)


class CancelDialog(ConfirmDialog):
    """Asks before jobs are cancelled.

    Args:
        rows: the jobs.
        find_lost_logs: returns what becomes of logs that are not kept, a sentence for each backend; called in a thread.
    """

    KEEP = "Keep running"
    CONFIRM, CONFIRM_SEVERAL = "Cancel the job", "Cancel"
    COMMAND, COUNT_FOR = "cancel", "cancel them"

    def __init__(self, rows: Sequence[JobRow], find_lost_logs: Callable[[], list[str]] = list) -> None:
        super().__init__(rows)
        self._find_lost_logs = find_lost_logs
        self._lost_logs: list[str] | None = None

    def on_mount(self) -> None:
        """Ask what becomes of the logs."""
        self._ask_for_lost_logs()

    @work(exit_on_error=False)
    async def _ask_for_lost_logs(self) -> None:
        self._lost_logs = await asyncio.to_thread(self._find_lost_logs)
        self.query_one("#dialog-text", Static).update(Text("\n").join(self.lines()))

    def heading(self) -> str:
        """The title, with how many jobs are meant."""
        return "Cancel this job?" if len(self.rows) == 1 else f"Cancel {len(self.rows)} jobs?"

    def consequence(self) -> list[str]:
        """Say that every process ends and what stays."""
        which = "The job stays" if len(self.rows) == 1 else "The jobs stay"
        return [
            "Each process gets SIGTERM, and SIGKILL if it does not end.",
            f"{which} listed as Cancelled{', logs are kept.' if self._lost_logs == [] else '.'}",
            *(line for sentence in self._lost_logs or () for line in wrap(plain(sentence), TEXT_WIDTH)),
        ]


class ChainDialog(CancelDialog):
    """Asks which links of a chain are to be cancelled; `chosen` is what a yes is about.

    Args:
        row: the link at the cursor.
        links: the links that have not ended, this one among them.
        find_lost_logs: see `CancelDialog`.
    """

    CONFIRM = "This link"
    BINDINGS = [Binding("a", "cancel_all", "Cancel all links", id="dialog.cancel_all", show=False)]

    def __init__(self, row: JobRow, links: Sequence[JobRow], find_lost_logs: Callable[[], list[str]] = list) -> None:
        super().__init__([row], find_lost_logs)
        self.links = links
        self.chosen: Sequence[JobRow] = [row]

    def heading(self) -> str:
        """Return the question."""
        return f"Cancel this link, or all {len(self.links)}?"

    def lines(self) -> list[Text]:
        """Return the link, and that others are queued behind it."""
        words = f"Its chain has {count(len(self.links) - 1, 'other link')}, which may then never start."
        return [*super().lines()[:-1], Text(words, STYLES.muted), Text()]

    def compose_buttons(self) -> ComposeResult:
        """Yield the harmless button, those for this link and for all, and how to go back."""
        *buttons, back = super().compose_buttons()
        label = Text(key_of(self, "dialog.cancel_all"), STYLES.failed)
        label.append(f" All {len(self.links)} links", STYLES.text)
        yield from (*buttons, Button(label, compact=True, id="all"), back)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the answer for all; the others are the base's."""
        if event.button.id == "all":
            event.prevent_default()
            self.action_cancel_all()

    def action_cancel_all(self) -> None:
        """Answer yes, for all links."""
        self.chosen = self.links
        self.dismiss(True)


class DeleteDialog(ConfirmDialog):
    """Asks before jobs are deleted."""

    KEEP = "Keep"
    CONFIRM = "Delete"
    COMMAND, COUNT_FOR = "delete", "delete them"

    def heading(self) -> str:
        """The title, with how many jobs are meant."""
        return "Delete this job?" if len(self.rows) == 1 else f"Delete {len(self.rows)} jobs?"

    def consequence(self) -> list[str]:
        """Say that logs and history go."""
        live = sum(not row.is_final and not row.history for row in self.rows)
        first = f"{count(live, 'active job')} {'is' if live == 1 else 'are'} cancelled first." if live else ""
        theirs = sum(BY_TORCHX in row.notes for row in self.rows)
        last = f"The logs of {count(theirs, 'job')} are in TorchX's folder and stay." if theirs else ""
        one = len(self.rows) == 1
        of = "it" if one else "them"
        lines = (first, f"Logs and history of {of} are removed. This cannot be undone.", last)
        if theirs == len(self.rows):
            which = "The job is no longer shown. Its" if one else "The jobs are no longer shown. Their"
            lines = (first, f"{which} logs are in TorchX's folder and stay.")
        return [line for line in lines if line]


class ResultsDialog(Dialog[None]):
    """Says of several jobs how something went that did not go well with all of them.

    Args:
        results: each job with why it failed, empty where it did not.
    """

    BINDINGS = [
        Binding("j,down", "scroll(1)", "Down", id="dialog.down", show=False),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up", show=False),
    ]

    def __init__(self, results: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.results = results

    def heading(self) -> str:
        """Return the title, with how many failed."""
        failed = sum(bool(failure) for _, failure in self.results)
        return f"{failed:,} of {count(len(self.results), 'job')} failed"

    def compose_question(self) -> ComposeResult:
        """Yield the list; it may be longer than the screen."""
        with VerticalScroll(id="dialog-results", can_focus=False):
            yield Static(Text("\n", no_wrap=True).join(self._results()), markup=False)

    def _results(self) -> list[Text]:
        """Return each job with its result, those that failed first."""
        glyphs = glyphs_of(self.app)
        lines: list[Text] = []
        for name, failure in sorted(self.results, key=lambda result: not result[1]):
            line = Text(
                f"{glyphs.bad if failure else glyphs.ok} ", STYLES.failed if failure else STYLES.running, end=""
            )
            line.append_text(name_text(name, TEXT_WIDTH - 2, glyphs))
            why = wrap(plain(failure), TEXT_WIDTH - 4)[:MOST_WHY]
            lines += [line, *(Text(f"    {part}", STYLES.muted) for part in why)]
        return [*lines, Text()]

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#dialog-results").scroll_relative(y=rows, animate=False)

    def compose_buttons(self) -> ComposeResult:
        """Yield the way back."""
        yield Button("Close", compact=True, id="close")

    def on_button_pressed(self) -> None:
        """Go back."""
        self.dismiss(None)


class QuitDialog(Dialog[Any]):
    """Asks what becomes of the jobs that this process launched on this machine.

    Args:
        handles: those that run.
        warnings: what may end them although they are kept.
    """

    BINDINGS = [
        Binding("k,enter", "keep", "Keep running and quit", id="dialog.keep", show=False),
        Binding("y", "cancel", "Cancel the jobs and quit", id="dialog.cancel", show=False),
    ]

    def __init__(self, handles: Sequence[str], warnings: Sequence[Finding] = ()) -> None:
        super().__init__()
        self.handles = handles
        self.warnings = warnings

    def heading(self) -> str:
        """Return the title."""
        return "Quit?"

    def lines(self) -> list[Text]:
        """Return the jobs that run."""
        glyphs = glyphs_of(self.app)
        lines = [
            Text(f"{count(len(self.handles), 'job')} launched here, still running on this machine:", STYLES.muted),
            Text(),
        ]
        for handle in self.handles[:MOST_LISTED]:
            lines.append(name_text(plain(handle.rpartition("/")[2]), TEXT_WIDTH, glyphs, bold=True))
        if len(self.handles) > MOST_LISTED:
            lines.append(Text(f"and {len(self.handles) - MOST_LISTED} more", STYLES.faint))
        lines += [Text(), Text("Jobs that you keep continue; the next start lists them.", STYLES.muted)]
        for warning in self.warnings:
            lines.append(Text(f"Warning: {plain(warning.what)}.", STYLES.pending))
            for line in wrap(f"To prevent it: {plain(warning.hint)}", TEXT_WIDTH):
                lines.append(Text(line, STYLES.muted))
        return [*lines, Text()]

    def compose_buttons(self) -> ComposeResult:
        """Yield the two ways to quit, and the way back."""
        yield Button("Keep running", compact=True, id="keep")
        label = Text(key_of(self, "dialog.cancel"), STYLES.failed)
        label.append(" Cancel them", STYLES.text)
        yield Button(label, compact=True, id="cancel")
        yield Static(key_text(self, "dialog.back", "back"), markup=False)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the button's answer."""
        self.dismiss("cancel" if event.button.id == "cancel" else "keep")

    def action_keep(self) -> None:
        """Quit, jobs go on."""
        self.dismiss("keep")

    def action_cancel(self) -> None:
        """Quit, jobs are cancelled."""
        self.dismiss("cancel")
