"""The contract that every scheduler fulfils."""

from __future__ import annotations

import abc
import builtins
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from ..specs.errors import AppDefError, SchedulerError
from ..specs.resources import NULL_RESOURCE
from ..specs.roles import AppDef, AppDryRunInfo
from ..specs.run_options import CfgVal, runopts
from ..specs.status import MISSING
from ..specs.workspace import Workspace
from .options import StructuredOpts
from .types import (
    Alternative,
    Capabilities,
    ClusterNode,
    ClusterPool,
    ClusterStatus,
    DescribeAppResponse,
    Finding,
    JobAction,
    ListAppResponse,
    LogQuery,
    NameFault,
    PartitionStatus,
    PublishedPort,
    ReplicaUsage,
    StartEstimate,
    StateChange,
    Stream,
    WorkspaceListing,
)
from .workspace import WorkspaceMixin

__all__ = [
    "DAYS_IN_2_WEEKS",
    "Alternative",
    "Capabilities",
    "ClusterNode",
    "ClusterPool",
    "ClusterStatus",
    "DescribeAppResponse",
    "Finding",
    "JobAction",
    "ListAppResponse",
    "LogQuery",
    "NameFault",
    "PartitionStatus",
    "PublishedPort",
    "ReplicaUsage",
    "Scheduler",
    "StartEstimate",
    "StateChange",
    "Stream",
    "StructuredOpts",
    "WorkspaceListing",
    "check_launchable",
    "filter_regex",
    "split_lines",
    "split_lines_iterator",
]

DAYS_IN_2_WEEKS = 14

T = TypeVar("T")


