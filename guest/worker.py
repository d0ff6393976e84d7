"""Calls of foreign code in a process of its own.

A request is ``{"id": 7, "call": NAME, "arguments": [...]}``; its answer is ``{"id": 7, "value": ...}`` or
``{"id": 7, "error": {...}}``. A stream begins with ``"stream"`` for ``"call"``; before its answer come any number of
``{"id": 7, "lines": [...]}``, of which the first is empty. ``{"id": 7, "room": 1000}`` asks for that many more lines,
``{"id": 7, "close": true}`` ends the stream. The answer with id 0 comes at the start: ``[[3, 11, 7], PROCESS]``.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import os
import queue
import select
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import TorchXTuiError
from ..base.validation import JsonObject
from . import framing
from .interpreter import OLDEST, Interpreter

_log = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
# Libraries that the package needs, passed on to interpreters that lack them.
_LIBRARIES = ("yaml", "docstring_parser", "cachetools")
Tick = Callable[[], object]
"""Is called while a caller waits for an answer; cancels the call by raising."""
TICK_S = 0.1
"""How often a caller is asked whether it still wants the answer."""
START_TIMEOUT_S = 20.0
# How long a process may take to end by itself before it is killed.
_END_TIMEOUT_S = 2.0
_MAX_OUTPUT_BYTES = 20_000
_NO_ANSWER = object()


class WorkerError(TorchXTuiError):
    """A worker gave no answer.

    Args:
        reason: What happened to it.
        output: The end of what it printed during the call.
        line: The line of the component that hung.
    """

    def __init__(self, reason: str, output: str = "", line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.output = output
        self.line = line


class WorkerTimeoutError(WorkerError):
    """A worker did not answer in time."""


class RemoteError(Exception):
    """The worker answered with an error.

    Args:
        error: The error as plain data.
        output: The end of what it printed during the call.
    """

    def __init__(self, error: JsonObject, output: str) -> None:
        super().__init__(error)
        self.error = error
        self.output = output


class Worker:
    """A program in a process of its own, which answers calls until it ends.

    Args:
        name: Its name in threads and the log file.
        interpreter: Runs it.
        module: Answers the calls; its `serve` gets the socket and `idle_s`.
        path: Its `sys.path`; None for that of the interpreter.
        adopt: Whether all that it leaves behind ends with it, also in sessions of their own (Linux only).
        memory_gigabytes: RLIMIT_DATA of its process; 0 for no limit.
        idle_s: Seconds without a call after which it ends; None for never.
        tick: Cancels the start, as for `call`.

    Raises:
        WorkerError: It does not start, or `interpreter` must not or cannot run it.
    """

    def __init__(
        self,
        name: str,
        interpreter: Interpreter,
        module: str,
        *,
        path: Sequence[str] | None = None,
        adopt: bool = True,
        memory_gigabytes: float = 0.0,
        idle_s: float | None = None,
        tick: Tick = lambda: None,
    ) -> None:
        if fault := interpreter.fault():
            raise WorkerError(fault)
        self._name = name
        # Guards all below.
        self._lock = threading.RLock()
        # A stream that the garbage collector closes writes as well, in a thread that may be writing.
        self._writing = threading.RLock()
        self._numbers = itertools.count()
        self._calls: dict[int, _Call] = {}
        self._ended = ""
        self._is_retired = False
        self._output = b""
        self._printed_bytes = self._group = 0
        hello = self._begin()
        self._channel, channel = socket.socketpair()
        # Held by the first process alone: each side learns by it of the end of the other.
        self._life, life = socket.socketpair()
        self._channel.setblocking(False)
        settings = {
            "channel": channel.fileno(),
            "life": life.fileno(),
            "root": str(_ROOT),
            "libraries": _library_folders(),
            "module": module,
            "path": path,
            "adopt": adopt,
            "memory": int(memory_gigabytes * (1 << 30)),
            "idle_s": idle_s,
        }
        try:
            with channel, life:
                self._process = _start(interpreter, settings)
        except WorkerError:
            self._channel.close()
            self._life.close()
            raise
        threading.Thread(target=self._read, name=f"worker-{name}", daemon=True).start()
        late = f"{interpreter} did not start within {START_TIMEOUT_S:g} s"
        version, self._group = self._wait(hello, START_TIMEOUT_S, tick, late)
        if tuple(version) < OLDEST:
            self.close()
            found, wanted = (".".join(map(str, parts)) for parts in (version, OLDEST))
            raise WorkerError(f"{interpreter} is Python {found}: components need {wanted} or newer")

    @property
    def is_usable(self) -> bool:
        """Whether it answers further calls."""
        return not self._ended and not self._is_retired

    def call(self, name: str, arguments: Sequence[Any], timeout_s: float, tick: Tick = lambda: None) -> Any:
        """Call a function; return its value.

        A worker whose call times out or is cancelled ends, as soon as its other calls have returned.

        Args:
            name: The function.
            arguments: Plain data.
            timeout_s: Seconds to wait for the answer.
            tick: Called every 0.1 s while waiting; cancels the call by raising.

        Raises:
            WorkerTimeoutError: No answer came in time.
            WorkerError: The process ended.
            RemoteError: It answered with an error.
        """
        return self._wait(self._begin({"call": name, "arguments": arguments}), timeout_s, tick)

    def stream(self, name: str, arguments: Sequence[Any], timeout_s: float) -> WorkerStream:
        """Call a function that yields lines; return as soon as it has begun. Raises as `call` does."""
        call = self._begin({"stream": name, "arguments": arguments})
        self._wait(call, timeout_s)
        return WorkerStream(self, call)

    def retire(self) -> None:
        """Answer no further calls, and end when those in progress have returned."""
        with self._lock:
            self._is_retired = True
            if all(call.is_stream for call in self._calls.values()):
                self.close()

    def close(self) -> None:
        """End the process at once, without waiting for its end."""
        with self._lock, suppress(OSError):
            self._ended = self._ended or "its process was ended"
            # Seen by the first process, and by the reading thread.
            self._life.shutdown(socket.SHUT_RDWR)

    def send(self, message: JsonObject) -> None:
        """Send a message; one to a process that has ended is lost."""
        with self._writing, suppress(ConnectionError):
            if not self._ended:
                framing.send(self._channel.fileno(), message, START_TIMEOUT_S)

    def _begin(self, request: JsonObject | None = None) -> _Call:
        with self._lock:
            if self._ended:
                raise WorkerError(self._ended)
            is_stream = "stream" in (request or ())
            call = _Call(next(self._numbers), self._printed_bytes, is_stream, queue.SimpleQueue())
            self._calls[call.number] = call
        if request is not None:
            try:
                self.send({"id": call.number, **request})
            except TimeoutError as error:
                self._abandon(call)
                raise WorkerTimeoutError(str(error)) from error
        return call

    def _wait(self, call: _Call, timeout_s: float, tick: Tick = lambda: None, late: str = "") -> Any:
        deadline = time.monotonic() + timeout_s
        answer: Any = _NO_ANSWER
        try:
            while answer is _NO_ANSWER:
                tick()
                is_late = time.monotonic() >= deadline
                with suppress(queue.Empty):
                    answer = call.answers.get(timeout=TICK_S)
                if answer is _NO_ANSWER and is_late:
                    raise WorkerTimeoutError(late or f"no answer within {timeout_s:g} s", self._output_since(call))
        except BaseException:
            self._abandon(call)
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _abandon(self, call: _Call) -> None:
        with self._lock:
            self._calls.pop(call.number, None)
        self.retire()

    # What the reading thread does

    def _read(self) -> None:
        reason = ""
        decoder = framing.Decoder()
        poller = select.poll()
        printed, channel = self._process.stdout, self._channel.fileno()
        assert printed is not None
        # Polled in this order: what was sent before an end is seen with it, and what was printed before an answer.
        for readable in (self._life, self._channel, printed):
            poller.register(readable, select.POLLIN)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poller.poll()}
                if printed.fileno() in ready and not self._take_output(printed.fileno()):
                    poller.unregister(printed)
                if channel in ready and (data := os.read(channel, framing.READ_BYTES)):
                    for message in decoder.feed(data):
                        self._take(message)
                elif ready != {printed.fileno()}:
                    break
        except ConnectionError:
            pass
        except ValueError as error:
            reason = str(error)
        except Exception:
            _log.exception("the answers of %s cannot be read", self._name)
            reason = "its answers cannot be read"
        self._finish(reason)

    def _take(self, message: JsonObject) -> None:
        with self._lock:
            call = self._calls.get(message["id"])
            if call is None:
                return
            if "lines" in message:
                call.answers.put([*map(str, message["lines"])])
                return
            del self._calls[call.number]
            output, error = self._output_since(call), message.get("error")
            for noted in (output, error and error.get("traceback")):
                if noted:
                    _log.info("%s: %s", self._name, noted)
            call.answers.put(RemoteError(error, output) if error else message.get("value"))
        if self._is_retired:
            self.retire()

    def _take_output(self, printed: int) -> bool:
        data = os.read(printed, framing.READ_BYTES)
        with self._lock:
            self._output = (self._output + data)[-_MAX_OUTPUT_BYTES:]
            self._printed_bytes += len(data)
        return bool(data)

    def _output_since(self, call: _Call) -> str:
        new = self._printed_bytes - call.printed
        return self._output[-new:].decode("utf-8", "replace").strip() if new else ""

    def _finish(self, reason: str) -> None:
        self._life.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT_S)
        with self._lock:
            self._ended = self._ended or reason or _describe_end(self._process.returncode)
            for call in self._calls.values():
                call.answers.put(WorkerError(self._ended, self._output_since(call)))
            self._calls.clear()
        with self._writing, self._channel, self._process:
            # The first process has killed all that was left, unless it was killed itself.
            for group in (self._process.pid, self._group):
                if group > 1:
                    with suppress(OSError):
                        os.killpg(group, signal.SIGKILL)


def _start(interpreter: Interpreter, settings: JsonObject) -> subprocess.Popen[bytes]:
    program = Path(__file__).with_name("program.py")
    try:
        return subprocess.Popen(
            [interpreter.path, str(program), json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(settings["channel"], settings["life"]),
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise WorkerError(f"{interpreter} cannot be started: {error.strerror}") from error


def _describe_end(code: int | None) -> str:
    if code is None:
        return "its process closed its pipes"
    # The first process ends as a shell does whose program was ended by a signal.
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        return f"its process was ended by {signal.Signals(number).name}"
    return f"its process ended with exit code {code} before it returned"


def _library_folders() -> dict[str, str]:
    specs = {name: importlib.util.find_spec(name) for name in _LIBRARIES}
    return {name: str(Path(spec.origin).parent) for name, spec in specs.items() if spec is not None and spec.origin}


class _Call(NamedTuple):
    """A call in progress.

    Attributes:
        number: Its id.
        printed: The bytes that the worker had printed before it.
        is_stream: Whether it yields lines.
        answers: Lists of lines, then its value or an exception.
    """

    number: int
    printed: int
    is_stream: bool
    answers: queue.SimpleQueue[Any]


class WorkerStream:
    """The lines of a stream as they come; `close` ends a blocked read at once."""

    def __init__(self, worker: Worker, call: _Call) -> None:
        self._worker = worker
        self._call = call
        self._lines: deque[str] = deque()
        self._room = 0
        self._is_closed = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line.

        Raises:
            WorkerError: The process ended.
            RemoteError: The stream could not go on.
        """
        while not self._is_closed and not self._lines:
            answer = self._call.answers.get()
            if isinstance(answer, list):
                self._lines.extend(answer)
            elif not self._is_closed:
                self._is_closed = True
                raise answer or StopIteration
        if self._is_closed:
            raise StopIteration
        self._room += 1
        if self._room >= framing.STREAM_AHEAD // 2:
            self._worker.send({"id": self._call.number, "room": self._room})
            self._room = 0
        return self._lines.popleft()

    def close(self) -> None:
        """End the iteration at once."""
        if not self._is_closed:
            self._is_closed = True
            self._call.answers.put(None)
            self._worker.send({"id": self._call.number, "close": True})

    def __del__(self) -> None:
        self.close()
