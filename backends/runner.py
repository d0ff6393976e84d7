"""The one door to the schedulers: launch, list, describe, read logs, cancel and delete jobs by app handle."""

from __future__ import annotations

import builtins
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..specs.errors import JobNotFoundError, ReadOnlyError, SchedulerError, UnknownAppException
from ..specs.handles import make_app_handle, parse_app_handle
from .scheduler_pool import SchedulerPool
from .shared.outage import OnLost, ignore, until_answered, wait_for_end

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..logs.source.replica_log import ReplicaLog
    from ..logs.spool.spools import LogSpools
    from ..specs.roles import AppDef, AppDryRunInfo
    from ..specs.run_options import runopts
    from ..specs.status import AppState, AppStatus
    from ..specs.workspace import Workspace
    from .api import (
        Capabilities,
        CommandOutput,
        DescribeAppResponse,
        Finding,
        JobAction,
        ListAppResponse,
        NameFault,
        ReplicaUsage,
        Scheduler,
        Stream,
        WorkspaceListing,
    )
    from .history.cancellations import Cancellations
    from .history.journal import Journal, LaunchRecord
    from .history.launch_record import LaunchOrigin
    from .history.provenance import Changed, WorldNow
    from .launcher import Launcher
    from .plugin.found import FoundScheduler, Unreadable
    from .shared.progress import Progress

logger = logging.getLogger(__name__)

