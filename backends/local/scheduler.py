"""The scheduler local_cwd: runs each replica as a process on this machine.

Modules that only some calls need are imported there: a command of the shell makes one call.
"""

from __future__ import annotations

import builtins
import json
import logging
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.files import state_folder, user_name
from ...base.processes import send_signal
from ...specs.errors import SchedulerError
from ...specs.handles import make_app_handle, make_unique
from ...specs.roles import AppDef, AppDryRunInfo
from ...specs.run_options import CfgVal, runopts
from ...specs.status import is_terminal
from ..api import (
    Capabilities,
    ClusterStatus,
    DescribeAppResponse,
    Finding,
    ListAppResponse,
    NameFault,
    ReplicaUsage,
    Scheduler,
    Stream,
)
from ..shared.bounded_command import RUN_BESIDE_S, CommandOutput
from ..shared.factories import accepted_arguments
from ..shared.replicas import pick_replica
from ..shared.secrets import mask_data
from .describe import Listing, describe_run
from .image_provider import CWDImageProvider, ImageProvider, LocalDirectoryImageProvider, ReplicaParam
from .launched_apps import LaunchedApps
from .record import Run
from .runs import DELETE, Runs

if TYPE_CHECKING:
    from .request import PopenRequest
    from .usage import UsageSampler


def native_text(run: Run) -> str:
    """Return the state file, one value a line, secret values masked."""
    if not run.document:
        return run.reason
    return json.dumps(mask_data(run.document), indent=2, ensure_ascii=False)


__all__ = [
    "CWDImageProvider",
    "ImageProvider",
    "LocalDirectoryImageProvider",
    "LocalScheduler",
    "PopenRequest",
    "ReplicaParam",
    "create_scheduler",
]

logger = logging.getLogger(__name__)


def __getattr__(name: str) -> Any:
    if name == "PopenRequest":
        from .request import PopenRequest

        return PopenRequest
    raise AttributeError(f"module {__name__} has no attribute {name}")


