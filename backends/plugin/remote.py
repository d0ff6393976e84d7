"""A plugin's scheduler in a worker, behind the contract of `Scheduler`."""

from __future__ import annotations

import builtins
import dataclasses
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...guest.interpreter import own_interpreter
from ...guest.worker import RemoteError, Worker, WorkerError, WorkerStream, WorkerTimeoutError
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef, AppDryRunInfo, Role
from ...specs.run_options import CfgVal, runopts
from ..api import Scheduler
from ..shared.bounded_command import RUN_BESIDE_S, CommandOutput
from ..types import (
    DescribeAppResponse,
    Finding,
    ListAppResponse,
    NameFault,
    ReplicaUsage,
    Stream,
    line_pattern,
)
from ..workspace import WorkspaceMixin
from .found import FoundScheduler
from .scheduler import take_built
from .wire import decode, decode_error, encode

# How long a plugin may take to be imported and made (s); doctor waits longer.
LOAD_SECONDS = 8.0
# How long it may take for an answer (s); the dashboard itself waits less long.
ANSWER_SECONDS = 60.0
# How long it may take for what asks no backend (s).
QUICK_SECONDS = 10.0
# Launches, and the builds before them, take what they take (s).
LAUNCH_SECONDS = 24 * 3600.0

# One that could not be loaded is not tried again for so long (s).
_RETRY_SECONDS = 30.0
_failures: dict[FoundScheduler, tuple[float, BackendUnavailableError]] = {}

QUESTIONS = {
    "run_opts": ("tell its run options", QUICK_SECONDS),
    "dry_run": ("make the request", ANSWER_SECONDS),
    "launch": ("launch", LAUNCH_SECONDS),
    "build": ("build a workspace", LAUNCH_SECONDS),
    "_validate": ("accept this app", ANSWER_SECONDS),
    "_pre_build_validate": ("accept this app", ANSWER_SECONDS),
    "describe": ("describe a job", ANSWER_SECONDS),
    "describe_native": ("read a request back", ANSWER_SECONDS),
    "list": ("list jobs", ANSWER_SECONDS),
    "cancel": ("cancel a job", ANSWER_SECONDS),
    "_cancel_existing": ("cancel a job", ANSWER_SECONDS),
    "delete": ("delete a job", ANSWER_SECONDS),
    "_delete_existing": ("delete a job", ANSWER_SECONDS),
    "close": ("close", 1.0),
}
"""For each method: what it does, as messages say it, and the seconds after which it is given up."""


def create_remote(found: FoundScheduler, session_name: str, **params: Any) -> RemoteScheduler:
    """Start a worker and make a plugin's scheduler in it.

    Args:
        found: The plugin.
        session_name: The session part of handles.
        params: Keyword arguments of the plugin's factory.

    Raises:
        BackendUnavailableError: The plugin cannot be imported, raises, hangs, or makes something else.
    """
    failed_at, failure = _failures.get(found, (0.0, None))
    if failure is not None and time.monotonic() - failed_at < _RETRY_SECONDS:
        raise failure
    try:
        return _create(found, session_name, params)
    except BackendUnavailableError as error:
        _failures[found] = time.monotonic(), error
        raise


def _create(found: FoundScheduler, session_name: str, params: Mapping[str, Any]) -> RemoteScheduler:
    opening = encode([dataclasses.asdict(found), session_name, params])
    try:
        worker, opened = _open(found, opening)
    except WorkerTimeoutError as error:
        raise BackendUnavailableError(
            f"{found.name} was not loaded within {LOAD_SECONDS:g} s: importing {found.origin}, or making its "
            "scheduler, does not end: fix or uninstall it"
        ) from error
    except WorkerError as error:
        raise BackendUnavailableError(f"{found.name} could not be loaded: {error} ({found.origin})") from error
    except RemoteError as error:
        raise _translate(error) from error
    kind = RemoteWorkspaceScheduler if opened["builds_workspaces"] else RemoteScheduler
    return kind(found, session_name, worker, opening, opened)


def _open(found: FoundScheduler, opening: Sequence[Any]) -> tuple[Worker, Mapping[str, Any]]:
    worker = Worker(
        found.name,
        own_interpreter(),
        f"{__package__}.serve",
        path=sys.path,
        # Jobs of a plugin may be processes of this machine, in sessions of their own, that outlive it.
        adopt=False,
    )
    try:
        return worker, decode(worker.call("open", opening, LOAD_SECONDS))
    except BaseException:
        worker.close()
        raise


