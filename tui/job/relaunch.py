"""Launching jobs again as they were: at once, or, where the world has changed since, after a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from ...specs.errors import describe_error
from .bulk import act_on_jobs, job_names

if TYPE_CHECKING:
    from ...backends.history.provenance import Changed
    from ..app import TorchXTuiApp
    from ..rows import JobRow


@dataclass
class RelaunchAsked(Message):
    """Jobs are to be launched again, and the world is another than it was.

    Attributes:
        relaunch: what launches them.
        changes: what has changed since the launch of each, by handle; those of which nothing has are left out.
    """

    relaunch: Relaunch
    changes: dict[str, list[Changed]]


class Relaunch:
    """Launches jobs again.

    Args:
        app: the app.
        rows: the jobs.
    """

    def __init__(self, app: TorchXTuiApp, rows: Sequence[JobRow]) -> None:
        self._app = app
        self.rows = list(rows)

    def start(self) -> None:
        """Look, off the event loop, what has changed; launch at once where nothing has, else ask."""
        self._app.run_worker(self._check, thread=True, group="actions", exit_on_error=False)

    def launch(self) -> None:
        """Launch, whatever has changed."""
        self._app.run_worker(partial(self._launch, "again"), thread=True, group="actions", exit_on_error=False)

    def edit(self) -> None:
        """Open the form with the first job's launch instead."""
        open_edit(self._app, self.rows[0])

    def _check(self) -> None:
        changes, known = self._changes()
        if changes:
            self._app.post_from_thread(RelaunchAsked(self, changes))
        else:
            self._launch("again, as it was" if known and len(self.rows) == 1 else "again")

    def _changes(self) -> tuple[dict[str, list[Changed]], bool]:
        """Return what has changed since each launch of which something has, and whether of all enough was noted."""
        from ...backends.history.provenance import WorldNow
        from ...settings.config_now import config_now

        runner, now = self._app.runner, WorldNow()
        found: dict[str, list[Changed]] = {}
        known = True
        for row in self.rows:
            record = runner.journal.find(row.handle)
            if record is None:
                known = False
                continue
            known = known and bool(record.world)
            try:
                config = config_now(self._app.settings, self._app.profile, record, runner)
                changed = runner.changed_since(record, config, now)
            except Exception:  # what is wrong with the scheduler is said by the launch itself
                known = False
                continue
            if changed:
                found[row.handle] = changed
        return found, known

    def _launch(self, after: str) -> None:
        app = self._app
        progress = app.launches.begin(job_names(self.rows))
        act = partial(app.runner.relaunch, progress=progress)
        app.post_from_thread(act_on_jobs(self.rows, act, "Launched", after, progress=progress))


def summed_up(changes: Mapping[str, Sequence[Changed]]) -> list[tuple[Changed, int]]:
    """Return each change with the number of jobs that it is one of, the most frequent first."""
    counted: dict[Changed, int] = {}
    for changed in changes.values():
        for one in changed:
            counted[one] = counted.get(one, 0) + 1
    return sorted(counted.items(), key=lambda item: -item[1])


def open_edit(dashboard: TorchXTuiApp, row: JobRow) -> None:
    """Open the form with every value of a job's launch, or with what its backend tells of it."""
    from ..launch.foreign_job import ForeignJob, foreign_job
    from ..launch.messages import EditReady
    from ..messages import ActionDone

    def work() -> None:
        try:
            record = dashboard.runner.journal.find(row.handle)
            if record is not None and record.component:
                ready = EditReady(record)
            elif record is not None:
                ready = EditReady(job=ForeignJob(record.app_def(), record.scheduler, record.cfg))
            else:
                ready = EditReady(job=foreign_job(dashboard.runner, row.handle))
            dashboard.post_from_thread(ready)
        except Exception as error:
            dashboard.post_from_thread(ActionDone(f"{row.name}: {describe_error(error)}", failed=True))

    dashboard.run_worker(work, thread=True, group="actions", exit_on_error=False)
