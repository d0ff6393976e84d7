"""Runs a plugin's scheduler in the process of a worker: the only process that imports a plugin, and with it TorchX."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...base.errors import TorchXTuiError
from ...guest.framing import STREAM_AHEAD, receive, send
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef, Role
from ...specs.run_options import CfgVal
from ..api import Scheduler
from ..workspace import WorkspaceMixin
from .calls import ask
from .found import GUEST_GROUP, FoundScheduler
from .wire import decode, encode, encode_error

# Requests of dry runs that are kept until they are launched.
_MAX_REQUESTS = 100


def serve(channel: int, idle_s: float | None) -> None:
    """Answer the calls of `remote.RemoteScheduler`, each in a thread of its own (see `guest.worker`)."""
    server = _Server(channel)
    for request in receive(channel, idle_s):
        server.take(request)


class _Server:
    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._writing = threading.Lock()
        self._host = _Host()
        self._streams: dict[int, _Stream] = {}

    def take(self, request: dict[str, Any]) -> None:
        number = request["id"]
        stream = self._streams.get(number)
        if "room" in request:
            if stream is not None:
                stream.make_room(request["room"])
        elif "close" in request:
            if stream is not None:
                stream.close()
        elif "stream" in request:
            self._streams[number] = stream = _Stream()
            self._in_thread(lambda: self._send_lines(number, stream, request))
        elif request["call"] == "open":
            # In the main thread, where a plugin may set handlers of signals.
            self._answer(number, lambda: self._call(request["call"], request))
        else:
            self._in_thread(lambda: self._answer(number, lambda: self._call(request["call"], request)))

    def _in_thread(self, work: Callable[[], object]) -> None:
        threading.Thread(target=work, daemon=True).start()

    def _call(self, name: str, request: dict[str, Any]) -> Any:
        return getattr(self._host, name)(*decode(request["arguments"]))

    def _answer(self, number: int, call: Callable[[], object]) -> None:
        try:
            answer: dict[str, Any] = {"value": encode(call())}
        except BaseException as error:  # SystemExit too
            answer = {"error": self._host.describe_error(error)}
        self._send({"id": number, **answer})

    def _send_lines(self, number: int, stream: _Stream, request: dict[str, Any]) -> None:
        def send_all() -> None:
            stream.open(self._call(request["stream"], request))
            self._send({"id": number, "lines": []})
            for lines in stream.batches():
                self._send({"id": number, "lines": lines})

        self._answer(number, send_all)
        del self._streams[number]

    def _send(self, message: dict[str, Any]) -> None:
        with self._writing, suppress(BrokenPipeError):
            send(self._channel, message)


class _Stream:
    """A log that is read on while there is room for its lines."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._room = STREAM_AHEAD
        self._closed = False
        self._source: Any = None

    def open(self, source: Any) -> None:
        with self._changed:
            self._source = source
            closed = self._closed
        if closed:
            source.close()

    def make_room(self, lines: int) -> None:
        with self._changed:
            self._room += lines
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            source = self._source
            self._changed.notify_all()
        if source is not None:
            source.close()

    def batches(self) -> Iterator[list[str]]:
        take_waiting = getattr(self._source, "take_waiting", list)
        for line in self._source:
            lines = [line, *take_waiting()]
            yield lines
            with self._changed:
                self._room -= len(lines)
                self._changed.wait_for(lambda: self._room > 0 or self._closed)
                if self._closed:
                    return