def forget_failures() -> None:
    """Try those again that could not be loaded."""
    _failures.clear()


def _translate(raised: RemoteError) -> Exception:
    error = decode_error(raised.error)
    lines = raised.output.strip().splitlines()
    if raised.error.get("class") == "PluginError":
        more = lines[-1:] if vars(error).get("may_have_printed_more") else []
        return SchedulerError(": ".join([str(error), *(line.strip() for line in more)]))
    return error


@dataclass(frozen=True)
class RemoteRequest:
    """A request that is kept in the worker.

    Args:
        number: Its number there.
        text: What it says.
    """

    number: int
    text: str


class RemoteScheduler(Scheduler[Mapping[str, CfgVal]]):
    """A scheduler in a worker, which is started again after it ended or hung.

    Args:
        found: The plugin.
        session_name: The session part of handles.
        worker: Runs it.
        opening: The arguments of `open`, with which a worker is started again.
        opened: What the worker answered to `open`.
    """

    def __init__(
        self,
        found: FoundScheduler,
        session_name: str,
        worker: Worker,
        opening: Sequence[Any],
        opened: Mapping[str, Any],
    ) -> None:
        super().__init__(found.name, session_name)
        self.found = found
        self.capabilities = opened["capabilities"]
        self.context = opened["context"]
        self.takes_contexts = opened["takes_contexts"]
        self._methods = frozenset(opened["methods"])
        self._worker = worker
        self._opening = opening
        self._restarting = threading.Lock()
        self._options: runopts | None = None

    def _running_worker(self) -> Worker:
        with self._restarting:
            if not self._worker.is_usable:
                self._worker, _ = _open(self.found, self._opening)
            return self._worker

    def _ask(self, name: str, *arguments: Any) -> Any:
        what, seconds = QUESTIONS.get(name, (name.strip("_").replace("_", " "), ANSWER_SECONDS))
        try:
            return decode(self._running_worker().call(name, encode(list(arguments)), seconds))
        except RemoteError as error:
            raise self._translate(error) from error
        except WorkerError as error:
            raise SchedulerError(f"{self.backend} could not {what}: {error} ({self.found.origin})") from error

    def _translate(self, raised: RemoteError) -> Exception:
        if "capabilities" in raised.error:
            self.capabilities = decode(raised.error["capabilities"])
        return _translate(raised)

    def close(self) -> None:
        """Close the plugin's scheduler, and end its worker."""
        try:
            if self._worker.is_usable:
                self._ask("close")
        except Exception:
            return  # noted in the log file
        finally:
            self._worker.close()

    # Launching

    def run_opts(self) -> runopts:
        """Return the plugin's run options, those of its workspaces included."""
        if self._options is None:
            self._options = self._ask("run_opts")
        return self._options

    def known_values(self) -> dict[str, builtins.list[str]]:
        """Return values that run options can have, where the plugin says some."""
        return self._ask("known_values") if "known_values" in self._methods else {}

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Any]:
        number, text = self._ask("dry_run", app, dict(cfg))
        return AppDryRunInfo(RemoteRequest(number, text), lambda request: request.text)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the id that the plugin gave the app."""
        return self._ask("launch", dryrun_info.request.number, dryrun_info.app, dict(dryrun_info.cfg))

    def _pre_build_validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._ask("_pre_build_validate", app, scheduler, dict(cfg))

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._ask("_validate", app, scheduler, dict(cfg))

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app; None when it does not exist."""
        return self._ask("describe", app_id)

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that the plugin lists, and those that were just launched from here."""
        return self._ask("list", *([] if cfg is None else [dict(cfg)]))

    def describe_native(self, app_id: str) -> str:
        """Return the request that the plugin reads back. Raises as the plugin's does."""
        return self._ask("describe_native", app_id)

    def usage(self, app_id: str) -> builtins.list[ReplicaUsage]:
        """Measure what each running replica uses now. Raises as the plugin's does."""
        return self._ask("usage", app_id)

    def shell_command(self, app_id: str, role_name: str, k: int) -> builtins.list[str]:
        """Return the command that opens a shell in a replica. Raises as the plugin's does."""
        return self._ask("shell_command", app_id, role_name, k)

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = RUN_BESIDE_S
    ) -> CommandOutput:
        """Run a command where a replica is. Raises as the plugin's does."""
        return self._ask("run_beside", app_id, role_name, k, list(argv), timeout_s)

    # Ending

    def _cancel_existing(self, app_id: str) -> None:
        self._ask("_cancel_existing", app_id)

    def cancel(self, app_id: str) -> None:
        """Ask for the app's end; one that is final or unknown is left alone."""
        self._ask("cancel", app_id)

    def _delete_existing(self, app_id: str) -> None:
        self._ask("_delete_existing", app_id)

    def delete(self, app_id: str) -> None:
        """Remove what is kept of the app, after ending it if it runs."""
        self._ask("delete", app_id)

    def own_app_ids(self) -> builtins.list[str]:
        """Return the apps that end with the plugin."""
        return self._ask("own_app_ids") if "own_app_ids" in self._methods else []

    def detach(self, app_id: str) -> None:
        """Let an app go on when this process ends."""
        if "detach" in self._methods:
            self._ask("detach", app_id)

    def prune(self, *, dryrun: bool = False) -> builtins.list[str]:
        """Remove what the plugin keeps beyond the limits, where it keeps something; return the ids."""
        return self._ask("prune", dryrun) if "prune" in self._methods else []

    def end_own(self) -> None:
        """Cancel the apps of `own_app_ids`, without waiting."""
        if "end_own" in self._methods:
            self._ask("end_own")

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
    ) -> RemoteLines:
        """Return the log lines of one replica; see `Scheduler.log_iter`."""
        line_pattern(regex)
        if not self.capabilities.log_streams:
            raise NotImplementedError(f"{self.backend} has no logs to read")
        arguments = [app_id, role_name, k, regex, since, until, should_tail, streams]
        try:
            return RemoteLines(self, self._running_worker().stream("log_iter", encode(arguments), ANSWER_SECONDS))
        except RemoteError as error:
            raise self._translate(error) from error
        except WorkerError as error:
            raise SchedulerError(f"{self.backend} could not give a log: {error} ({self.found.origin})") from error

    def log_path(self, app_id: str, role_name: str, k: int, streams: Stream) -> Path | None:
        """Return the file that holds one replica's log, None where the plugin knows none."""
        return self._ask("log_path", app_id, role_name, k, streams) if "log_path" in self._methods else None

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return where the plugin comes from, and what it says of its backend."""
        return self._ask("check")

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """Find what would go wrong with a launch that `schedule` would accept."""
        return self._ask("preflight", app, dict(cfg)) if "preflight" in self._methods else []

    def check_names(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[NameFault]:
        """Return the names that the plugin would refuse or change."""
        return self._ask("check_names", app, dict(cfg)) if "check_names" in self._methods else []

    def image_digests(self, images: Sequence[str]) -> dict[str, str]:
        """Identify the present state of each image, where the plugin can."""
        return self._ask("image_digests", [*images]) if "image_digests" in self._methods else {}


class RemoteWorkspaceScheduler(WorkspaceMixin[Any], RemoteScheduler):
    """Lets the plugin build the workspaces of roles; its run options already have those of its workspaces."""

    def build_workspaces(self, roles: Sequence[Role], cfg: Mapping[str, CfgVal]) -> None:
        """Let the plugin build each role's workspace, and take over what it made of the role."""
        for role, built in zip(roles, self._ask("build", [*roles], dict(cfg)), strict=True):
            take_built(role, built)

    def caching_build_workspace_and_update_role(
        self, role: Role, cfg: Mapping[str, CfgVal], build_cache: dict[object, object]
    ) -> None:
        """Let the plugin build one role's workspace."""
        self.build_workspaces([role], cfg)


class RemoteLines:
    """The lines of a log that a worker reads; `close` ends a blocked read at once."""

    def __init__(self, scheduler: RemoteScheduler, lines: WorkerStream) -> None:
        self._scheduler = scheduler
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, as soon as it comes.

        Raises:
            SchedulerError: the plugin could not read on, or its worker ended.
        """
        try:
            return next(self._lines)
        except RemoteError as error:
            raise self._scheduler._translate(error) from error
        except WorkerError as error:
            raise SchedulerError(f"{self._scheduler.backend} could not read a log: {error}") from error

    def close(self) -> None:
        """End the iteration at once."""
        self._lines.close()
