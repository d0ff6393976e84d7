"""Notes, the bell and notifications for jobs that have just ended or stalled."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.files import user_name
from ..specs.status import AppState
from .format import count, state_word
from .messages import StacksTaken
from .terminal.textual_internals import write_to_terminal
from .ui.base import BaseScreen

if TYPE_CHECKING:
    from .dashboard import Dashboard
    from .rows import JobRow

# Jobs that ended at once whose logs are read for why.
_MOST_EXPLAINED = 8
# What the messages are about: they wait while the answer to a key reports a failure.
_ABOUT = "jobs that have ended or stalled"


class JobAlerts:
    """Notes, and the bell, for jobs that end while somebody watches.

    Args:
        app: the app that shows them.
    """

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        # When the stall of a job was last announced (seconds since the epoch).
        self._stalls: dict[str, float] = {}

    def announce(self, rows: list[JobRow]) -> None:
        """Say which jobs have just ended: each by its name, or how many where there are more than three."""
        cancelled = self._app.jobs.cancelled_together
        if any(row.handle in cancelled for row in rows):
            rows = [row for row in rows if row.handle not in cancelled or row.state is not AppState.CANCELLED]
            if not any(self._app.jobs.is_live(handle) for handle in cancelled):
                self._app.status.say(f"{count(len(cancelled), 'job')} cancelled")
                cancelled.clear()
        if not rows:
            return
        for row in [row for row in rows if row.state is AppState.FAILED][:_MOST_EXPLAINED]:
            self._app.feed.explain(row.handle)
        seen = [row for row in rows if self._is_on_screen(row)]
        for text, failed in format_exit([row for row in rows if row not in seen]):
            self._app.notify(text, markup=False, severity="error" if failed else "information")
        if seen:
            said = format_exit(seen)
            words, has_failed = "; ".join(text for text, _ in said), any(failed for _, failed in said)
            self._app.status.say(words, failed=has_failed, about=_ABOUT)
        if self._app.settings.bell:
            self._app.bell()
        for failed in (True, False):
            ended = [row for row in rows if (row.state is AppState.FAILED) == failed]
            if ended:
                words = "; ".join(text for text, _ in format_exit(ended))
                _tell_away(self._app, ended, "failure" if failed else "end", words)

    def announce_stall(self, handle: str, sentence: str, seconds: float) -> None:
        """Announce that a job is stalled, once for each pause, and find the stacks of its ranks.

        Args:
            handle: the job.
            sentence: describes the stall.
            seconds: the time since its last step.
        """
        row, since = self._app.jobs.rows.get(handle), self._app.now() - seconds
        if row is None or row.is_final or since <= self._stalls.get(handle, -math.inf):
            return
        self._stalls[handle] = self._app.now()
        words = f"{row.name} stalled: {sentence}"
        if self._is_on_screen(row):
            self._app.status.say(words, failed=True, about=_ABOUT)
        else:
            self._app.notify(words, markup=False, severity="warning")
        if self._app.settings.bell:
            self._app.bell()
        _ring_away(self._app, "stall", words)
        find = self._find_stacks(row, since, sentence)
        self._app.run_worker(find, group="stacks of stalled jobs")

    def _is_on_screen(self, row: JobRow) -> bool:
        """Return whether the screen on top shows a job: a toast would cover it."""
        screen = self._app.screen
        return isinstance(screen, BaseScreen) and screen.shows_job(row.handle)

    async def _find_stacks(self, row: JobRow, since: float, sentence: str) -> None:
        """Find or take the stacks of a stalled job, then notify users who are away, with the conclusion."""
        from ..diagnosis.stacks.take import find_stalled
        from ..diagnosis.stacks.text import describe_reading

        app = self._app
        may_take = app.settings.watch.stacks_of_stalled
        found = await asyncio.to_thread(find_stalled, app.runner, row.handle, since, may_take=may_take)
        if found is not None:
            snapshot, conclusion = found
            app.post_message(StacksTaken(row.handle, snapshot.at, describe_reading(snapshot), conclusion))
            app.status.say(f"{row.name}: {conclusion.sentence}", about=_ABOUT)
            sentence = f"{sentence}; {conclusion.sentence}"
        await asyncio.to_thread(_tell_channels, app, [row], "stall", sentence)


def format_exit(rows: Sequence[JobRow]) -> list[tuple[str, bool]]:
    """Return the notes for jobs that have just ended, and for each note whether a job failed."""
    if len(rows) <= 3:
        return [(f"{row.name} {state_word(row.state).lower()}", row.state is AppState.FAILED) for row in rows]
    states = Counter(row.state for row in rows)
    if len(states) == 1:
        return [(f"{len(rows):,} jobs {state_word(rows[0].state).lower()}", AppState.FAILED in states)]
    parts = [f"{number:,} {state_word(state).lower()}" for state, number in states.most_common()]
    return [(f"{len(rows):,} jobs ended: {', '.join(parts)}", AppState.FAILED in states)]


def _tell_away(app: Dashboard, rows: Sequence[JobRow], event: str, words: str) -> None:
    """Tell as ``[notify]`` says of jobs of this user that ended.

    Args:
        app: the dashboard.
        rows: the jobs.
        event: what happened to them, see `Happened`.
        words: what the terminal says.
    """
    _ring_away(app, event, words)
    if app.settings.notify.has_channel:
        app.run_worker(asyncio.to_thread(_tell_channels, app, rows, event), group="notify")


def _ring_away(app: Dashboard, event: str, words: str) -> None:
    """Let the terminal notify, where that is wanted."""
    # The first paint does not wait for this import.
    from ..notify.helper import terminal_sequence

    settings = app.settings.notify
    if settings.terminal and (event in settings.events or event == "failure"):
        write_to_terminal(app, terminal_sequence(words))


def _tell_channels(app: Dashboard, rows: Sequence[JobRow], event: str, sentence: str = "") -> None:
    """Tell on the channels of ``[notify]`` of jobs of this user, in a thread.

    Args:
        app: the dashboard.
        rows: the jobs.
        event: what happened to them, see `Happened`.
        sentence: says it; empty where the helper is to find out.
    """
    from ..notify.helper import send_events
    from ..settings.helper_request import Happened

    mine = [row for row in rows if not row.foreign or row.user == user_name()]
    # The supervisor of a job on this machine tells by itself.
    happened = [Happened(row.handle, event, sentence) for row in mine if row.scheduler != "local_cwd"]
    if happened and app.settings.notify.has_channel:
        send_events(app.settings, happened)
