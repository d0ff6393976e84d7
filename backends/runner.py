"""The one door to the schedulers: launch, list, describe, read logs, cancel and delete jobs by app handle."""

from __future__ import annotations

import builtins
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ..specs.errors import ReadOnlyError, SchedulerError
from ..specs.handles import make_app_handle, parse_app_handle
from .abilities import ChecksBackend, OwnsJobs, PrunesJobs
from .job import Job
from .scheduler_pool import SchedulerPool

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..logs.spool.spools import LogSpools
    from ..specs.roles import AppDef, AppDryRunInfo
    from ..specs.status import AppState
    from ..specs.workspace import Workspace
    from .api import (
        Finding,
        ListAppResponse,
        NameFault,
        Scheduler,
        WorkspaceListing,
    )
    from .history.cancellations import Cancellations
    from .history.journal import Journal, LaunchRecord
    from .history.launch_record import LaunchOrigin
    from .history.provenance import Changed, GitStates
    from .launcher import Launcher
    from .plugin.found import FoundScheduler, Unreadable
    from .shared.progress import Progress

logger = logging.getLogger(__name__)


class Runner:
    """Submits and watches apps on any scheduler, and keeps the journal of it.

    Every method may be called from any thread. Schedulers are made when they are first asked for.

    Args:
        session_name: the session part of new handles; TorchX's command line uses ``torchx``.
        journal: where launches are recorded.
        read_only: refuse whatever would change a job.
        scheduler_params: keyword arguments of scheduler factories, by scheduler name.
        contexts: the contexts in which a scheduler is asked, by its name; each is a scheduler of its own.
        schedulers: schedulers that exist already, by name; the others are made. `close` closes all.
        spool_limits: bytes that are kept of logs which are no files here: of one job, and of all.
        most_replicas: an app of more replicas, in all its roles, is refused.
    """

    def __init__(
        self,
        session_name: str = "torchx",
        *,
        journal: Journal | None = None,
        read_only: bool = False,
        scheduler_params: Mapping[str, Mapping[str, Any]] | None = None,
        contexts: Mapping[str, Sequence[str]] | None = None,
        schedulers: Mapping[str, Scheduler[Any]] | None = None,
        spool_limits: tuple[int, int] | None = None,
        most_replicas: int = sys.maxsize,
    ) -> None:
        self.session_name, self.read_only = session_name, read_only
        self._journal = journal
        self._cancelled: Cancellations | None = None
        self._schedulers = SchedulerPool(session_name, scheduler_params, contexts, schedulers)
        self._lock = threading.RLock()
        self._remembered: dict[str, tuple[AppState, str]] = {}
        self._launches: Launcher | None = None
        self._spool_limits, self._most_replicas = spool_limits, most_replicas
        self._spools: LogSpools | None = None

    @property
    def journal(self) -> Journal:
        """What was launched."""
        with self._lock:
            if self._journal is None:
                from .history.journal import Journal

                self._journal = Journal()
            return self._journal

    @property
    def cancellations(self) -> Cancellations:
        """Which jobs were cancelled."""
        with self._lock:
            if self._cancelled is None:
                from .history.cancellations import Cancellations

                self._cancelled = Cancellations(self.journal)
            return self._cancelled

    @property
    def _launcher(self) -> Launcher:
        with self._lock:
            if self._launches is None:
                from .launcher import Launcher

                self._launches = Launcher(self._schedulers, self.journal, self.session_name, self._most_replicas)
            return self._launches

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every scheduler that was made, end every log that is read; jobs that run go on."""
        with self._lock:
            spools, self._spools = self._spools, None
        for opened in (self._launches, spools):
            if opened is not None:
                opened.close()
        self._schedulers.close()

    # Schedulers

    def scheduler_names(self) -> builtins.list[str]:
        """Return the names of all schedulers in their order; the first is TorchX's default."""
        return self._schedulers.names()

    def watched_schedulers(self) -> builtins.list[str]:
        """Return the names of the schedulers whose jobs are shown: those that are set up here."""
        return self._schedulers.watched()

    def scheduler_plugins(self) -> tuple[builtins.list[FoundScheduler], builtins.list[Unreadable]]:
        """Return the schedulers of other packages, and what should register some and cannot be read."""
        from .registry import scheduler_plugins

        return scheduler_plugins()

    def default_scheduler(self) -> str:
        """Return the first scheduler that is set up here and can be used now; the first of all where none can."""
        names = self.scheduler_names()
        usable = (
            name for name in self.watched_schedulers() if all(finding.level != "error" for finding in self.check(name))
        )
        return next(usable, names[0])

    def scheduler(self, name: str) -> Scheduler[Any]:
        """Return the scheduler ``name``, see `SchedulerPool.get`."""
        return self._schedulers.get(name)

    def is_set_up(self, name: str) -> bool:
        """Return whether a scheduler is set up here; it is asked nothing."""
        from .registry import is_set_up

        return is_set_up(name)

    def job(self, handle: str) -> Job:
        """Return the job of a handle; its scheduler is asked nothing.

        Raises:
            MalformedAppHandleException: it is not a handle.
        """
        return Job(self, handle)

    def check(self, name: str) -> builtins.list[Finding]:
        """Check a scheduler's backend, see `ChecksBackend`."""
        scheduler = self.scheduler(name)
        return scheduler.check() if isinstance(scheduler, ChecksBackend) else []

    # Launching

    def preflight(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> builtins.list[Finding]:
        """Find what would go wrong with a launch that the scheduler itself would accept."""
        return self._launcher.preflight(app, scheduler, cfg)

    def list_workspace(self, workspace: Workspace, is_wanted: Callable[[], bool] = lambda: True) -> WorkspaceListing:
        """List what of a workspace would be shipped, see `list_workspace`."""
        from .workspace import listing

        return listing.list_workspace(workspace, is_wanted)

    def check_names(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> builtins.list[NameFault]:
        """Return the names that the scheduler refuses or changes, see `ChecksNames`."""
        return self._launcher.check_names(app, scheduler, cfg)

    def dryrun(
        self,
        app: AppDef,
        scheduler: str,
        cfg: Mapping[str, Any] | None = None,
        workspace: Workspace | str | None = None,
        parent_run_id: str | None = None,
    ) -> AppDryRunInfo[Any]:
        """Return the request that `run` would send, see `Launcher.dryrun`; ``app`` is not changed."""
        from .launcher import with_parent, workspace_text

        return self._launcher.dryrun(with_parent(app, parent_run_id), scheduler, cfg or {}, workspace_text(workspace))

    @overload
    def run(
        self,
        app: AppDef,
        scheduler: str,
        cfg: Mapping[str, Any] | None = ...,
        workspace: Workspace | str | None = ...,
        parent_run_id: str | None = ...,
        *,
        origin: LaunchOrigin | None = ...,
        progress: Progress | None = ...,
    ) -> str: ...
    @overload
    def run(
        self, app: AppDef, scheduler: str, *args: Any, dryrun: Literal[True], **more: Any
    ) -> AppDryRunInfo[Any]: ...
    def run(
        self,
        app: AppDef,
        scheduler: str,
        cfg: Mapping[str, Any] | None = None,
        workspace: Workspace | str | None = None,
        parent_run_id: str | None = None,
        *,
        dryrun: bool = False,
        origin: LaunchOrigin | None = None,
        progress: Progress | None = None,
    ) -> str | AppDryRunInfo[Any]:
        """Launch ``app`` and return its handle, see `Launcher.run`; or what `dryrun` gives.

        Raises:
            ReadOnlyError: this runner may not change anything.
            TorchXTuiError: nothing was launched.
        """
        if dryrun:
            return self.dryrun(app, scheduler, cfg, workspace, parent_run_id)
        from .launcher import with_parent, workspace_text

        self.refuse_if_read_only("Launching a job")
        child, shipped = with_parent(app, parent_run_id), workspace_text(workspace)
        return self._launcher.run(child, scheduler, cfg or {}, shipped, origin=origin, progress=progress)

    def relaunch(self, handle: str, progress: Progress | None = None) -> str:
        """Launch a job again as it was, and return the new handle; see `run`.

        Raises:
            UnknownAppException: neither the journal nor the backend knows what it was.
        """
        from .launcher import earlier_launch

        app, scheduler, cfg, shipped, origin = earlier_launch(
            handle, self.journal.find(handle), self.job(handle).describe
        )
        return self.run(app, scheduler, cfg, shipped, origin=origin, progress=progress)

    def changed_since(
        self, record: LaunchRecord, config: Mapping[str, str] | None = None, now: GitStates | None = None
    ) -> builtins.list[Changed]:
        """Compare now with the time of a launch: git commit, images, config; see `changed_since`.

        Raises:
            UnknownSchedulerException: there is none of the record's name.
        """
        from .history.provenance import GitStates, changed_since

        return changed_since(record, self.scheduler(record.scheduler), now or GitStates(), config)

    # Watching

    def list(self, scheduler: str, cfg: Mapping[str, Any] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that a scheduler knows, where ``cfg`` tells it to look; handles are filled in.

        Raises:
            SchedulerError: the scheduler answered with something else.
        """
        from .types import ListAppResponse, is_usable

        scheduler = self._schedulers.resolve_context(scheduler, cfg or {})
        apps = self.scheduler(scheduler).list(cfg)
        prefix, usable = make_app_handle(scheduler, self.session_name, ""), []
        # One pass: each costs milliseconds for ten thousand jobs.
        for app in apps if isinstance(apps, (list, tuple)) else [None]:
            if not isinstance(app, ListAppResponse):
                raise SchedulerError(f"{scheduler} did not answer with a list of jobs, but with {apps!r:.80}")
            if is_usable(app):
                handle = prefix + app.app_id
                if app.app_handle != handle:
                    app.app_handle = handle
                usable.append(app)
        if not self.scheduler(scheduler).capabilities.remembers_cancel:
            self.cancellations.correct_rows(usable)
        return usable

    def remember(self, handle: str, state: AppState, message: str) -> None:
        """Keep a job's last known state in the journal, for when its backend no longer knows the job."""
        if self._remembered.get(handle) == (state, message):
            return
        record = self.journal.find_all([handle], 0.1).get(handle)  # a long journal is not read whole for others' jobs
        if record is None:
            return
        self._remembered[handle] = state, message
        if (record.state, record.message) != (state.name, message):
            app_id = parse_app_handle(handle).app_id
            self.journal.note(record, state=state.name, message=message, app_id=app_id, state_at=time.time())

    def remove_stale_spools(self) -> None:
        """Remove, in the background, the spools of programs that were killed."""
        threading.Thread(target=self.log_spools().remove_stale, name="stale-spools", daemon=True).start()

    def log_spools(self) -> LogSpools:
        """Return the spools of logs that are not files."""
        from ..logs.spool.spools import LogSpools, SpoolLimits

        with self._lock:
            self._spools = self._spools or LogSpools(SpoolLimits(*self._spool_limits) if self._spool_limits else None)
            return self._spools

    def complete_spools(self, handle: str) -> None:
        """Read the rest of a job's logs that were read before, as they are about to be lost."""
        if (spools := self._spools) is not None:
            spools.complete(handle)

    # Ending

    def prune(self, scheduler: str, *, dryrun: bool = False) -> builtins.list[str]:
        """Remove what a backend keeps of finished jobs beyond the age and size that its settings allow.

        The handles of what was removed are returned; of what would be, where ``dryrun`` removes nothing.

        Raises:
            ReadOnlyError: this runner may not change anything.
            SchedulerError: the backend has no such settings.
        """
        if not dryrun:
            self.refuse_if_read_only("Removing finished jobs")
        pruning = self.scheduler(scheduler)
        if not isinstance(pruning, PrunesJobs):
            hint = "give an age in days, such as --older-than 7"
            raise SchedulerError(f"{scheduler} has no setting for how long finished jobs are kept", hint)
        return [make_app_handle(scheduler, self.session_name, app_id) for app_id in pruning.prune(dryrun=dryrun)]

    # Jobs that end with this process

    def own_jobs(self) -> builtins.list[str]:
        """Return the handles of running jobs that this process launched and that were not detached."""
        return [
            make_app_handle(name, self.session_name, app_id)
            for name, scheduler in self._schedulers.made()
            if isinstance(scheduler, OwnsJobs)
            for app_id in scheduler.own_app_ids()
        ]

    def detach(self, handle: str) -> None:
        """Let a job go on when this process ends."""
        job = self.job(handle)
        if isinstance(scheduler := job.scheduler, OwnsJobs):
            scheduler.detach(job.app_id)

    def end_own_jobs(self) -> None:
        """Cancel the jobs of `own_jobs`; meant for a process that is told to end."""
        for _, scheduler in self._schedulers.made():
            if isinstance(scheduler, OwnsJobs):
                scheduler.end_own()

    def refuse_if_read_only(self, what: str) -> None:
        """Raise `ReadOnlyError` if nothing may be changed; ``what`` begins its message."""
        if self.read_only:
            raise ReadOnlyError(what)
