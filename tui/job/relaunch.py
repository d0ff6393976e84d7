"""Launching jobs again as they were: at once, or, where the world has changed since, after a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from textual.app import App

from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import count
from ..rows import JobRow
from ..ui.dialog import TEXT_WIDTH, AskDialog
from ..ui.job_cells import name_text
from ..ui.palette import Text
from ..ui.theme import glyphs_of
from .bulk import act_on_jobs, job_names

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...backends.history.provenance import Changed
    from ..dashboard import Dashboard
    from ..rows import JobRow


_NOT_KNOWN = "unknown"


def relaunch(app: Dashboard, rows: Sequence[JobRow]) -> None:
    """Launch one unchanged job again at once, else ask; refuse jobs that are already being launched again."""
    handles = {row.handle for row in rows}
    if handles & app.relaunching:
        app.status.say(f"{job_names(rows)}: already being launched again")
        return
    app.relaunching |= handles
    app.run_worker(_relaunch(app, rows, handles), group="actions")


async def _relaunch(app: Dashboard, rows: Sequence[JobRow], handles: set[str]) -> None:
    try:
        changes, known = await asyncio.to_thread(_find_changes, app, rows)
        is_one = len(handles) == 1
        answer = "y"
        if changes or not is_one:
            answer = await app.push_screen_wait(relaunch_dialog(app, rows, changes))
        if answer == "y":
            after = "again, as it was" if known and not changes and is_one else "again"
            progress = app.launches.begin(job_names(rows))
            act = partial(app.runner.relaunch, progress=progress)
            app.post_message(await asyncio.to_thread(act_on_jobs, rows, act, "Launched", after, progress=progress))
    finally:
        app.relaunching -= handles
    if answer == "e":
        open_edit(app, rows[0])
    elif not answer:
        app.status.say("Nothing launched")


def _find_changes(app: Dashboard, rows: Sequence[JobRow]) -> tuple[dict[str, list[Changed]], bool]:
    """Return the differences from each launch by handle, and whether all launches were recorded in full."""
    from ...backends.history.provenance import Changed, GitStates
    from ...settings.launch_defaults import config_now

    runner, now = app.runner, GitStates()
    found: dict[str, list[Changed]] = {}
    known = True
    for row in rows:
        record = runner.journal.find(row.handle)
        known = known and record is not None and bool(record.world)
        try:
            if record is None:
                described = runner.job(row.handle).describe()
                taken = described.not_known if described is not None else {}
                changed = [Changed(what, _NOT_KNOWN, text) for what, text in taken.items()]
            else:
                config = config_now(app.settings, app.profile, record, runner)
                changed = runner.changed_since(record, config, now)
        except Exception:  # what is wrong with the scheduler is said by the launch itself
            known = False
            continue
        if changed:
            found[row.handle] = changed
    return found, known


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

    dashboard.run_worker(edit(), group="actions")


def _wrapped(sign: str, text: str, style: str) -> list[Text]:
    """Wrap a text into lines with a sign before the first."""
    lines = wrap(plain(text), TEXT_WIDTH - 4) or [""]
    return [Text(f"  {sign if number == 0 else ' '} {line}", style) for number, line in enumerate(lines)]


def relaunch_dialog(app: App[Any], rows: Sequence[JobRow], changes: Mapping[str, Sequence[Changed]]) -> AskDialog:
    """Return the question before jobs are launched again, with what has changed since.

    Args:
        app: the app.
        rows: the jobs.
        changes: what has changed since the launch of each, by handle.
    """
    is_unknown = any(change.then == _NOT_KNOWN for each in changes.values() for change in each)
    details: list[Text] = []
    for change, jobs in summed_up(changes):
        what = [Text(line, "$style-text") for line in wrap(plain(change.what), TEXT_WIDTH - 12) or [""]]
        if len(rows) > 1:
            what[-1].append(f"   {count(jobs, 'job')}", "$style-faint")
        details += [*what, *_wrapped("-", change.then, "$style-removed"), *_wrapped("+", change.now, "$style-added")]
    details.append(Text())
    note = "Everything else is unchanged.\n" if changes and not is_unknown else ""
    buttons = {"": "Do not launch", "y": "Launch again", "e": "Edit"}
    if len(rows) == 1:
        words = "Some values of its launch are unknown:" if is_unknown else "Changed since its launch:"
        body = [name_text(rows[0].name, TEXT_WIDTH, glyphs_of(app), bold=True), Text(), Text(words, "$style-muted")]
        return AskDialog("Launch it again?", body, buttons, details=details, note=note)
    jobs_text = count(len(rows), "job")
    words = f"{len(changes):,} of them have changes since their launch:" if changes else "Nothing has changed."
    buttons = {"": "Do not launch", "y": f"Launch {jobs_text} again"}
    body = [Text(words, "$style-muted")]
    return AskDialog(f"Launch {jobs_text} again?", body, buttons, len(rows), details=details, note=note)