class Scheduler(abc.ABC, Generic[T]):
    """Something that runs apps.

    Subclasses provide at least `schedule`, `_submit_dryrun`, `describe`, `list` and `_cancel_existing`; what they set
    in `capabilities` decides what the screens offer. Methods may be called from any thread.

    Args:
        backend: the scheduler's name.
        session_name: the session part of the handles of its apps.
    """

    capabilities: Capabilities = Capabilities()
    context: str = ""
    """The context in which apps are launched and found, for schedulers that have several, as a kubeconfig does."""
    takes_contexts: bool = True
    """Whether the run option ``context`` chooses one of these."""
    runs_once_per_node: bool = False
    """Whether a command of `RunsCommands` sees all replicas on its node; replicas are spread over all nodes in turn."""
    usual_workspace: str = ""
    """The workspace of a Python script if none is named; empty where jobs see the files of this machine."""
    passes_stdin: bool = False
    """Set before a launch: its only replica inherits this process's standard input. Only local_cwd supports it."""

    def __init__(self, backend: str, session_name: str) -> None:
        self.backend = backend
        self.session_name = session_name

    @property
    def takes_workspace(self) -> bool:
        """True if local folders can travel with an app, by `WorkspaceMixin`."""
        return isinstance(self, WorkspaceMixin)

    def close(self) -> None:
        """Free what this object holds; apps go on. May be called again, never raises."""
        return

    # Launching

    def submit(self, app: AppDef, cfg: T, workspace: str | Workspace | None = None) -> str:
        """Launch an app and return its id.

        Args:
            app: what to run. Its first role takes the workspace.
            cfg: run options; those that are left out take their defaults.
            workspace: local folders that travel with the first role.

        Raises:
            InvalidRunConfigException: a run option is unknown, missing or of another type.
            SchedulerError: the scheduler takes no workspace, or could not launch the app.
        """
        resolved: Any = self.run_opts().resolve(_mapping(cfg))
        if workspace:
            if not isinstance(self, WorkspaceMixin):
                raise SchedulerError(f"{self.backend} takes no workspace: leave it out")
            app.roles[0].workspace = Workspace.from_str(workspace) if isinstance(workspace, str) else workspace
            self.build_workspaces(app.roles, resolved)
        return self.schedule(self.submit_dryrun(app, resolved))

    @abc.abstractmethod
    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the app's id.

        Raises:
            SchedulerError: nothing was launched; the message says why.
        """

    def submit_dryrun(self, app: AppDef, cfg: T) -> AppDryRunInfo[Any]:
        """Return the request that `schedule` would send; its type is the scheduler's own.

        `submit` and the Runner call it at each launch, so a subclass may override it.

        Raises:
            AppDefError: the scheduler cannot run such an app.
            InvalidRunConfigException: a run option is unknown, missing or of another type.
        """
        resolved: Any = self.run_opts().resolve(_mapping(cfg))
        dryrun_info = self._submit_dryrun(app, resolved)
        for role in app.roles:
            dryrun_info = role.pre_proc(self.backend, dryrun_info)
        dryrun_info.app = app
        dryrun_info.cfg = resolved
        self._check_request(dryrun_info)
        return dryrun_info

    @abc.abstractmethod
    def _submit_dryrun(self, app: AppDef, cfg: T) -> AppDryRunInfo[Any]: ...

    def _check_request(self, dryrun_info: AppDryRunInfo[Any]) -> None:
        """Ask the backend whether it would take a request, where it can be asked."""

    def run_opts(self) -> runopts:
        """Return the run options, those of workspaces included."""
        opts = self._run_opts()
        if isinstance(self, WorkspaceMixin):
            opts.update(self.workspace_opts())
        return opts

    def _run_opts(self) -> runopts:
        return runopts()

    # Watching

    @abc.abstractmethod
    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app; None when it does not exist."""

    @abc.abstractmethod
    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that this scheduler knows.

        Args:
            cfg: run options, for schedulers that have to be told where to look.
        """

    def missing_jobs(self) -> str:
        """Return a sentence that says why the last answer of `list` may lack jobs; empty if it is complete."""
        return ""

    def exists(self, app_id: str) -> bool:
        """Return whether the app was submitted and is still known."""
        return self.describe(app_id) is not None

    def has_ended(self, app_id: str) -> bool:
        """Return whether an app has ended, or is unknown; asked several times a second while its log is followed."""
        described = self.describe(app_id)
        return described is None or described.has_ended

    # Ending

    @abc.abstractmethod
    def _cancel_existing(self, app_id: str) -> None:
        """End an app that exists."""

    def cancel(self, app_id: str) -> None:
        """Ask for the app's end; do not wait for it. An app that is final or unknown is left alone."""
        if self.exists(app_id):
            self._cancel_existing(app_id)

    def delete(self, app_id: str) -> None:
        """Remove what is kept of the app, after ending it if it runs. An unknown app is nothing to delete."""
        if self.exists(app_id):
            self._delete_existing(app_id)

    def _delete_existing(self, app_id: str) -> None:
        """Delete an app that exists; where nothing is kept of an app, to end it is all."""
        self._cancel_existing(app_id)

    # Logs

    def log_iter(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        r"""Return the log lines of one replica, each with its ``\n``; a last line without one is given at the end.

        Each call begins anew. The result has a ``close()`` that ends a blocked read from another thread.

        Args:
            app_id: an app that exists.
            role_name: the role.
            k: the replica's number in the role.
            regex: only lines in which this is found.
            since: only lines from this time on, if the times of lines are known.
            until: only lines up to this time.
            should_tail: wait for more until the app is final and all was read; else end at the present end.
            streams: which output; combined where None.

        Raises:
            UnknownReplicaError: role or replica do not exist, or the stream is not one that this scheduler has.
            ValueError: the expression is malformed.
            SchedulerError: the log cannot be read; the message says why.
            NotImplementedError: the scheduler has no logs.
        """
        from .abilities import KeepsLogFiles, StreamsLogs
        from .log_records import LogLines, open_records

        if not isinstance(self, (KeepsLogFiles, StreamsLogs)):
            raise NotImplementedError(f"{self.backend} has no logs to read")
        query = LogQuery.parse(app_id, role_name, k, regex, since, until, should_tail, streams)
        return LogLines(lambda: open_records(self, query), query)

    def _pre_build_validate(self, app: AppDef, scheduler: str, cfg: T) -> None:
        """Refuse, before its workspace is built, an app that this scheduler cannot run."""

    def _validate(self, app: AppDef, scheduler: str, cfg: T) -> None:
        """Refuse, after its workspace was built, an app that this scheduler cannot run.

        Raises:
            AppDefError: a role says nothing of the resources that it needs.
        """
        for role in app.roles:
            if role.resource == NULL_RESOURCE:
                raise AppDefError(f"No resource for role: {role.name} (image: {role.image}): give it one")


def _mapping(cfg: Any) -> Mapping[str, CfgVal]:
    return cfg if cfg is not None else {}


def check_launchable(app: AppDef, most_replicas: int = sys.maxsize) -> None:
    """Refuse an app that no scheduler can run.

    Args:
        app: the app.
        most_replicas: how many replicas it may have in all its roles.

    Raises:
        AppDefError: it has no roles, a role has no entrypoint or no replicas, or there are too many.
    """
    if not app.roles:
        raise AppDefError(f"{app.name or 'the app'} has no roles: a component must return at least one")
    for role in app.roles:
        if not role.entrypoint or role.entrypoint == MISSING:
            raise AppDefError(f"role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise AppDefError(f"role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
    replicas = sum(role.num_replicas for role in app.roles)
    if replicas > most_replicas:
        asks = f"role {app.roles[0].name} asks" if len(app.roles) == 1 else f"the {len(app.roles)} roles ask"
        raise AppDefError(
            f"{asks} for {replicas:,} replicas, and an app may have {most_replicas:,}: ask for fewer, "
            "or raise most_replicas under [launch] in config.toml"
        )


def filter_regex(regex: str, data: Iterable[str]) -> Iterable[str]:
    """Return the texts in which ``regex`` is found, as they come."""
    return filter(re.compile(regex).search, data)


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text, each with its ``\n``; only that ends a line."""
    *lines, rest = text.split("\n")
    return [line + "\n" for line in lines] + ([rest] if rest else [])


def split_lines_iterator(chunks: Iterable[str]) -> Iterable[str]:
    """Return the lines of each text in turn; a line never spans two texts."""
    for chunk in chunks:
        yield from split_lines(chunk)