T = TypeVar("T")


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
    def _cancellations(self) -> Cancellations:
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

    def capabilities(self, name: str) -> Capabilities:
        """Return the capabilities of a scheduler."""
        return self.scheduler(name).capabilities

    def run_opts(self, name: str) -> runopts:
        """Return the run options of the scheduler ``name``."""
        return self.scheduler(name).run_opts()

    def known_values(self, name: str) -> dict[str, builtins.list[str]]:
        """Return values that run options of the scheduler ``name`` can have, see `Scheduler.known_values`."""
        return self.scheduler(name).known_values()

    def check(self, name: str) -> builtins.list[Finding]:
        """Check a scheduler's backend, see `Scheduler.check`."""
        return self.scheduler(name).check()

    # Launching

    def preflight(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> builtins.list[Finding]:
        """Find what would go wrong with a launch that the scheduler itself would accept."""
        return self._launcher.preflight(app, scheduler, cfg)

    def list_workspace(self, workspace: Workspace, is_wanted: Callable[[], bool] = lambda: True) -> WorkspaceListing:
        """List what of a workspace would be shipped, see `list_workspace`."""
        from .workspace import listing

        return listing.list_workspace(workspace, is_wanted)

    def check_names(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> builtins.list[NameFault]:
        """Return the names that the scheduler refuses or changes, see `Scheduler.check_names`."""
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

        self._refuse_if_read_only("Launching a job")
        child, shipped = with_parent(app, parent_run_id), workspace_text(workspace)
        return self._launcher.run(child, scheduler, cfg or {}, shipped, origin=origin, progress=progress)

    def relaunch(self, handle: str, progress: Progress | None = None) -> str:
        """Launch a job again as it was, and return the new handle; see `run`.

        Raises:
            UnknownAppException: neither the journal nor the backend knows what it was.
        """
        from .launcher import earlier_launch

        app, scheduler, cfg, shipped, origin = earlier_launch(handle, self.journal.find(handle), self.describe)
        return self.run(app, scheduler, cfg, shipped, origin=origin, progress=progress)

    def changed_since(
        self, record: LaunchRecord, config: Mapping[str, str] | None = None, now: WorldNow | None = None
    ) -> builtins.list[Changed]:
        """Compare now with the time of a launch: git commit, images, config; see `changed_since`.

        Raises:
            UnknownSchedulerException: there is none of the record's name.
        """
        from .history.provenance import WorldNow, changed_since

        return changed_since(record, self.scheduler(record.scheduler), now or WorldNow(), config)

    # Watching

    def list(self, scheduler: str, cfg: Mapping[str, Any] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that a scheduler knows, where ``cfg`` tells it to look; handles are filled in.

        Raises:
            SchedulerError: the scheduler answered with something else.
        """
        from .types import ListAppResponse, is_usable

        scheduler = self._schedulers.at(scheduler, cfg or {})
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
        if not self.capabilities(scheduler).remembers_cancel:
            self._cancellations.correct_rows(usable)
        return usable

    def missing_jobs(self, scheduler: str) -> str:
        """Return a sentence that says why the last list of a scheduler may lack jobs; empty if it is complete."""
        return str(self.scheduler(scheduler).missing_jobs())

    def subscribe(self, scheduler: str, on_change: Callable[[], object]) -> Callable[[], object] | None:
        """Let a scheduler tell of changes, see `Scheduler.subscribe`."""
        return self.scheduler(scheduler).subscribe(on_change)

    def describe(self, app_handle: str) -> DescribeAppResponse | None:
        """Describe a job; None if its backend does not know it. The journal keeps its state where that is news."""
        from .types import check_times

        name, _, app_id = parse_app_handle(app_handle)
        if (described := self.scheduler(name).describe(app_id)) is not None:
            check_times(described)
            if not self.capabilities(name).remembers_cancel:
                self._cancellations.correct(described, self._own_handle(app_handle))
            # Of a job that goes on the message may be another each time.
            message = described.msg.replace("<NONE>", "") if described.has_ended else ""
            self.remember(self._own_handle(app_handle), described.state, message)
        return described

    def describe_native(self, app_handle: str) -> str:
        """Describe a job in the backend's own form."""
        name, _, app_id = parse_app_handle(app_handle)
        return self.scheduler(name).describe_native(app_id)

    def usage(self, handle: str) -> builtins.list[ReplicaUsage]:
        """Measure what each running replica of a job uses now; nothing where its scheduler cannot."""
        name, _, app_id = parse_app_handle(handle)
        return self.scheduler(name).usage(app_id) if self.capabilities(name).usage else []

    def shell_command(self, handle: str, role_name: str, k: int) -> builtins.list[str]:
        """Return the command that opens a shell in a replica, see `Scheduler.shell_command`.

        Raises:
            ReadOnlyError: this runner may not change anything, and a shell can.
        """
        self._refuse_if_read_only("A shell")
        name, _, app_id = parse_app_handle(handle)
        return self.scheduler(name).shell_command(app_id, role_name, k)

    def run_beside(self, handle: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float) -> CommandOutput:
        """Run a command that changes nothing where a replica is, see `Scheduler.run_beside`."""
        name, _, app_id = parse_app_handle(handle)
        return self.scheduler(name).run_beside(app_id, role_name, k, argv, timeout_s)

    def status(self, app_handle: str) -> AppStatus | None:
        """Return a job's status, or None if the backend knows nothing of it."""
        described = self.describe(app_handle)
        return None if described is None else described.status()

    def wait(
        self, app_handle: str, wait_interval: float = 10, *, timeout: float | None = None, on_lost: OnLost = ignore
    ) -> AppStatus | None:
        """Wait for a job's end and return its status, or None if the backend knows nothing of it.

        The state is UNKNOWN where the job ended and its backend could not tell how. A backend that cannot be reached
        is asked again, see `until_answered`.

        Args:
            app_handle: the job's handle.
            wait_interval: seconds between two questions at most; a short job is asked for more often.
            timeout: how long to wait, in seconds.
            on_lost: called at each outage with the error.

        Raises:
            TimeoutError: the job has not ended in time; the message says what was known last.
        """
        ask = partial(self.until_answered, app_handle, partial(self.describe, app_handle), on_lost=on_lost)
        return wait_for_end(ask, app_handle, wait_interval, timeout)

    def until_answered(
        self, handle: str, ask: Callable[[], T], *, on_lost: OnLost = ignore, deadline: float | None = None
    ) -> T:
        """Return the answer of a job's backend, which is asked again while it cannot be reached, see `until_answered`.

        A scheduler that is not set up here, or cannot be loaded, is asked once.
        """
        name, _, _ = parse_app_handle(handle)
        self.scheduler(name)
        if not self._schedulers.is_set_up(name):
            return ask()
        return until_answered(ask, threading.Event(), on_lost=on_lost, deadline=deadline)

    def remember(self, handle: str, state: AppState, message: str) -> None:
        """Keep a job's last known state in the journal, for when its backend does not tell any more."""
        if self._remembered.get(handle) == (state, message):
            return
        self._remembered[handle] = state, message
        record = self.journal.find_all([handle], 0.1).get(handle)  # a long journal is not read whole for others' jobs
        if record is not None and (record.state, record.message) != (state.name, message):
            app_id = parse_app_handle(handle).app_id
            self.journal.note(record, state=state.name, message=message, app_id=app_id, state_at=time.time())

    def log_lines(
        self,
        app_handle: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        """Return the log lines of replica ``k`` of a role; its ``close()`` ends a blocked read.

        Raises:
            UnknownAppException: the backend does not know the job.
            ValueError: there is no such role, replica or stream, or the expression is malformed.
        """
        name, _, app = parse_app_handle(app_handle)
        try:
            return self.scheduler(name).log_iter(app, role_name, k, regex, since, until, should_tail, streams=streams)
        except JobNotFoundError as error:
            raise UnknownAppException(app_handle) from error

    def replica_log(self, handle: str, role_name: str, k: int) -> ReplicaLog:
        """Return where a replica's log is kept: in files, or in a spool that is filled while somebody reads it."""
        from .replica_logs import open_replica_log

        scheduler = self.scheduler(parse_app_handle(handle).scheduler_backend)
        return open_replica_log(scheduler, handle, role_name, k, partial(self.describe, handle), self._log_spools)

    def remove_stale_spools(self) -> None:
        """Remove, in the background, the spools of programs that were killed."""
        threading.Thread(target=self._log_spools().remove_stale, name="stale-spools", daemon=True).start()

    def _log_spools(self) -> LogSpools:
        from ..logs.spool.spools import LogSpools, SpoolLimits

        with self._lock:
            self._spools = self._spools or LogSpools(SpoolLimits(*self._spool_limits) if self._spool_limits else None)
            return self._spools

    # Ending

    def cancel(self, app_handle: str) -> None:
        """Ask the backend to stop a job; one that is final or unknown is left alone.

        Where its logs go with it, those that were read are completed first, see `LogSpools.complete`.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        self._refuse_if_read_only("Cancelling a job")
        name, _, app_id = parse_app_handle(app_handle)
        scheduler = self.scheduler(name)
        if (spools := self._spools) is not None and scheduler.capabilities.logs_after_cancel:
            spools.complete(app_handle)
        self._cancellations.cancel(scheduler, app_id, self._own_handle(app_handle))

    def delete(self, app_handle: str) -> None:
        """Cancel a job if it runs, and remove what the backend and the journal keep of it.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        self._refuse_if_read_only("Deleting a job")
        name, _, app_id = parse_app_handle(app_handle)
        self.scheduler(name).delete(app_id)
        self._cancellations.forget(self._own_handle(app_handle))
        if (record := self.journal.find(app_handle)) is not None:
            self.journal.forget(record)

    def actions(self, app_handle: str) -> builtins.list[JobAction]:
        """Return what can be done with a job beside cancelling and deleting it, see `Scheduler.actions`."""
        name, _, app_id = parse_app_handle(app_handle)
        return self.scheduler(name).actions(app_id)

    def act(self, app_handle: str, action: str, value: str = "") -> None:
        """Do one of the `actions` of a job, see `Scheduler.act`; refused where this runner may change nothing."""
        self._refuse_if_read_only(f"The action {action}")
        name, _, app_id = parse_app_handle(app_handle)
        self.scheduler(name).act(app_id, action, value)

    def prune(self, scheduler: str, *, dryrun: bool = False) -> builtins.list[str]:
        """Remove what a backend keeps of finished jobs beyond the age and size that its settings allow.

        The handles of what was removed are returned; of what would be, where ``dryrun`` removes nothing.

        Raises:
            ReadOnlyError: this runner may not change anything.
        """
        if not dryrun:
            self._refuse_if_read_only("Removing finished jobs")
        # A scheduler of another package may not know a dry run.
        app_ids = self.scheduler(scheduler).prune(dryrun=True) if dryrun else self.scheduler(scheduler).prune()
        return [make_app_handle(scheduler, self.session_name, app_id) for app_id in app_ids]

    # Jobs that end with this process

    def own_jobs(self) -> builtins.list[str]:
        """Return the handles of jobs that this process launched, that still run and that were not detached."""
        own = [(name, app_id) for name, scheduler in self._schedulers.made() for app_id in scheduler.own_app_ids()]
        return [make_app_handle(name, self.session_name, app_id) for name, app_id in own]

    def detach(self, handle: str) -> None:
        """Let a job go on when this process ends."""
        name, _, app_id = parse_app_handle(handle)
        self.scheduler(name).detach(app_id)

    def end_own_jobs(self) -> None:
        """Cancel the jobs of `own_jobs`; meant for a process that is told to end."""
        for _, scheduler in self._schedulers.made():
            scheduler.end_own()

    def _own_handle(self, handle: str) -> str:
        """Return a handle with this runner's session: every session sees the same jobs."""
        name, _, app_id = parse_app_handle(handle)
        return make_app_handle(name, self.session_name, app_id)

    def _refuse_if_read_only(self, what: str) -> None:
        if self.read_only:
            raise ReadOnlyError(what)
