"""The scheduler local_docker: runs each replica as a container of a Docker engine."""

from __future__ import annotations

import builtins
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...logs.source.stream import Cursor, LogStream, TimeCursor
from ...specs.errors import JobNotFoundError
from ...specs.handles import make_unique
from ...specs.roles import AppDef, AppDryRunInfo
from ...specs.run_options import CfgVal, runopts
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
from ..docker_engine.client import Engine
from ..docker_engine.images import ensure_images
from ..shared.bounded_command import RUN_BESIDE_S, CommandOutput
from ..shared.factories import accepted_arguments
from ..shared.readable_yaml import readable_yaml
from ..shared.secrets import mask_data
from ..workspace.docker_workspace import DockerWorkspaceMixin
from . import labels
from .beside import run_beside
from .containers import ContainerDetails, find_containers, find_replica, inspect_all
from .describe import describe_app
from .events import engine_events
from .lifecycle import AppCanceller, Launch
from .listing import KnownTimes, list_rows
from .log_stream import DockerLogStream
from .preflight import engine_cluster, engine_findings, launch_findings
from .request import DockerContainer, DockerJob, DockerOpts, check_app, make_request, name_faults
from .run_line import shown_labels
from .shell import shell_command
from .usage import UsageSampler

if TYPE_CHECKING:
    import docker


__all__ = ["DockerContainer", "DockerJob", "DockerOpts", "DockerScheduler", "create_scheduler"]


