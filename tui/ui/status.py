"""What the application says: the message of the status line, and a note for jobs that have just ended."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from ...base.files import user_name
from ...specs.status import AppState
from ..format import count, state_word
from ..messages import StacksTaken, Told
from ..terminal.textual_internals import write_to_terminal
from .palette import STYLES
from .theme import glyphs_of

if TYPE_CHECKING:
    from ..app import TorchXTuiApp
    from ..rows import JobRow

_log = logging.getLogger(__name__)
# Jobs that ended at once whose logs are read for why.
_MOST_EXPLAINED = 8

# How long the status line keeps a message of success.
STATUS_SECONDS = 6.0


class Status:
    """The message of the status line.

    Args:
        app: the app whose screens show it.
    """

    def __init__(self, app: TorchXTuiApp) -> None:
        self._app = app
        self._message = ""
        self._failed = False
        self._about = ""
        # What failed by itself while another failure was still to be read, and what that is about.
        self._later: tuple[str, str] | None = None
        self._timer: Timer | None = None

    def say(self, text: str, *, failed: bool = False, about: str = "") -> None:
        """Show a message for a few seconds; the message of a failure stays until the next key.

        A backend or a job that fails meanwhile is told of with that key.

        Args:
            text: the message.
            failed: whether it tells of a failure.
            about: the backend or the job that failed: `recovered` takes the message away.
        """
        from ...backends.shared.secrets import mask_text
        from ...logs.text.sanitize import plain

        if about and self._failed and not self._about:
            self._later = text, about
            return
        self._message, self._failed, self._about = mask_text("", plain(text)), failed, about
        if self._timer is not None:
            self._timer.stop()
        self._timer = None if failed else self._app.set_timer(STATUS_SECONDS, self.clear)
        self._refresh_bars()

    def say_failed(self, event: Worker.StateChanged) -> None:
        """Say that a worker of the app, a screen or a widget failed: its result will not come.

        Args:
            event: a change of the worker's state; other changes than a failure are passed over.
        """
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            from ...base.errors import describe_error

            _log.error("%s failed", event.worker.group, exc_info=error)
            self.say(f"{event.worker.group}: {describe_error(error)}; see the log file", failed=True)

    def text(self) -> Text:
        """Return the message with its glyph, empty where there is none."""
        if not self._message:
            return Text()
        glyphs = glyphs_of(self._app)
        text = Text(end="")
        glyph, style = (glyphs.bad, STYLES.failed) if self._failed else (glyphs.ok, STYLES.running)
        text.append(f"{glyph} ", style)
        text.append(self._message, STYLES.failed if self._failed else STYLES.muted)
        return text

    def clear(self) -> None:
        """Remove the message."""
        if self._message:
            self._message, self._failed, self._about = "", False, ""
            self._refresh_bars()

    def clear_failure(self) -> None:
        """Remove the message of a failure, and show that which waited for it."""
        if self._failed:
            self.clear()
        later, self._later = self._later, None
        if later is not None:
            self.say(later[0], failed=True, about=later[1])

    def recovered(self, about: str) -> None:
        """Remove the message of a failure that a backend or a job has recovered from."""
        if self._later is not None and self._later[1] == about:
            self._later = None
        if self._about == about:
            self.clear_failure()

    def _refresh_bars(self) -> None:
        refresh = getattr(self._app.screen, "refresh_bars", None) if self._app.screen_stack else None
        if refresh is not None:
            refresh()


class OnDashboard:
    """A screen or a widget of the dashboard, whose workers are heard when they fail."""

    app: Any

    @property
    def dashboard(self) -> TorchXTuiApp:
        """The app, with its own type."""
        return cast("TorchXTuiApp", self.app)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say that a worker failed."""
        if status := getattr(self.app, "status", None):
            status.say_failed(event)