class LocalScheduler(Scheduler[Mapping[str, CfgVal]]):
    """Runs each replica as a process on this machine; good for trying things out.

    It ignores what needs a container: limits on resources, mounts, ports, and images other than folders.
    Nothing is restarted. Apps continue when this process ends, and any other process of this user finds them, but on
    SIGTERM and SIGINT the apps that this object launched are cancelled.

    Args:
        session_name: the session part of handles.
        image_provider_class: makes images available; called with the run options.
        cache_size: accepted as by TorchX; no launch is refused because of it.
        extra_paths: folders that replicas search for programs first.
        root: where state is kept; the state folder's ``local`` where None.
        max_running: how many apps run at once on this machine; later ones wait as PENDING. 0 is no limit.
        grace_seconds: how long a cancelled app has between SIGTERM and SIGKILL, in seconds.
        keep_days: how long finished apps are kept, in days.
        keep_bytes: how much disk all finished apps may take, in bytes.
        handle_signals: cancel own apps on SIGTERM and SIGINT; only where this is made on the main thread.
        insight: let ranks be asked for their stacks and flight recorders, see `backends/shared/insight.py`.
        helpers: gives for the handle of an app what its supervisor starts and leaves alone: programs (``argv``, and
            ``stdin`` as text) by when: ``start`` when its replicas run, ``end`` when its final state is written.

    Raises:
        ValueError: ``cache_size`` is not greater than zero.
    """

    capabilities = Capabilities(log_streams=(Stream.COMBINED, Stream.STDOUT, Stream.STDERR), working_folder=True)

    def __init__(
        self,
        session_name: str,
        image_provider_class: Callable[[Mapping[str, CfgVal]], ImageProvider] = CWDImageProvider,
        cache_size: int = 100,
        extra_paths: Sequence[str] | None = None,
        *,
        root: Path | None = None,
        max_running: int = 0,
        grace_seconds: float = 10.0,
        keep_days: float = 30.0,
        keep_bytes: float = 20e9,
        handle_signals: bool = True,
        insight: bool = True,
        helpers: Callable[[str], Mapping[str, Mapping[str, Any]]] | None = None,
    ) -> None:
        super().__init__("local", session_name)
        if int(cache_size) <= 0:
            raise ValueError(f"cache_size must be greater than zero, not {cache_size}")
        for name, value in (("max_running", max_running), ("grace_seconds", grace_seconds)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, not {value}")
        self._image_provider_class = image_provider_class
        self._extra_paths = list(extra_paths or [])
        self._root = (root or state_folder() / "local").absolute()
        self._max_running = int(max_running)
        self._grace_seconds = float(grace_seconds)
        self._keep_days, self._keep_bytes = float(keep_days), float(keep_bytes)
        self._runs = Runs(self._root)
        self._listing = Listing(self._runs)
        self._own = LaunchedApps(self.end_own)
        self._insight = insight
        self._helpers = helpers
        self._sampled: tuple[str, UsageSampler | None] = ("", None)
        if handle_signals:
            self._own.handle_signals()

    def close(self) -> None:
        """Restore the signal handlers. Apps continue."""
        self._own.restore_signals()

    # Launching

    def _run_opts(self) -> runopts:
        from .request import LocalOpts

        return LocalOpts.as_runopts()

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[PopenRequest]:
        from .request import check_app

        check_app(app, self.session_name)
        info = AppDryRunInfo(self._request(app, cfg), str)
        info.interpreter = next((str(python.chosen) for python in info.request.pythons.values()), "")
        return info

    def _request(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> PopenRequest:
        from .request import LocalOpts, make_request

        opts = LocalOpts.from_cfg(cfg)
        base = Path(opts.log_dir).expanduser().absolute() if opts.log_dir else self._root
        app_id = make_unique(app.name)
        images = self._image_provider_class(cfg)
        request = make_request(
            app, app_id, base / self.session_name / app_id, self.session_name, opts, images, self._extra_paths
        )
        request.insight = self._insight
        return request

    def schedule(self, dryrun_info: AppDryRunInfo[PopenRequest]) -> str:
        """Launch what a dry run gave, and return the app's id as soon as its supervisor lives.

        A program that cannot be started makes the app FAILED, with the reason.

        Raises:
            SchedulerError: nothing was launched: a folder cannot be written, the disk is full.
        """
        from .launch import launch

        request = dryrun_info.request
        handle = make_app_handle("local_cwd", self.session_name, request.app_id)
        launch(
            self._runs,
            request,
            dryrun_info.app or AppDef(request.app_id),
            dryrun_info.cfg,
            self.session_name,
            max_running=self._max_running,
            grace_seconds=self._grace_seconds,
            helpers=self._helpers(handle) if self._helpers else {},
            passes_stdin=self.passes_stdin and sum(1 for _ in request.replicas()) == 1,
        )
        self._own.add(request.app_id)
        return request.app_id

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app, whichever process launched it; None when it does not exist."""
        run = self._runs.find(app_id)
        return None if run is None else describe_run(run)

    def describe_native(self, app_id: str) -> str:
        """Return the app's state file as text, secret values masked.

        Raises:
            JobNotFoundError: there is no such app.
        """

        return native_text(self._runs.get(app_id))

    def usage(self, app_id: str) -> builtins.list[ReplicaUsage]:
        """Measure what each running replica uses now; see `UsageSampler`."""
        from .usage import UsageSampler

        run = self._runs.get(app_id)
        before, sampler = self._sampled
        if sampler is None or before != app_id:
            # The screens show the usage of one app at a time.
            sampler = UsageSampler()
            self._sampled = (app_id, sampler)
        return sampler.sample(run) if run.here and not run.over else []

    def cluster(self) -> ClusterStatus:
        """Return this machine; see `DescribesCluster`."""
        from ..shared.machine import machine_status
        from .usage import describe_use

        running = (row.app_id for row in self._listing.rows() if not is_terminal(row.state))
        return machine_status(describe_use([run for app_id in running if (run := self._runs.find(app_id))]))

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = RUN_BESIDE_S
    ) -> CommandOutput:
        """Run a command on this machine, see `RunsCommands`."""
        from .beside import run_beside_replica

        return run_beside_replica(self._runs.get(app_id), role_name, k, argv, timeout_s)

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every local app of this user, the latest first."""
        return self._listing.rows()

    def exists(self, app_id: str) -> bool:
        """Return whether the app was launched and is still kept."""
        return self._runs.find(app_id) is not None

    # Ending

    def _cancel_existing(self, app_id: str) -> None:
        run = self._runs.get(app_id)
        if not run.over or not run.document:  # it may run, where its state file is damaged
            self._end(run)

    def _end(self, run: Run) -> None:
        """Ask for an app's end, in the way that reaches it.

        Raises:
            SchedulerError: it cannot be reached.
        """
        from .launch import end_unsupervised, write_cancel

        if run.read_only:
            raise SchedulerError(f"{run.app_id} cannot be cancelled: {run.notes[-1]}")
        process = self._runs.supervisor(run)
        if not run.document and process is None:
            raise SchedulerError(f"{run.app_id} cannot be cancelled: {run.reason}")
        asked: dict[str, Any] = {"by": user_name(), "at": 0.0}
        try:
            asked = write_cancel(run.folder, user_name())
        except OSError as error:
            if not run.here:
                reason = f"{error.strerror}: {error.filename}"
                raise SchedulerError(f"{run.app_id} cannot be cancelled on {run.document['host']}: {reason}") from error
            logger.warning("who cancelled %s cannot be written: %s", run.app_id, error)
        if not run.here:
            return  # its supervisor finds the file
        if process is not None:
            send_signal(process, signal.SIGTERM)
        elif not run.supervised:
            end_unsupervised(run, asked, self._grace_seconds)

    def _delete_existing(self, app_id: str) -> None:
        run = self._runs.get(app_id)
        if run.read_only:
            raise SchedulerError(f"{app_id} cannot be deleted: {run.notes[-1]}")
        try:
            if run.over:
                self._runs.remove(run)
                return
            (run.folder / DELETE).touch(mode=0o600)
        except OSError as error:
            raise SchedulerError(f"{app_id} cannot be deleted: {error.strerror}: {error.filename}") from error
        self._end(run)

    def prune(self, *, dryrun: bool = False) -> builtins.list[str]:
        """Remove finished apps that are old or take too much disk, and return their ids; see `Scheduler.prune`.

        Raises:
            OSError: something cannot be removed.
        """
        from .runs import prune

        return prune(self._runs, self._keep_days, self._keep_bytes, self._root, dryrun=dryrun)

    # Apps that end with this process

    def own_app_ids(self) -> builtins.list[str]:
        """Return the apps that this object launched, that still run, and that were not detached."""
        live = []
        for app_id in self._own.ids():
            run = self._runs.find(app_id)
            if run is None or run.over:
                self._own.discard(app_id)
            else:
                live.append(app_id)
        return live

    def detach(self, app_id: str) -> None:
        """Let an app continue when this process ends."""
        self._own.discard(app_id)

    def end_own(self) -> None:
        """Cancel the apps of `own_app_ids`, without waiting for their end."""
        for app_id in self.own_app_ids():
            try:
                self.cancel(app_id)
            except (SchedulerError, OSError) as error:
                logger.warning("%s", error)

    # Logs

    def log_files(self, app_id: str, role_name: str, k: int) -> dict[Stream, Path]:
        """Return the files of one replica's log; see `KeepsLogFiles`."""
        run = self._runs.get(app_id)
        if not run.document:
            raise SchedulerError(f"the log of {app_id} cannot be read: {run.reason}")
        roles: dict[str, dict[int, None]] = {}
        for entry in run.replicas:
            roles.setdefault(entry["role"], {})[entry["id"]] = None
        pick_replica(app_id, roles, role_name, k)
        return {stream: run.replica_folder(role_name, k) / f"{stream.value}.log" for stream in Stream}

    def has_ended(self, app_id: str) -> bool:
        """Return whether an app writes no more."""
        run = self._runs.find(app_id)
        return run is None or run.over

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Check this machine, and whether state can be kept."""
        from .request import machine_findings

        return machine_findings(self._root)

    def check_names(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[NameFault]:
        """Return the names that cannot be those of folders; see `ChecksNames`."""
        from .request import name_faults

        return list(name_faults(app))

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """Find what would go wrong: a command that is missing, a port that is taken, GPUs that are not there."""
        from .request import check_app, launch_findings

        check_app(app, self.session_name)
        return launch_findings(app, self._request(app, self.run_opts().resolve(cfg)))

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        """Accept roles without resources, which are ignored here."""


def create_scheduler(
    session_name: str,
    cache_size: int = 100,
    extra_paths: Sequence[str] | None = None,
    image_provider_class: Callable[[Mapping[str, CfgVal]], ImageProvider] = CWDImageProvider,
    **kwargs: Any,
) -> LocalScheduler:
    """Return the scheduler local_cwd. Pass the arguments that `LocalScheduler` takes, and ignore others."""
    more = accepted_arguments(LocalScheduler, kwargs)
    return LocalScheduler(session_name, image_provider_class, cache_size, extra_paths, **more)
