"""A plugin's scheduler in a worker, behind the contract of `Scheduler`."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...guest.interpreter import own_interpreter
from ...guest.worker import RemoteError, Worker, WorkerError, WorkerStream, WorkerTimeoutError
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef, AppDryRunInfo, Role
from ...specs.run_options import Cfg, runopts
from ..api import Scheduler
from ..types import Capabilities, Stream, line_pattern, parse_stream
from ..workspace import WorkspaceMixin
from .found import FoundScheduler
from .serve import contract_method
from .wire import ANSWER_TIMEOUT_S, METHODS, TIMEOUTS_S, Opened, decode, decode_answer, decode_error, encode

logger = logging.getLogger(__name__)

LOAD_SECONDS = 8.0
"""Seconds that a plugin may take to be imported and made; doctor waits longer."""
_RETRY_SECONDS = 30.0
"""Seconds after which a plugin that could not be loaded is tried again."""

_failures: dict[FoundScheduler, tuple[float, Exception]] = {}


def create_remote(found: FoundScheduler, session_name: str, **params: Any) -> RemoteScheduler:
    """Start a worker and make a plugin's scheduler in it.

    Args:
        found: the plugin.
        session_name: the session part of handles.
        params: keyword arguments of the plugin's factory.

    Raises:
        BackendUnavailableError: the plugin cannot be imported, raises, hangs, or makes something else.
    """
    failed_at, failure = _failures.get(found, (0.0, None))
    if failure is not None and time.monotonic() - failed_at < _RETRY_SECONDS:
        raise failure
    opening = [encode([found, session_name, params]), {}]
    try:
        worker, opened = _open(found, opening)
    except (WorkerError, RemoteError) as error:
        failure = _describe_failure(found, error)
        _failures[found] = time.monotonic(), failure
        raise failure from error
    # The class has the methods that the plugin overrides, and no others.
    bases = (_BuildsWorkspaces, RemoteScheduler) if opened.builds_workspaces else (RemoteScheduler,)
    forwarded: dict[str, Any] = {name: _forward(name) for name in opened.methods if name not in vars(RemoteScheduler)}
    own = {"subscribe": _subscribe, "set_all_users": _set_all_users}
    forwarded |= {name: function for name, function in own.items() if name in opened.methods}
    kind = type(RemoteScheduler)(RemoteScheduler.__name__, bases, forwarded)
    return kind(found, session_name, worker, opening, opened)


def _describe_failure(found: FoundScheduler, error: Exception) -> Exception:
    if isinstance(error, RemoteError):
        return decode_error(error.error, error.output)
    reason = f"{found.name} could not be loaded: {error} ({found.origin})"
    if isinstance(error, WorkerTimeoutError):
        reason = (
            f"{found.name} was not loaded within {LOAD_SECONDS:g} s: importing {found.origin}, or making its "
            "scheduler, does not end: fix or uninstall it"
        )
    return BackendUnavailableError(reason)


def _open(found: FoundScheduler, opening: Sequence[Any]) -> tuple[Worker, Opened]:
    worker = Worker(
        found.name,
        own_interpreter(),
        f"{__package__}.serve",
        path=sys.path,
        # Jobs of a plugin may be processes of this machine, in sessions of their own, that outlive it.
        adopt=False,
    )
    try:
        return worker, decode(worker.call("open", opening, LOAD_SECONDS), Opened)
    except BaseException:
        worker.close()
        raise


def forget_failures() -> None:
    """Try those again that could not be loaded."""
    _failures.clear()


@dataclass(frozen=True)
class RemoteRequest:
    """A request that is kept in the worker, by its number there, and its text."""

    number: int
    text: str


class RemoteScheduler(Scheduler[Cfg]):
    """A scheduler in a worker, which is started again after it ended or hung.

    Args:
        found: the plugin.
        session_name: the session part of handles.
        worker: runs it.
        opening: the arguments of `open`, with which a worker is started again.
        opened: the answer to `open`.
    """

    def __init__(
        self, found: FoundScheduler, session_name: str, worker: Worker, opening: Sequence[Any], opened: Opened
    ) -> None:
        super().__init__(found.name, session_name)
        self.found = found
        self.capabilities = opened.capabilities
        self.context = opened.context
        self.takes_contexts = opened.takes_contexts
        self.runs_once_per_node = opened.runs_once_per_node
        self._worker = worker
        self._opening = opening
        self._restarting = threading.Lock()
        self._options: runopts | None = None
        self.all_users: bool | None = None

    def running_worker(self) -> Worker:
        """Return the worker, started again if it has ended."""
        with self._restarting:
            if not self._worker.is_usable:
                self._worker, _ = _open(self.found, self._opening)
                if self.all_users is not None:
                    self._worker.call("set_all_users", [[self.all_users], {}], ANSWER_TIMEOUT_S)
            return self._worker

    def call(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """Call a method of the table in the worker."""
        encoded = [[encode(value) for value in arguments], {key: encode(value) for key, value in keywords.items()}]
        try:
            answer = self.running_worker().call(name, encoded, TIMEOUTS_S.get(name, ANSWER_TIMEOUT_S))
            return decode_answer(contract_method(name), answer)
        except (RemoteError, WorkerError, ValueError) as error:
            raise self.translated(METHODS[name], error) from error

    def stream(self, name: str, *arguments: Any, **keywords: Any) -> RemoteLines:
        """Call a method of the table that gives lines."""
        encoded = [encode(list(arguments)), encode(keywords)]
        try:
            return RemoteLines(self, self.running_worker().stream(name, encoded, ANSWER_TIMEOUT_S))
        except (RemoteError, WorkerError) as error:
            raise self.translated(METHODS[name], error) from error

    def translated(self, action: str, error: Exception) -> Exception:
        """Return the error that the plugin raised, or that says why it did not answer."""
        if not isinstance(error, RemoteError):
            return SchedulerError(f"{self.backend} could not {action}: {error} ({self.found.origin})")
        if "capabilities" in error.error:
            self.capabilities = decode(error.error["capabilities"], Capabilities)
        return decode_error(error.error, error.output)

    def close(self) -> None:
        """Close the plugin's scheduler, and end its worker."""
        try:
            if self._worker.is_usable:
                self.call("close")
        except Exception:
            return  # noted in the log file
        finally:
            self._worker.close()

    def run_opts(self) -> runopts:
        """Return the plugin's run options, those of its workspaces included."""
        if self._options is None:
            self._options = self.call("run_opts")
        return self._options

    def _submit_dryrun(self, app: AppDef, cfg: Cfg) -> AppDryRunInfo[Any]:
        number, text = self.call("dry_run", app, dict(cfg))
        return AppDryRunInfo(RemoteRequest(number, text), lambda request: request.text)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the id that the plugin gave the app."""
        return self.call("launch", dryrun_info.request.number, dryrun_info.app, dict(dryrun_info.cfg))

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
        parse_stream(streams)
        if not self.capabilities.log_streams:
            raise NotImplementedError(f"{self.backend} has no logs to read")
        # A plugin may have parameters of its own before `streams`.
        return self.stream("log_iter", app_id, role_name, k, regex, since, until, should_tail, streams=streams)


class _BuildsWorkspaces(WorkspaceMixin[Any]):
    def build_workspaces(self, roles: Sequence[Role], cfg: Cfg) -> None:
        remote: Any = self
        built = remote.call("build", AppDef("", [*roles]), dict(cfg))
        for role, made in zip(roles, built.roles, strict=True):
            # What a builder of workspaces may change: the image, and what replicas need to find the files.
            role.image, role.env, role.mounts, role.metadata = made.image, made.env, made.mounts, made.metadata


def _forward(name: str) -> Callable[..., Any]:
    # Its attributes are not copied: an abstract method would stay abstract.
    @functools.wraps(contract_method(name), updated=())
    def method(self: RemoteScheduler, *arguments: Any, **keywords: Any) -> Any:
        return self.call(name, *arguments, **keywords)

    return method


def _set_all_users(self: RemoteScheduler, all_users: bool) -> None:
    """Choose whose jobs are listed, also after the worker was started again."""
    self.all_users = all_users
    self.call("set_all_users", all_users)


def _subscribe(self: RemoteScheduler, on_change: Callable[[], object]) -> Callable[[], object] | None:
    """Read the plugin's changes in a thread, until its process ends."""
    lines = self.stream("subscribe")
    if next(lines, None) is None:
        return None

    def follow() -> None:
        try:
            for _ in lines:
                on_change()
        except SchedulerError as error:
            logger.warning("%s no longer reports changes: %s", self.backend, error)
            on_change()

    threading.Thread(target=follow, name=f"changes-{self.backend}", daemon=True).start()
    return lines.close


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
        except (RemoteError, WorkerError) as error:
            raise self._scheduler.translated("read a log", error) from error

    def close(self) -> None:
        """End the iteration at once."""
        self._lines.close()