class _Host:
    """What can be asked: `open` first, then the methods of the scheduler."""

    def __init__(self) -> None:
        self._scheduler: Any = None
        self._requests: dict[int, Any] = {}
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        if name not in FORWARDED:
            raise AttributeError(name)
        return getattr(self._scheduler, name)

    def open(self, found: dict[str, str], session_name: str, params: dict[str, Any]) -> dict[str, Any]:
        """Import the plugin and make its scheduler; tell what it can do."""
        self._scheduler = _make(FoundScheduler(**found), session_name, params)
        kind = type(self._scheduler)
        return {
            "capabilities": self._scheduler.capabilities,
            "context": self._scheduler.context,
            "takes_contexts": self._scheduler.takes_contexts,
            "builds_workspaces": isinstance(self._scheduler, WorkspaceMixin),
            "methods": [name for name in FORWARDED if getattr(kind, name, None) is not getattr(Scheduler, name, None)],
        }

    def dry_run(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> tuple[int, str]:
        """Make a request and keep it; return its number and text."""
        info = self._scheduler.submit_dryrun(app, cfg)
        self._next += 1
        self._requests[self._next] = info
        for old in [number for number in self._requests if number <= self._next - _MAX_REQUESTS]:
            self._requests.pop(old, None)
        return self._next, str(info)

    def launch(self, number: int, app: AppDef, cfg: Mapping[str, CfgVal]) -> str:
        """Launch what a dry run made, or what it makes of the app now where that was before this worker was started."""
        info = self._requests.pop(number, None) or self._scheduler.submit_dryrun(app, cfg)
        info.app, info.cfg = app, cfg
        return str(self._scheduler.schedule(info))

    def build(self, roles: list[Role], cfg: Mapping[str, CfgVal]) -> list[Role]:
        """Build the workspaces of roles; return the roles."""
        self._scheduler.build_workspaces(roles, cfg)
        return roles

    def prune(self, dryrun: bool) -> list[str]:
        return self._scheduler.prune(dryrun=dryrun)

    def log_iter(self, *arguments: Any) -> Any:
        # As TorchX's Runner does: a plugin may have parameters of its own before `streams`.
        *others, streams = arguments
        return self._scheduler.log_iter(*others, streams=streams)

    def describe_error(self, error: BaseException) -> dict[str, Any]:
        """Describe an error, and what the scheduler can do since then: an output that it refused is gone."""
        described = encode_error(error)
        if isinstance(error, ValueError) and self._scheduler is not None:
            described["capabilities"] = encode(self._scheduler.capabilities)
        return described


FORWARDED = (
    "run_opts",
    "known_values",
    "describe",
    "describe_native",
    "usage",
    "shell_command",
    "run_beside",
    "list",
    "cancel",
    "delete",
    "_cancel_existing",
    "_delete_existing",
    "own_app_ids",
    "detach",
    "end_own",
    "prune",
    "log_path",
    "check",
    "preflight",
    "check_names",
    "image_digests",
    "close",
    "_pre_build_validate",
    "_validate",
)
"""The methods that are asked as they are."""


def _make(found: FoundScheduler, session_name: str, params: Mapping[str, Any]) -> Scheduler[Any]:
    try:
        made = ask(found.name, "be loaded", lambda: _call_factory(found, session_name, params))
    except TorchXTuiError as error:
        if isinstance(error, BackendUnavailableError):
            raise
        raise BackendUnavailableError(f"{error} ({found.origin}): fix or uninstall it") from error
    if isinstance(made, Scheduler):
        return made
    from torchx.workspace import WorkspaceMixin as TheirWorkspaceMixin

    from .scheduler import TorchXScheduler, TorchXWorkspaceScheduler

    kind = TorchXWorkspaceScheduler if isinstance(made, TheirWorkspaceMixin) else TorchXScheduler
    return kind(found, session_name, made)


def _call_factory(found: FoundScheduler, session_name: str, params: Mapping[str, Any]) -> Any:
    factory = found.load()
    if found.group == GUEST_GROUP:
        made = factory(session_name, **params)
        if not isinstance(made, Scheduler):
            raise SchedulerError(f"it made a {type(made).__name__}, which is no torchx_tui.backends.api.Scheduler")
        return made
    # TorchX's Runner gives every factory each variable TORCHX_*, its name in lower case.
    variables = {name.lower(): value for name, value in os.environ.items() if name.startswith("TORCHX_")}
    made = factory(session_name, **{**variables, **params})
    if isinstance(made, Scheduler):
        return made
    from torchx.schedulers.api import Scheduler as TheirScheduler

    if not isinstance(made, TheirScheduler):
        raise SchedulerError(
            f"{found.name} could not be loaded: it made a {type(made).__name__}, which is no scheduler"
        )
    return made
