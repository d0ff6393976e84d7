"""How the application tells people something: the status line, notes, the bell, the terminal's title, copies."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from ...specs import AppState
from ..format import count, state_word
from ..terminal.ordered_keys import OrderedKeysApp
from .theme import palette_of, signs_of

if TYPE_CHECKING:
    from ...settings.config import Settings
    from ..messages import Told
    from ..rows import JobRow
    from ..watch.store import JobStore

_log = logging.getLogger(__name__)

# How long the status line keeps what went well.
STATUS_SECONDS = 6.0


class TellingApp(OrderedKeysApp[int]):
    """An application with a status line. Subclasses have settings and jobs."""

    settings: Settings
    jobs: JobStore

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._terminal_title = ""
        self._status = Text()
        self._status_failed = False
        self._status_about = ""
        self._status_timer: Timer | None = None
        self._to_be_cancelled: set[str] = set()

    def post_from_thread(self, message: Message) -> None:
        """Hand a message to the app from any thread, without waiting; dropped once the app ends."""
        if self._running and not self._exit:
            self.post_message(message)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say of a worker that failed."""
        self.say_failed(event)

    def say_failed(self, event: Worker.StateChanged) -> None:
        """Say that a worker of the app, a screen or a widget failed: what it was to bring will not come.

        Args:
            event: what Textual tells of the worker's state, whatever that is.
        """
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            from ...specs.errors import describe_error

            _log.error("%s failed", event.worker.group, exc_info=error)
            self.say(f"{event.worker.group}: {describe_error(error)}; the log file says more", failed=True)

    def say(self, text: str, *, failed: bool = False, about: str = "") -> None:
        """Show a message in the status line for a while; one of a failure stays until the next key.

        Args:
            text: the message.
            failed: whether it tells of a failure.
            about: the backend or the job that failed: `recovered` takes the message away.
        """
        from ...backends.shared.secrets import mask_text
        from ...logs.text.sanitize import plain

        self._status = Text(plain(mask_text("", text)), no_wrap=True)
        self._status_failed = failed
        self._status_about = about
        if self._status_timer is not None:
            self._status_timer.stop()
        self._status_timer = None if failed else self.set_timer(STATUS_SECONDS, self.clear_status)
        self._refresh_bars()

    def status_text(self) -> Text:
        """Return the message of the status line with its sign."""
        if not self._status:
            return Text()
        colors, signs = palette_of(self), signs_of(self)
        text = Text(end="")
        sign, style = (signs.bad, colors.failed) if self._status_failed else (signs.ok, colors.running)
        text.append(f"{sign} ", style)
        text.append(self._status.plain, colors.failed if self._status_failed else colors.text2)
        return text

    def clear_status(self) -> None:
        """Take the message away."""
        if self._status:
            self._status, self._status_failed = Text(), False
            self._refresh_bars()

    def clear_failure(self) -> None:
        """Take the message of a failure away."""
        if self._status_failed:
            self.clear_status()

    def recovered(self, about: str) -> None:
        """Take the message of a failure away that a backend or a job has got over."""
        if self._status_about == about:
            self.clear_failure()

    def _refresh_bars(self) -> None:
        refresh = getattr(self.screen, "refresh_bars", None) if self.screen_stack else None
        if refresh is not None:
            refresh()

    def copy(self, text: str, what: str, *, is_command: bool = False) -> None:
        """Copy a text through the terminal, or, where that takes none, to a file; say what happened.

        Args:
            text: the text.
            what: what it is, for the message.
            is_command: somebody will run it: the message says where something in it was masked.
        """
        from ...backends.shared.secrets import MASK, MASKED_NOTE
        from ..messages import Told
        from ..terminal.clipboard import copy_to_file, osc52

        note = f"; {MASKED_NOTE}" if is_command and MASK in text else ""
        what = what[:1].upper() + what[1:]
        sequence = osc52(text)
        if sequence is not None and self._driver is not None:
            self._driver.write(sequence)
            self._clipboard = text
            self.say(f"{what} sent to the terminal's clipboard{note}")
            return

        def write() -> None:
            try:
                told = Told(f"{what} written to {copy_to_file(text)}: the terminal takes no such copy{note}")
            except OSError as error:
                told = Told(f"{what} could not be copied: the terminal takes no such copy, and {error}", failed=True)
            self.post_from_thread(told)

        self.run_worker(write, thread=True, group="copy", exit_on_error=False)

    def on_told(self, message: Told) -> None:
        """Show in the status line what a thread has to say."""
        self.say(message.text, failed=message.failed)

    def expect_cancelled(self, handles: Collection[str]) -> None:
        """Take note of jobs that are cancelled together: that each of them ends is no news."""
        if len(handles) > 1:
            self._to_be_cancelled = {handle for handle in self._to_be_cancelled if self._lives(handle)} | set(handles)

    def _lives(self, handle: str) -> bool:
        row = self.jobs.rows.get(handle)
        return row is not None and not row.is_final

    def tell_ended(self, rows: list[JobRow]) -> None:
        """Say which jobs have just ended; of many at once, how many; of those cancelled together, once all have."""
        if any(row.handle in self._to_be_cancelled for row in rows):
            rows = [
                row for row in rows if row.handle not in self._to_be_cancelled or row.state is not AppState.CANCELLED
            ]
            if not any(self._lives(handle) for handle in self._to_be_cancelled):
                self.notify(f"{count(len(self._to_be_cancelled), 'job')} ended: all that were cancelled together")
                self._to_be_cancelled.clear()
        if not rows:
            return
        for text, failed in _format_exit(rows):
            self.notify(text, markup=False, severity="error" if failed else "information")
        if self.settings.bell:
            self.bell()

    def show_title(self) -> None:
        """Say in the terminal's title how the jobs do; nothing is written while that stays the same."""
        if not self.settings.terminal_title or self._driver is None or self.is_headless:
            return
        from ..terminal import title as terminal_title

        title = terminal_title.title_text(self.jobs.state_counts())
        if title != self._terminal_title and terminal_title.has_title():
            push = terminal_title.PUSH if not self._terminal_title else ""
            self._terminal_title = title
            self._driver.write(push + terminal_title.title_sequence(title))

    def take_title_back(self) -> None:
        """Give the terminal the title that it had."""
        if self._terminal_title and self._driver is not None:
            from ..terminal.title import POP

            self._driver.write(POP)


def _format_exit(rows: Sequence[JobRow]) -> list[tuple[str, bool]]:
    """Return what is said of jobs that have just ended, and whether one failed: each by itself, of many how many."""
    if len(rows) <= 3:
        return [(f"{row.name} {state_word(row.state).lower()}", row.state is AppState.FAILED) for row in rows]
    states = Counter(row.state for row in rows)
    parts = [f"{number:,} {state_word(state).lower()}" for state, number in states.most_common()]
    return [(f"{len(rows):,} jobs ended: {', '.join(parts)}", AppState.FAILED in states)]