class DockerScheduler(DockerWorkspaceMixin, Scheduler[Mapping[str, CfgVal]]):
    """Runs each replica as a container of a Docker engine, on TorchX's wire format: each sees the other's apps.

    The engine starts a failed replica again, alone, where `max_retries` asks for it. Ports of `port_map` are published
    at free ports of the engine's loopback address.

    Args:
        session_name: the session part of handles.
        engine: the engine; the one that Docker's command line would use where None.
        grace_seconds: how long a cancelled replica has between SIGTERM and SIGKILL, in seconds.
    """

    capabilities = Capabilities(
        log_streams=(Stream.COMBINED, Stream.STDOUT, Stream.STDERR),
        retries=True,
        remembers_cancel=False,
    )

    usual_workspace = "."

    def __init__(self, session_name: str, engine: Engine | None = None, *, grace_seconds: float = 10.0) -> None:
        super().__init__("docker", session_name)
        self._engine = engine or Engine()
        self._ending = AppCanceller(self._engine, float(grace_seconds))
        self._times = KnownTimes()
        self._events = engine_events(self._engine)
        self._usage = UsageSampler(self._engine)

    def close(self) -> None:
        """Wait until the engine has ended cancelled replicas, then close the connections. Other apps go on."""
        self._ending.close()
        self._events.close()
        self._engine.close()

    # Launching

    def _run_opts(self) -> runopts:
        return DockerOpts.as_runopts()

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[DockerJob]:
        check_app(app)
        request = make_request(app, make_unique(app.name), self.session_name, DockerOpts.from_cfg(cfg))
        return AppDryRunInfo(request, str)

    def schedule(self, dryrun_info: AppDryRunInfo[DockerJob]) -> str:
        """Launch what a dry run gave, and return the app's id when all of its replicas have been started.

        Raises:
            SchedulerError: nothing was launched and nothing is left behind; the message says which replica and why.
            LaunchCancelledError: the launch was ended meanwhile; nothing is left behind.
        """
        job = dryrun_info.request
        if DockerOpts.from_cfg(dryrun_info.cfg).pull:
            ensure_images(self._engine, (container.image for container in job.containers))
        Launch(self._engine, job, {labels.SUBMITTED_AT: f"{time.time():.3f}"}).run()
        return job.app_id

    @contextmanager
    def workspace_engine(self) -> Iterator[docker.DockerClient]:
        """Give a client of this scheduler's engine, for one task."""
        with self._engine.translate_errors():
            client = self._engine.new_client(None)
            try:
                yield client
            finally:
                client.close()

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        """Accept roles without resources: their containers have no limits."""

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app, whoever launched it; None when it does not exist."""
        return describe_app(self._engine, app_id, self._times, self._host)

    def describe_native(self, app_id: str) -> str:
        """Return the inspection of the app's containers as YAML, secret values masked.

        Raises:
            JobNotFoundError: there is no such app.
        """
        pairs = inspect_all(self._engine, find_containers(self._engine, app_id), app_id)
        if not pairs:
            raise JobNotFoundError(app_id, "local_docker")
        return _native_text([inspected for _, inspected in pairs])

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app of the engine that TorchX or this program launched, the latest first."""
        return list_rows(self._engine, self._times, self._host)

    def exists(self, app_id: str) -> bool:
        """Tell whether the engine has a container of the app."""
        return bool(find_containers(self._engine, app_id))

    def usage(self, app_id: str) -> builtins.list[ReplicaUsage]:
        """Measure what each running replica uses now; see `UsageSampler`."""
        return self._usage.sample(app_id)

    def cluster(self) -> ClusterStatus:
        """Return the engine's machine; see `DescribesCluster`."""
        return engine_cluster(self._engine)

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` when the engine tells that an app changed, or goes away, or is back."""
        return self._events.subscribe(on_change)

    def shell_command(self, app_id: str, role_name: str, k: int) -> builtins.list[str]:
        """Return the argument list of a program that opens a shell in a replica; see `OpensShell`."""
        return shell_command(self._engine, app_id, role_name, k)

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = RUN_BESIDE_S
    ) -> CommandOutput:
        """Run a command in a replica's container; see `RunsCommands`."""
        return run_beside(self._engine, app_id, role_name, k, argv, timeout_s)

    @property
    def _host(self) -> str:
        if not self._engine.is_remote:
            return platform.node()
        return urlsplit(self._engine.host).hostname or self._engine.host

    # Ending

    def cancel(self, app_id: str) -> None:
        """Ask every replica to end, all at once, and do not wait; one that is final or unknown is left alone."""
        self._ending.cancel(app_id)

    def _cancel_existing(self, app_id: str) -> None:
        self._ending.cancel(app_id)

    def _delete_existing(self, app_id: str) -> None:
        self._ending.delete(app_id)

    # Logs

    def log_stream(
        self,
        app_id: str,
        role_name: str,
        k: int,
        stream: Stream,
        cursor: Cursor | None = None,
        *,
        since: float | None = None,
        follow: bool = True,
        notices: bool = True,
    ) -> LogStream:
        """Return the log of one replica as it arrives; see `StreamsLogs`."""
        find_replica(self._engine, app_id, role_name, k)
        return DockerLogStream(
            self._engine,
            app_id,
            role_name,
            k,
            stream,
            cursor if isinstance(cursor, TimeCursor) else None,
            since=None if since is None else int(since * 10**9),
            follow=follow,
            says_restarts=notices,
        )

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return the engine's version and size, or why it cannot be used."""
        return engine_findings(self._engine)

    def check_names(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[NameFault]:
        """Return the names that cannot be those of containers; see `ChecksNames`."""
        return list(name_faults(app))

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """List the faults of a launch: an image or a mount's source that is missing, too much cpu, no GPUs."""
        check_app(app)
        return launch_findings(self._engine, app, DockerOpts.from_cfg(self.run_opts().resolve(cfg)))


def _native_text(inspected: Sequence[ContainerDetails]) -> str:
    """Return the inspection of containers as one YAML document each, secret values masked."""
    return "---\n".join(readable_yaml(mask_data(_shortened(container))) for container in inspected)


def _shortened(inspected: ContainerDetails) -> dict[str, Any]:
    config = inspected.get("Config") or {}
    return {**inspected, "Config": {**config, "Labels": shown_labels(config.get("Labels") or {})}}


def create_scheduler(session_name: str, **kwargs: Any) -> DockerScheduler:
    """Return the scheduler local_docker. Pass the arguments that `DockerScheduler` takes, and ignore others."""
    return DockerScheduler(session_name, **accepted_arguments(DockerScheduler, kwargs))
