"""Launching jobs again as they were: at once, or, where the world has changed since, after a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Button, Static

from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import count
from ..rows import JobRow
from ..ui.bars import key_of, key_text
from ..ui.dialog import TEXT_WIDTH, CountDialog
from ..ui.job_cells import name_text
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of
from .bulk import act_on_jobs, job_names

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...backends.history.provenance import Changed
    from ..dashboard import Dashboard
    from ..rows import JobRow


_NOT_KNOWN = "unknown"


class Relaunch:
    """Launches jobs again.

    Args:
        app: the app.
        rows: the jobs.
    """

    def __init__(self, app: Dashboard, rows: Sequence[JobRow]) -> None:
        self._app = app
        self.rows = list(rows)

    def start(self) -> None:
        """Launch one unchanged job at once, else ask; refuse jobs that are already being launched again."""
        handles = {row.handle for row in self.rows}
        if handles & self._app.relaunching:
            self._app.status.say(f"{job_names(self.rows)}: already being launched again")
            return
        self._app.relaunching |= handles
        self._app.run_worker(self._run(handles), group="actions", exit_on_error=False)

    async def _run(self, handles: set[str]) -> None:
        try:
            changes, known = await asyncio.to_thread(self._changes)
            is_one = len(handles) == 1
            answer = True
            if changes or not is_one:
                answer = await self._app.push_screen_wait(RelaunchDialog(self.rows, changes))
            if answer is True:
                await self._launch("again, as it was" if known and not changes and is_one else "again")
        finally:
            self._app.relaunching -= handles
        if answer == "edit":
            open_edit(self._app, self.rows[0])
        elif answer is not True:
            self._app.status.say("Nothing launched")

    def _changes(self) -> tuple[dict[str, list[Changed]], bool]:
        """Return the differences from each launch by handle, and whether all launches were recorded in full."""
        from ...backends.history.provenance import Changed, GitStates
        from ...settings.launch_defaults import config_now

        runner, now = self._app.runner, GitStates()
        found: dict[str, list[Changed]] = {}
        known = True
        for row in self.rows:
            record = runner.journal.find(row.handle)
            known = known and record is not None and bool(record.world)
            try:
                if record is None:
                    described = runner.job(row.handle).describe()
                    taken = described.not_known if described is not None else {}
                    changed = [Changed(what, _NOT_KNOWN, text) for what, text in taken.items()]
                else:
                    config = config_now(self._app.settings, self._app.profile, record, runner)
                    changed = runner.changed_since(record, config, now)
            except Exception:  # what is wrong with the scheduler is said by the launch itself
                known = False
                continue
            if changed:
                found[row.handle] = changed
        return found, known

    async def _launch(self, after: str) -> None:
        app = self._app
        progress = app.launches.begin(job_names(self.rows))
        act = partial(app.runner.relaunch, progress=progress)
        app.post_message(await asyncio.to_thread(act_on_jobs, self.rows, act, "Launched", after, progress=progress))


def summed_up(changes: Mapping[str, Sequence[Changed]]) -> list[tuple[Changed, int]]:
    """Return each change with the number of jobs that it is one of, the most frequent first."""
    counted: dict[Changed, int] = {}
    for changed in changes.values():
        for change in changed:
            counted[change] = counted.get(change, 0) + 1
    return sorted(counted.items(), key=lambda item: -item[1])


def open_edit(
    dashboard: Dashboard, row: JobRow, find_changes: Callable[[LaunchRecord | None], Mapping[str, str]] | None = None
) -> None:
    """Open the form with every value of a job's launch, or with what its backend tells of it.

    Args:
        dashboard: the app.
        row: the job.
        find_changes: returns what differs, by the name of the argument or run option; called off the event loop.
    """
    from ..launch.foreign_job import ForeignJob, foreign_job
    from ..launch.screen import LaunchScreen

    def find() -> tuple[LaunchRecord | None, ForeignJob | None, Mapping[str, str]]:
        record, job = dashboard.runner.journal.find(row.handle), None
        if record is None:
            job = foreign_job(dashboard.runner, row.handle)
        elif not record.component:
            job = ForeignJob(record.app_def(), record.scheduler, record.cfg)
        changes = find_changes(record) if find_changes is not None else {}
        return (None if job else record), job, changes

    async def edit() -> None:
        try:
            record, job, changes = await asyncio.to_thread(find)
        except Exception as error:
            dashboard.status.say(f"{row.name}: {describe_error(error)}", failed=True)
            return
        if job is not None and job.not_known:
            words = f"Unknown values of its launch: {', '.join(map(plain, job.not_known))}"
            dashboard.status.say(words, failed=True)
        dashboard.push_screen(LaunchScreen(record, job, changes=changes))

    dashboard.run_worker(edit(), group="actions", exit_on_error=False)


def _wrapped(sign: str, text: str, style: str) -> list[Text]:
    """Wrap a text into lines with a sign before the first."""
    lines = wrap(plain(text), TEXT_WIDTH - 4) or [""]
    return [Text(f"  {sign if number == 0 else ' '} {line}", style) for number, line in enumerate(lines)]


class RelaunchDialog(CountDialog):
    """Shows what has changed since; answers True or ``edit``.

    Args:
        rows: the jobs.
        changes: what has changed since the launch of each, by handle.
    """

    HELP_TITLE = "Relaunch"
    COUNT_FOR = "launch them"
    BINDINGS = [
        Binding("y", "confirm", "Launch again", id="dialog.relaunch", show=False),
        Binding("e", "edit", "Edit it instead", id="dialog.edit", show=False),
        Binding("j,down", "scroll(1)", "Down", id="dialog.down", show=False),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up", show=False),
    ]

    def __init__(self, rows: Sequence[JobRow], changes: Mapping[str, Sequence[Changed]]) -> None:
        super().__init__(len(rows))
        self._rows = rows
        self._changes = changes

    def heading(self) -> str:
        """Return the title, with how many jobs are meant."""
        return "Launch it again?" if len(self._rows) == 1 else f"Launch {count(len(self._rows), 'job')} again?"

    def lines(self) -> list[Text]:
        """Return which job it is, or of how many something has changed."""
        glyphs = glyphs_of(self.app)
        if len(self._rows) == 1:
            name = name_text(self._rows[0].name, TEXT_WIDTH, glyphs, bold=True)
            words = "Some values of its launch are unknown:" if self._is_unknown else "Changed since its launch:"
            return [name, Text(), Text(words, STYLES.muted)]
        changed = len(self._changes)
        words = f"{changed:,} of them have changes since their launch:" if changed else "Nothing has changed."
        return [Text(words, STYLES.muted)]

    @property
    def _is_unknown(self) -> bool:
        """Whether parts of the launch of a job are unknown."""
        return any(change.then == _NOT_KNOWN for changes in self._changes.values() for change in changes)

    def compose_question(self) -> ComposeResult:
        """Yield what has changed; it may be longer than the screen."""
        with VerticalScroll(id="relaunch-changes", can_focus=False):
            yield Static(Text("\n", no_wrap=True).join(self._changed()), markup=False)
        words = "" if self._is_unknown or not self._changes else "Everything else is unchanged.\n"
        yield Static(Text(words, STYLES.muted), markup=False)
        yield from super().compose_question()

    def _changed(self) -> list[Text]:
        """Return each change: what it is, what it was, what it is now."""
        lines: list[Text] = []
        for change, jobs in summed_up(self._changes):
            what = [Text(line, STYLES.text) for line in wrap(plain(change.what), TEXT_WIDTH - 12) or [""]]
            if len(self._rows) > 1:
                what[-1].append(f"   {count(jobs, 'job')}", STYLES.faint)
            lines += [*what, *_wrapped("-", change.then, STYLES.removed), *_wrapped("+", change.now, STYLES.added)]
        return [*lines, Text()]

    def compose_buttons(self) -> ComposeResult:
        """Yield the harmless button, the other, and what else there is."""
        yield Button("Do not launch", compact=True, id="keep")
        jobs = f" {count(len(self._rows), 'job')}" if self.asks_for_count else ""
        key = "enter" if jobs else key_of(self, "dialog.relaunch")
        label = Text(key, STYLES.failed).append(f" Launch{jobs} again", STYLES.text)
        yield Button(label, compact=True, id="confirm")
        hint = Text(end="")
        if len(self._rows) == 1:
            hint = key_text(self, "dialog.edit", "edit   ")
        hint.append_text(key_text(self, "dialog.back", "back"))
        yield Static(hint, markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to edit where it is one job."""
        return not (action == "edit" and len(self._rows) > 1)

    def action_edit(self) -> None:
        """Open the form instead."""
        self.dismiss("edit")

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#relaunch-changes").scroll_relative(y=rows, animate=False)
