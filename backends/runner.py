"""The one door to the schedulers: launch, list, describe, read logs, cancel and delete jobs by app handle."""

from __future__ import annotations

import builtins
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import specs
from .scheduler_pool import SchedulerPool

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ..specs import AppDef, AppDryRunInfo, AppState, AppStatus, Workspace, runopts
    from .api import (
        Capabilities,
        DescribeAppResponse,
        Finding,
        ListAppResponse,
        NameFault,
        ReplicaUsage,
        Scheduler,
        Stream,
        WorkspaceListing,
    )
    from .cancelled import Cancellations
    from .journal import Journal, LaunchRecord
    from .launch_changes import Changed
    from .launch_origin import LaunchOrigin
    from .launch_world import WorldNow
    from .launching import Launcher
    from .logs.replica_log import ReplicaLog
    from .logs.spools import LogSpools
    from .progress import Progress
    from .torchx_plugin.found import FoundScheduler, Unreadable

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
        spool_limits: bytes that are kept of logs which are no files here: of one job, and of all.
    """

    def __init__(
        self,
        session_name: str = "torchx",
        *,
        journal: Journal | None = None,
        read_only: bool = False,
        scheduler_params: Mapping[str, Mapping[str, Any]] | None = None,
        contexts: Mapping[str, Sequence[str]] | None = None,
        spool_limits: tuple[int, int] | None = None,
    ) -> None:
        self.session_name = session_name
        self._journal = journal
        self._cancelled: Cancellations | None = None
        self.read_only = read_only
        self._schedulers = SchedulerPool(session_name, scheduler_params, contexts)
        self._lock = threading.RLock()
        self._launches: Launcher | None = None
        self._spool_limits = spool_limits
        self._spools: LogSpools | None = None

    @property
    def journal(self) -> Journal:
        """What was launched."""
        with self._lock:
            if self._journal is None:
                from .journal import Journal

                self._journal = Journal()
            return self._journal

    @property
    def _cancellations(self) -> Cancellations:
        with self._lock:
            if self._cancelled is None:
                from .cancelled import Cancellations

                self._cancelled = Cancellations(self.journal)
            return self._cancelled

    @property
    def _launcher(self) -> Launcher:
        with self._lock:
            if self._launches is None:
                from .launching import Launcher

                self._launches = Launcher(self._schedulers, self.journal, self.session_name)
            return self._launches

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every scheduler that was made, end every log that is read; jobs that run go on."""
        with self._lock:
            spools, self._spools = self._spools, None
            launches = self._launches
        if launches is not None:
            launches.close()
        if spools is not None:
            spools.close()
        self._schedulers.close()

    # Schedulers

    def scheduler_names(self) -> list[str]:
        """Return the names of all schedulers in their order; the first is TorchX's default."""
        return self._schedulers.names()

    def watched_schedulers(self) -> list[str]:
        """Return the names of the schedulers whose jobs are shown: of one that nobody has set up, no word is said."""
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
        """Return the scheduler ``name``, made at the first call.

        Raises:
            UnknownSchedulerException: there is none of that name.
        """
        return self._schedulers.get(name)

    def capabilities(self, name: str) -> Capabilities:
        """Return what the scheduler ``name`` can do."""
        return self.scheduler(name).capabilities

    def run_opts(self, name: str) -> runopts:
        """Return the run options of the scheduler ``name``."""
        return self.scheduler(name).run_opts()

    def known_values(self, name: str) -> dict[str, builtins.list[str]]:
        """Return values that run options of the scheduler ``name`` can have, see `Scheduler.known_values`."""
        return self.scheduler(name).known_values()

    def check(self, name: str) -> list[Finding]:
        """Return what the scheduler found on its side: the engine's version, or why it cannot be used."""
        return self.scheduler(name).check()

    # Launching

    def expect_launch(self, scheduler: str) -> None:
        """Tell a scheduler that a launch is about to be asked for, see `Scheduler.expect_launch`."""
        if not self.read_only:
            self.scheduler(scheduler).expect_launch()

    def preflight(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> list[Finding]:
        """Return what would go wrong with a launch that the scheduler itself would accept."""
        return self._launcher.preflight(app, scheduler, cfg)

    def list_workspace(self, workspace: Workspace, is_wanted: Callable[[], bool] = lambda: True) -> WorkspaceListing:
        """Return what of a workspace would be shipped, with sizes and rules; it ends where it is not wanted any more.

        Raises:
            SchedulerError: a project is missing or cannot be read.
        """
        from .workspace.listing import list_workspace

        return list_workspace(workspace, is_wanted)

    def check_names(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> builtins.list[NameFault]:
        """Return the names that the scheduler refuses or changes, see `Scheduler.check_names`."""
        return self._launcher.check_names(app, scheduler, cfg)

    def dryrun(
        self, app: AppDef, scheduler: str, cfg: Mapping[str, Any], workspace: str | None = None
    ) -> AppDryRunInfo[Any]:
        """Return the request that `run` would send, see `Launcher.dryrun`; ``app`` is not changed."""
        return self._launcher.dryrun(app, scheduler, cfg, workspace)

    def run(
        self,
        app: AppDef,
        scheduler: str,
        cfg: Mapping[str, Any],
        workspace: str | None = None,
        *,
        origin: LaunchOrigin | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Launch ``app`` and return its handle, see `Launcher.run`.

        Raises:
            ReadOnlyError: this runner may not change anything.
            TorchXTuiError: nothing was launched.
        """
        self._refuse_if_read_only("Launching a job")
        return self._launcher.run(app, scheduler, cfg, workspace, origin=origin, progress=progress)

    def relaunch(self, handle: str, progress: Progress | None = None) -> str:
        """Launch a job again as it was, and return the new handle.

        Args:
            handle: the job's handle.
            progress: see `run`.

        Raises:
            UnknownAppException: neither the journal nor the backend knows what it was.
        """
        record = self.journal.find(handle)
        if record is not None:
            origin = record.origin(relaunch_of=record.id)
            return self.run(
                record.app_def(),
                record.scheduler,
                record.cfg,
                record.workspace or None,
                origin=origin,
                progress=progress,
            )
        name, _, _ = specs.parse_app_handle(handle)
        described = self.describe(handle)
        if described is None or not described.roles:
            raise specs.UnknownAppException(handle)
        app = specs.AppDef(name=described.name or described.app_id, roles=described.roles)
        return self.run(app, name, described.cfg, progress=progress)

    def changed_since(
        self, record: LaunchRecord, config: Mapping[str, str] | None = None, now: WorldNow | None = None
    ) -> builtins.list[Changed]:
        """Return what is another than at a launch: the git commit, images, config.

        Args:
            record: the launch's.
            config: what config gives now, see `LaunchOrigin.config`; None where that is not to be compared.
            now: remembers what is around now, for several launches.

        Raises:
            UnknownSchedulerException: there is none of the record's name.
        """
        from .launch_changes import changed_since
        from .launch_world import WorldNow

        return changed_since(record, self.scheduler(record.scheduler), now or WorldNow(), config)

    # Watching

    def list(self, scheduler: str, cfg: Mapping[str, Any] | None = None) -> list[ListAppResponse]:
        """Return every app that the scheduler knows, handles filled in.

        Args:
            scheduler: the scheduler's name.
            cfg: run options that say where it looks, such as a context or a namespace.

        Raises:
            SchedulerError: the scheduler answered with something else.
        """
        from .responses import ListAppResponse

        scheduler = self._schedulers.at(scheduler, cfg or {})
        apps = self.scheduler(scheduler).list(cfg)
        if not isinstance(apps, (list, tuple)) or not all(isinstance(app, ListAppResponse) for app in apps):
            raise specs.SchedulerError(f"{scheduler} did not answer with a list of jobs, but with {apps!r:.80}")
        for app in apps:
            app.app_handle = specs.make_app_handle(scheduler, self.session_name, app.app_id)
        if not self.capabilities(scheduler).remembers_cancel:
            self._cancellations.correct_rows(apps)
        return apps

    def subscribe(self, scheduler: str, on_change: Callable[[], object]) -> Callable[[], object] | None:
        """Let a scheduler tell of changes, see `Scheduler.subscribe`."""
        return self.scheduler(scheduler).subscribe(on_change)

    def describe(self, handle: str) -> DescribeAppResponse | None:
        """Return what the backend knows of a job, or None if it knows nothing of it."""
        name, _, app_id = specs.parse_app_handle(handle)
        described = self.scheduler(name).describe(app_id)
        if described is not None and not self.capabilities(name).remembers_cancel:
            self._cancellations.correct(described, self._own_handle(handle))
        return described

    def describe_native(self, handle: str) -> str:
        """Return what the backend itself says of a job, in its own form."""
        name, _, app_id = specs.parse_app_handle(handle)
        return self.scheduler(name).describe_native(app_id)

    def usage(self, handle: str) -> builtins.list[ReplicaUsage]:
        """Return what each running replica of a job uses now; nothing where its scheduler does not measure it."""
        name, _, app_id = specs.parse_app_handle(handle)
        scheduler = self.scheduler(name)
        return scheduler.usage(app_id) if scheduler.capabilities.usage else []

    def shell_command(self, handle: str, role_name: str, k: int) -> builtins.list[str]:
        """Return what opens a shell in a replica, see `Scheduler.shell_command`.

        Raises:
            ReadOnlyError: this runner may not change anything, and a shell can.
        """
        self._refuse_if_read_only("A shell")
        name, _, app_id = specs.parse_app_handle(handle)
        return self.scheduler(name).shell_command(app_id, role_name, k)

    def status(self, handle: str) -> AppStatus | None:
        """Return a job's status, or None if the backend knows nothing of it."""
        described = self.describe(handle)
        return None if described is None else described.status()

    def wait(self, handle: str, interval: float = 0.2) -> AppStatus:
        """Wait for a job's end and return its status; ask every ``interval`` seconds.

        The state is UNKNOWN where the job ended and its backend could not tell how.

        Raises:
            UnknownAppException: the backend does not know the job.
        """
        while True:
            described = self.describe(handle)
            if described is None:
                raise specs.UnknownAppException(handle)
            if described.has_ended:
                return described.status()
            time.sleep(interval)

    def remember(self, handle: str, state: AppState, message: str) -> None:
        """Keep a job's last known state in the journal, for when its backend no longer knows it."""
        record = self.journal.find(handle)
        if record is not None and (record.state, record.message) != (state.name, message):
            self.journal.note(record, state=state.name, message=message, state_at=time.time(), app_id=_app_id(handle))

    def log_lines(
        self,
        handle: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        """Return the log lines of replica ``k`` of a role; its ``close()`` ends a blocked read."""
        name, _, app_id = specs.parse_app_handle(handle)
        return self.scheduler(name).log_iter(app_id, role_name, k, regex, since, until, should_tail, streams)

    def log_path(self, handle: str, role_name: str, k: int, streams: Stream) -> Path | None:
        """Return the file that holds a replica's log, or None where the backend keeps none here."""
        name, _, app_id = specs.parse_app_handle(handle)
        return self.scheduler(name).log_path(app_id, role_name, k, streams)

    def replica_log(self, handle: str, role_name: str, k: int) -> ReplicaLog:
        """Return where a replica's log is kept: in files, or in a spool that is filled while somebody reads it."""
        from .logs.replica_log import ReplicaLog
        from .responses import Stream

        paths = {stream: self.log_path(handle, role_name, k, stream) for stream in Stream}
        if any(paths.values()):
            return ReplicaLog(role_name, k, paths[Stream.COMBINED], paths[Stream.STDOUT], paths[Stream.STDERR])
        from .logs.spools import SpooledLog
        from .streaming import ReplicaOrigin, gives_letters

        name, _, _ = specs.parse_app_handle(handle)
        scheduler = self.scheduler(name)
        letters = gives_letters(scheduler)
        return ReplicaLog(
            role_name,
            k,
            spool=SpooledLog(
                self._log_spools(),
                handle,
                role_name,
                k,
                lambda stream: ReplicaOrigin(self, handle, role_name, k, Stream(stream)),
                parted=not letters,
                streams={Stream.STDOUT, Stream.STDERR} <= set(scheduler.capabilities.log_streams),
            ),
        )

    def remove_stale_spools(self) -> None:
        """Remove, in the background, what programs that ended without a word have left of logs in the cache folder."""
        spools = self._log_spools()
        threading.Thread(target=spools.remove_stale, name="stale-spools", daemon=True).start()

    def _log_spools(self) -> LogSpools:
        from .logs.spools import LogSpools, SpoolLimits

        with self._lock:
            if self._spools is None:
                self._spools = LogSpools(SpoolLimits(*self._spool_limits) if self._spool_limits else None)
            return self._spools

    # Ending

    def cancel(self, handle: str) -> None:
        """Ask the backend to stop a job; one that is final or unknown is left alone.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        self._refuse_if_read_only("Cancelling a job")
        name, _, app_id = specs.parse_app_handle(handle)
        self._cancellations.cancel(self.scheduler(name), app_id, self._own_handle(handle))

    def delete(self, handle: str) -> None:
        """Cancel a job if it runs, and remove what the backend and the journal keep of it.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        self._refuse_if_read_only("Deleting a job")
        name, _, app_id = specs.parse_app_handle(handle)
        self.scheduler(name).delete(app_id)
        self._cancellations.forget(self._own_handle(handle))
        record = self.journal.find(handle)
        if record is not None:
            self.journal.forget(record)

    def prune(self, scheduler: str, *, dryrun: bool = False) -> builtins.list[str]:
        """Remove what a backend keeps of finished jobs beyond the age and size that its settings allow.

        Args:
            scheduler: the scheduler's name.
            dryrun: remove nothing.

        Returns:
            The handles of what was removed, or would be.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        if not dryrun:
            self._refuse_if_read_only("Removing finished jobs")
        chosen = self.scheduler(scheduler)
        # A scheduler of another package may not know a dry run.
        app_ids = chosen.prune(dryrun=True) if dryrun else chosen.prune()
        return [specs.make_app_handle(scheduler, self.session_name, app_id) for app_id in app_ids]

    # Jobs that end with this process

    def own_jobs(self) -> list[str]:
        """Return the handles of jobs that this process launched, that still run and that were not detached."""
        return [
            specs.make_app_handle(name, self.session_name, app_id)
            for name, scheduler in self._schedulers.made()
            for app_id in scheduler.own_app_ids()
        ]

    def detach(self, handle: str) -> None:
        """Let a job go on when this process ends."""
        name, _, app_id = specs.parse_app_handle(handle)
        self.scheduler(name).detach(app_id)

    def end_own_jobs(self) -> None:
        """Cancel the jobs of `own_jobs`; meant for a process that is told to end."""
        for _, scheduler in self._schedulers.made():
            scheduler.end_own()

    def _own_handle(self, handle: str) -> str:
        """Return a handle with this runner's session: every session sees the same jobs."""
        name, _, app_id = specs.parse_app_handle(handle)
        return specs.make_app_handle(name, self.session_name, app_id)

    def _refuse_if_read_only(self, what: str) -> None:
        if self.read_only:
            raise specs.ReadOnlyError(what)


def _app_id(handle: str) -> str:
    return specs.parse_app_handle(handle).app_id
