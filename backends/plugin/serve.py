"""Runs a plugin's scheduler in the process of a worker: the only process that imports a plugin, and with it TorchX."""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from ...base.validation import JsonObject
from ...guest.framing import receive, send
from ...specs.errors import BackendUnavailableError
from ...specs.roles import AppDef
from ...specs.run_options import Cfg
from ..abilities import ABILITIES
from ..api import Scheduler
from ..workspace import WorkspaceMixin
from .found import GUEST_GROUP, FoundScheduler
from .logs import LogSource, LogStream
from .wire import METHODS, Opened, decode_arguments, encode, encode_error, plugin_error

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
        self._host = Host()
        self._streams: dict[int, LogStream] = {}

    def take(self, request: JsonObject) -> None:
        number = request["id"]
        stream = self._streams.get(number)
        if "room" in request:
            if stream is not None:
                stream.make_room(request["room"])
        elif "close" in request:
            if stream is not None:
                stream.close()
        elif "stream" in request:
            stream = self._streams[number] = LogStream()
            self._in_thread(self._send_lines, request, stream)
        elif request["call"] == "open":
            # In the main thread, where a plugin may set handlers of signals.
            self._answer(request)
        else:
            self._in_thread(self._answer, request)

    def _in_thread(self, work: Callable[..., object], *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _answer(self, request: JsonObject) -> None:
        name = request["call"]
        try:
            answer: JsonObject = {"value": encode(self._host.call(name, request["arguments"]))}
        except BaseException as error:  # SystemExit too
            answer = {"error": self._host.describe_error(name, error)}
        self._send({"id": request["id"], **answer})

    def _send_lines(self, request: JsonObject, stream: LogStream) -> None:
        name, number = request["stream"], request["id"]
        answer: JsonObject = {"value": None}
        try:
            stream.start(*self._host.sources(name, request["arguments"]))
            self._send({"id": number, "lines": []})
            for lines in stream.batches():
                self._send({"id": number, "lines": lines})
        except BaseException as error:  # SystemExit too
            answer = {"error": self._host.describe_error(name, error)}
        del self._streams[number]
        self._send({"id": number, **answer})

    def _send(self, message: JsonObject) -> None:
        with self._writing, suppress(BrokenPipeError):
            send(self._channel, message)


class Host:
    """The methods that are asked of the process itself; `open` is the first. All others are the scheduler's."""

    def __init__(self) -> None:
        self._scheduler: Any = None
        self._name = ""
        self._is_for_torchx = False
        self._requests: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def call(self, name: str, data: Any) -> Any:
        """Call a method of the table with encoded arguments."""
        positional, keywords = decode_arguments(contract_method(name), data)
        return getattr(self if hasattr(self, name) else self._scheduler, name)(*positional, **keywords)

    def sources(self, name: str, data: Any) -> tuple[list[LogSource], re.Pattern[str] | None]:
        """Open a stream; return what begins to read it, in a thread each, and the pattern of its lines."""
        if name == "subscribe":
            return [lambda: _Changes(self._scheduler)], None
        if self._is_for_torchx:
            positional, keywords = decode_arguments(contract_method(name), data)
            return self._scheduler.log_sources(*positional, **keywords)
        lines = self.call(name, data)
        return [lambda: lines], None

    def open(self, found: FoundScheduler, session_name: str, params: dict[str, Any]) -> Opened:
        """Import the plugin and make its scheduler."""
        self._name = found.name
        made = self._scheduler = _make(found, session_name, params)
        self._is_for_torchx = hasattr(made, "log_sources")
        kind = type(made)
        overridden = {name for name in METHODS if getattr(kind, name, None) is not getattr(Scheduler, name, None)}
        if not getattr(made, "describes_natively", True):
            overridden.discard("describe_native")
        builds = isinstance(made, WorkspaceMixin)
        once = bool(getattr(made, "runs_once_per_node", False))
        return Opened(made.capabilities, made.context, made.takes_contexts, once, builds, sorted(overridden))

    def dry_run(self, app: AppDef, cfg: Cfg) -> tuple[int, str]:
        """Make a request and keep it; return its number and text."""
        info = self._scheduler.submit_dryrun(app, cfg)
        number = next(self._numbers)
        self._requests[number] = info
        self._requests.pop(number - _MAX_REQUESTS, None)
        return number, str(info)

    def launch(self, number: int, app: AppDef, cfg: Cfg) -> str:
        """Launch the request of a dry run, or make it again if an earlier process made it."""
        info = self._requests.pop(number, None) or self._scheduler.submit_dryrun(app, cfg)
        info.app, info.cfg = app, cfg
        return str(self._scheduler.schedule(info))

    def build(self, app: AppDef, cfg: Cfg) -> AppDef:
        """Build the workspaces of the roles of an app; return it."""
        self._scheduler.build_workspaces(app.roles, cfg)
        return app

    def describe_error(self, name: str, error: BaseException) -> JsonObject:
        """Describe an error, and what the scheduler can do since then: it loses an output that it refused."""
        is_plain = isinstance(error, (ValueError, NotImplementedError)) and not self._is_for_torchx
        described = encode_error(error if is_plain else plugin_error(self._name, METHODS[name], error))
        if isinstance(error, ValueError) and self._scheduler is not None:
            described["capabilities"] = encode(self._scheduler.capabilities)
        return described


def contract_method(name: str) -> Callable[..., Any]:
    """Return the method of the table whose annotations say what it takes and returns."""
    return next(getattr(contract, name) for contract in (Host, Scheduler, *ABILITIES) if hasattr(contract, name))


class _Changes:
    """A line when the scheduler began to report changes, and one for each change."""

    def __init__(self, scheduler: Any) -> None:
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._unsubscribe = scheduler.subscribe(lambda: self._lines.put("\n"))
        self._lines.put("\n" if self._unsubscribe else "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines.get, "")

    def close(self) -> None:
        if self._unsubscribe:
            self._unsubscribe()
        self._lines.put("")


def _make(found: FoundScheduler, session_name: str, params: Mapping[str, Any]) -> Scheduler[Any]:
    is_for_torchx = found.group != GUEST_GROUP
    # TorchX's Runner gives every factory each variable TORCHX_*, its name in lower case.
    variables = {name.lower(): value for name, value in os.environ.items() if name.startswith("TORCHX_")}
    try:
        made = found.load()(session_name, **{**(variables if is_for_torchx else {}), **params})
        if isinstance(made, Scheduler):
            return made
        accepted: tuple[Any, ...] = ()
        if is_for_torchx:
            from torchx.schedulers.api import Scheduler as TorchXBase

            accepted = (TorchXBase,)
        if not isinstance(made, accepted):
            raise TypeError(f"it made a {type(made).__name__}, which is no scheduler")
    except BackendUnavailableError:
        raise
    except BaseException as error:  # SystemExit too
        reason = plugin_error(found.name, METHODS["open"], error)
        raise BackendUnavailableError(f"{reason} ({found.origin}): fix or uninstall it") from error
    from torchx.workspace import WorkspaceMixin as TorchXWorkspaceMixin

    from .scheduler import TorchXScheduler, TorchXWorkspaceScheduler

    kind = TorchXWorkspaceScheduler if isinstance(made, TorchXWorkspaceMixin) else TorchXScheduler
    return kind(found, session_name, made)