class EndedJobs:
    """Notes, and the bell, for jobs that end while somebody watches.

    Args:
        app: the app that shows them.
    """

    def __init__(self, app: TorchXTuiApp) -> None:
        self._app = app
        self._cancelled: set[str] = set()
        self._stalled: set[str] = set()

    def expect_cancelled(self, handles: Collection[str]) -> None:
        """Keep the handles of jobs that are cancelled together: they get one note when all of them have ended."""
        if len(handles) > 1:
            self._cancelled = {handle for handle in self._cancelled if self._lives(handle)} | set(handles)

    def announce(self, rows: list[JobRow]) -> None:
        """Say which jobs have just ended: each by its name, or how many where there are more than three."""
        if any(row.handle in self._cancelled for row in rows):
            rows = [row for row in rows if row.handle not in self._cancelled or row.state is not AppState.CANCELLED]
            if not any(self._lives(handle) for handle in self._cancelled):
                self._app.notify(f"{count(len(self._cancelled), 'job')} ended: all that were cancelled together")
                self._cancelled.clear()
        if not rows:
            return
        for row in [row for row in rows if row.state is AppState.FAILED][:_MOST_EXPLAINED]:
            self._app.explain(row.handle)
        for text, failed in format_exit(rows):
            self._app.notify(text, markup=False, severity="error" if failed else "information")
        if self._app.settings.bell:
            self._app.bell()
        for failed in (True, False):
            ended = [row for row in rows if (row.state is AppState.FAILED) == failed]
            if ended:
                words = "; ".join(text for text, _ in format_exit(ended))
                _tell_away(self._app, ended, "failure" if failed else "end", words)

    def announce_stall(self, handle: str, sentence: str, seconds: float) -> None:
        """Say once that a job is stalled, and find out where its ranks stand.

        Args:
            handle: the job.
            sentence: says it; empty for a job that is not stalled.
            seconds: how long it has made no step.
        """
        if not sentence:
            self._stalled.discard(handle)
            return
        row = self._app.jobs.rows.get(handle)
        if row is None or row.is_final or handle in self._stalled:
            return
        self._stalled.add(handle)
        words = f"{row.name} stalled: {sentence}"
        self._app.notify(words, markup=False, severity="warning")
        if self._app.settings.bell:
            self._app.bell()
        _ring_away(self._app, "stall", words)
        self._find_stacks(row, self._app.now() - seconds, sentence)

    def _find_stacks(self, row: JobRow, since: float, sentence: str) -> None:
        """Find the stacks that were taken since a job stalls, or take them; then tell who is away, with the finding."""
        app = self._app

        def work() -> None:
            from ...diagnosis.stacks.stalled import find_stalled
            from ...diagnosis.stacks.text import describe_reading

            found = find_stalled(app.runner, row.handle, since, may_take=app.settings.watch.stacks_of_stalled)
            if found is not None:
                snapshot, conclusion = found
                reading = describe_reading(snapshot)
                app.post_from_thread(StacksTaken(row.handle, snapshot.at, reading, conclusion))
                app.post_from_thread(Told(f"{row.name}: {conclusion.sentence}"))
            _tell_channels(app, [row], "stall", f"{sentence}; {found[1].sentence}" if found else sentence)

        app.run_worker(work, thread=True, group="stacks of stalled jobs", exit_on_error=False)

    def _lives(self, handle: str) -> bool:
        row = self._app.jobs.rows.get(handle)
        return row is not None and not row.is_final


def format_exit(rows: Sequence[JobRow]) -> list[tuple[str, bool]]:
    """Return the notes for jobs that have just ended, and for each note whether a job failed."""
    if len(rows) <= 3:
        return [(f"{row.name} {state_word(row.state).lower()}", row.state is AppState.FAILED) for row in rows]
    states = Counter(row.state for row in rows)
    parts = [f"{number:,} {state_word(state).lower()}" for state, number in states.most_common()]
    return [(f"{len(rows):,} jobs ended: {', '.join(parts)}", AppState.FAILED in states)]


def _tell_away(app: TorchXTuiApp, rows: Sequence[JobRow], event: str, words: str) -> None:
    """Tell as ``[notify]`` says of jobs of this user that ended.

    Args:
        app: the dashboard.
        rows: the jobs.
        event: what happened to them, see `Happened`.
        words: what the terminal says.
    """
    _ring_away(app, event, words)
    if app.settings.notify.has_channel:
        app.run_worker(lambda: _tell_channels(app, rows, event), thread=True, group="notify", exit_on_error=False)


def _ring_away(app: TorchXTuiApp, event: str, words: str) -> None:
    """Let the terminal notify, where that is wanted."""
    # The first paint does not wait for this import.
    from ...notify.helper import terminal_sequence

    settings = app.settings.notify
    if settings.terminal and (event in settings.events or event == "failure"):
        write_to_terminal(app, terminal_sequence(words))


def _tell_channels(app: TorchXTuiApp, rows: Sequence[JobRow], event: str, sentence: str = "") -> None:
    """Tell on the channels of ``[notify]`` of jobs of this user, in a thread.

    Args:
        app: the dashboard.
        rows: the jobs.
        event: what happened to them, see `Happened`.
        sentence: says it; empty where the helper is to find out.
    """
    from ...notify.helper import send_events
    from ...settings.helper_request import Happened

    mine = [row for row in rows if not row.foreign or row.user == user_name()]
    # The supervisor of a job on this machine tells by itself.
    happened = [Happened(row.handle, event, sentence) for row in mine if row.scheduler != "local_cwd"]
    if happened and app.settings.notify.has_channel:
        send_events(app.settings, happened)
