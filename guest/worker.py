"""Calls code that is not ours, in a process of its own.

A request is ``{"id": 7, "call": NAME, "arguments": [...]}``; its answer is ``{"id": 7, "value": ...}`` or
``{"id": 7, "error": {...}}``. A stream begins with ``"stream"`` for ``"call"``; before its answer come any number of
``{"id": 7, "lines": [...]}``, of which the first is empty. ``{"id": 7, "room": 1000}`` asks for that many more lines,
``{"id": 7, "close": true}`` ends the stream. The answer with id 0 says that the process has started (`program`).
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import os
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
from typing import Any

from ..base.errors import TorchXTuiError
from . import framing
from .interpreter import OLDEST, Interpreter
from .program import PROTOCOL

_log = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
# Libraries that the package needs, passed on to interpreters that lack them.
_LIBRARIES = ("yaml", "docstring_parser")
TICK_S = 0.1
"""How often a caller is asked whether it still wants the answer."""
START_TIMEOUT_S = 20.0
# How long a process may take to end by itself before it is killed.
_END_TIMEOUT_S = 2.0
_MAX_OUTPUT_BYTES = 20_000
# A process that prints without end must not hold up its own end.
_MAX_LAST_READS = 1000
_CLOSED = "its process was ended"


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

    def __init__(self, error: dict[str, Any], output: str) -> None:
        super().__init__(error)
        self.error = error
        self.output = output


class Worker:
    """A program in a process of its own, started at the first call and again after its end.

    Args:
        name: Its name in threads and the log file.
        interpreter: Runs it.
        module: Answers the calls; its `serve` gets the socket and `idle_s`.
        opening: Arguments of the call `open`, made first at each start; None for no such call.
        opening_timeout_s: Seconds for that call.
        path: Its `sys.path`; None for that of the interpreter.
        adopt: Whether all that it leaves behind ends with it, also in sessions of their own (Linux only).
        memory_gigabytes: RLIMIT_DATA of its process; 0 for no limit.
        idle_s: Seconds without a call after which it ends; None for never.
    """

    def __init__(
        self,
        name: str,
        interpreter: Interpreter,
        module: str,
        *,
        opening: Sequence[Any] | None = None,
        opening_timeout_s: float = START_TIMEOUT_S,
        path: Sequence[str] | None = None,
        adopt: bool = True,
        memory_gigabytes: float = 0.0,
        idle_s: float | None = None,
    ) -> None:
        self._name = name
        self._interpreter = interpreter
        self._opening = opening
        self._opening_timeout_s = opening_timeout_s
        self._settings = {
            "module": module,
            "path": path,
            "adopt": adopt,
            "memory": int(memory_gigabytes * (1 << 30)),
            "idle_s": idle_s,
        }
        self._process: _Process | None = None
        self._starting = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether a process is there to answer."""
        return self._process is not None and self._process.is_usable

    def open(self) -> Any:
        """Start the process unless it runs; return its answer to `open`. Raises as `call` does."""
        return self._running().opened

    def call(
        self, name: str, arguments: Sequence[Any], timeout_s: float, tick: Callable[[], object] | None = None
    ) -> Any:
        """Call a function; return its value.

        The process of a call that times out or is cancelled ends, as soon as its other calls have returned.

        Args:
            name: The function.
            arguments: Plain data.
            timeout_s: Seconds to wait for the answer.
            tick: Called every 0.1 s while waiting; cancels the call by raising.

        Raises:
            WorkerTimeoutError: No answer came in time.
            WorkerError: The process ended, or does not start.
            RemoteError: It answered with an error.
        """
        return self._running(tick).call(name, arguments, timeout_s, tick)

    def stream(self, name: str, arguments: Sequence[Any], timeout_s: float) -> WorkerStream:
        """Call a function that yields lines; return as soon as it has begun. Raises as `call` does."""
        process = self._running()
        call = process.begin({"stream": name, "arguments": arguments}, is_stream=True)
        process.wait(call, lambda: call.is_begun or call.is_answered, timeout_s)
        return WorkerStream(process, call)

    def retire(self) -> None:
        """End the process when its calls have returned."""
        if (process := self._process) is not None:
            process.retire()

    def close(self) -> None:
        """End the process at once, without waiting for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _running(self, tick: Callable[[], object] | None = None) -> _Process:
        while not self._starting.acquire(timeout=TICK_S):
            if tick:
                tick()
        try:
            if (process := self._process) is not None and process.is_usable:
                return process
            if process is not None:
                _log.info("the worker %s is started again", self._name)
            self._process = process = _Process(self._name, self._interpreter, self._settings)
            process.greet(tick)
            if self._opening is not None:
                process.opened = process.call("open", self._opening, self._opening_timeout_s, tick)
            return process
        except BaseException:
            self.close()
            raise
        finally:
            self._starting.release()


class _Call:
    def __init__(self, number: int, printed: int, *, is_stream: bool) -> None:
        self.number = number
        self.printed = printed
        self.is_stream = is_stream
        self.is_begun = False
        self.is_answered = False
        self.lines: deque[str] = deque()
        self.value: Any = None
        self.error: Exception | None = None

    def answer(self, value: Any, error: Exception | None) -> None:
        self.value, self.error, self.is_answered = value, error, True


class _Process:
    """One start of a worker: its processes, and the calls that it has not answered."""

    def __init__(self, name: str, interpreter: Interpreter, settings: dict[str, Any]) -> None:
        if fault := interpreter.fault():
            raise WorkerError(fault)
        self.opened: Any = None
        self._name = name
        self._interpreter = interpreter
        # Guards all below, and wakes those who wait for an answer.
        self.changed = threading.Condition()
        # A stream that the garbage collector closes writes as well, in a thread that may be writing.
        self._writing = threading.RLock()
        self._numbers = itertools.count()
        self._calls: dict[int, _Call] = {}
        self._ended = ""
        self._is_retired = False
        self._output = bytearray()
        self._printed_bytes = 0
        self._group = 0
        self._decoder = framing.Decoder()
        self._poller = select.poll()
        self._hello = self._register(is_stream=False)
        self._started = self._start(settings)
        threading.Thread(target=self._read, name=f"worker-{name}", daemon=True).start()

    def _start(self, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        self._channel, channel = socket.socketpair()
        # Held by the first process alone: either end learns by it of the end of the other.
        self._life, life = socket.socketpair()
        self._printed, printed = os.pipe()
        self._channel.setblocking(False)
        for readable in (self._channel, self._life, self._printed):
            self._poller.register(readable, select.POLLIN)
        given = {
            "channel": channel.fileno(),
            "life": life.fileno(),
            "root": str(_ROOT),
            "libraries": _library_folders(),
            **settings,
        }
        program = Path(__file__).with_name("program.py")
        try:
            return subprocess.Popen(
                [self._interpreter.path, str(program), json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(channel.fileno(), life.fileno()),
                start_new_session=True,
            )
        except OSError as error:
            self._close_descriptors()
            raise WorkerError(f"{self._interpreter} cannot be started: {error.strerror}") from error
        finally:
            channel.close()
            life.close()
            os.close(printed)

    def greet(self, tick: Callable[[], object] | None) -> None:
        """Wait until the process has started; refuse it if it cannot run components."""
        late = f"{self._interpreter} did not start within {START_TIMEOUT_S:g} s"
        hello = self.wait(self._hello, lambda: self._hello.is_answered, START_TIMEOUT_S, tick, late)
        if not isinstance(hello, dict) or hello.get("protocol") != PROTOCOL:
            raise WorkerError(f"{self._interpreter} did not start torchx-tui's program")
        if tuple(hello["version"]) < OLDEST:
            found, wanted = (".".join(str(part) for part in parts) for parts in (hello["version"], OLDEST))
            raise WorkerError(f"{self._interpreter} is Python {found}: components need {wanted} or newer")
        self._group = int(hello["process"])

    @property
    def is_usable(self) -> bool:
        return not self._ended and not self._is_retired

    def call(
        self, name: str, arguments: Sequence[Any], timeout_s: float, tick: Callable[[], object] | None = None
    ) -> Any:
        call = self.begin({"call": name, "arguments": arguments})
        return self.wait(call, lambda: call.is_answered, timeout_s, tick)

    def begin(self, request: dict[str, Any], *, is_stream: bool = False) -> _Call:
        call = self._register(is_stream=is_stream)
        try:
            self.send({"id": call.number, **request})
        except TimeoutError as error:
            self._abandon(call)
            raise WorkerTimeoutError(str(error)) from error
        return call

    def _register(self, *, is_stream: bool) -> _Call:
        with self.changed:
            if self._ended:
                raise WorkerError(self._ended)
            call = _Call(next(self._numbers), self._printed_bytes, is_stream=is_stream)
            self._calls[call.number] = call
            return call

    def wait(
        self,
        call: _Call,
        is_ready: Callable[[], bool],
        timeout_s: float,
        tick: Callable[[], object] | None = None,
        late: str = "",
    ) -> Any:
        """Wait for an answer; return its value or raise its error. Without an answer in time, the call is abandoned."""
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                if tick:
                    tick()
                left = deadline - time.monotonic()
                with self.changed:
                    if self.changed.wait_for(is_ready, min(left, TICK_S) if tick else left):
                        break
                    if time.monotonic() >= deadline:
                        output = self._output_since(call.printed)
                        raise WorkerTimeoutError(late or f"no answer within {timeout_s:g} s", output)
        except BaseException:
            self._abandon(call)
            raise
        if call.error is not None and not call.is_begun:
            raise call.error
        return call.value

    def send(self, message: dict[str, Any]) -> None:
        # The reading thread says how a process that has ended did so.
        with self._writing, suppress(ConnectionError):
            if not self._ended:
                framing.send(self._channel.fileno(), message, START_TIMEOUT_S)

    def _abandon(self, call: _Call) -> None:
        with self.changed:
            self._calls.pop(call.number, None)
        self.retire()

    def retire(self) -> None:
        with self.changed:
            self._is_retired = True
        self._close_if_over()

    def _close_if_over(self) -> None:
        with self.changed:
            is_over = self._is_retired and all(call.is_stream for call in self._calls.values())
        if is_over:
            self.close()

    def close(self) -> None:
        """Tell both the processes and the reading thread to end."""
        with self.changed:
            self._ended = self._ended or _CLOSED
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_RDWR)

    # What the reading thread does

    def _read(self) -> None:
        reason = ""
        try:
            while self._take_ready(None):
                pass
            for _ in range(_MAX_LAST_READS):
                if not self._take_ready(0):
                    break
        except ValueError as error:
            reason = str(error)
        except Exception:
            _log.exception("the answers of %s cannot be read", self._name)
            reason = "its answers cannot be read"
        self._finish(reason)

    def _take_ready(self, timeout: int | None) -> bool:
        """Take what is there to read; return False at the end, and if there is nothing."""
        ready = {descriptor for descriptor, _ in self._poller.poll(timeout)}
        if self._printed in ready and not self._take_output():
            self._poller.unregister(self._printed)
        if (channel := self._channel.fileno()) in ready:
            try:
                data = os.read(channel, framing.READ_BYTES)
            except ConnectionError:
                data = b""
            for message in self._decoder.feed(data):
                self._take(message)
            if not data:
                self._poller.unregister(channel)
                return False
        if (life := self._life.fileno()) in ready:
            self._poller.unregister(life)
            return False
        return bool(ready)

    def _take(self, message: dict[str, Any]) -> None:
        if _is_readable(self._printed):
            # It was printed before the answer. A full pipe is one read.
            self._take_output()
        with self.changed:
            call = self._calls.get(message["id"])
            if call is None:
                return
            if "lines" in message:
                call.is_begun = True
                call.lines.extend(str(line) for line in message["lines"])
            else:
                del self._calls[call.number]
                output = self._output_since(call.printed)
                if output:
                    _log.info("%s printed: %s", self._name, output)
                if error := message.get("error"):
                    _log.info("%s answered with an error: %s", self._name, error.get("traceback", error))
                call.answer(message.get("value"), RemoteError(error, output) if error else None)
            self.changed.notify_all()
        self._close_if_over()

    def _take_output(self) -> bool:
        data = os.read(self._printed, framing.READ_BYTES)
        with self.changed:
            self._output += data
            self._printed_bytes += len(data)
            del self._output[:-_MAX_OUTPUT_BYTES]
        return bool(data)

    def _output_since(self, printed: int) -> str:
        new = self._printed_bytes - printed
        return self._output[-new:].decode("utf-8", "replace").strip() if new > 0 else ""

    def _finish(self, reason: str) -> None:
        reason = reason or self._ended or self._end_reason()
        with self.changed:
            self._ended = self._ended or reason
            for call in self._calls.values():
                call.answer(None, WorkerError(self._ended, self._output_since(call.printed)))
            self._calls.clear()
            self.changed.notify_all()
        self._close_descriptors()
        with suppress(subprocess.TimeoutExpired):
            self._started.wait(_END_TIMEOUT_S)
        # The first process has killed all that was left, unless it was killed itself.
        for group in (self._started.pid, self._group):
            if group > 1:
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._started.wait(_END_TIMEOUT_S)

    def _close_descriptors(self) -> None:
        self._life.close()
        os.close(self._printed)
        with self._writing:
            self._channel.close()

    def _end_reason(self) -> str:
        """Describe how the process ended: from what the first process says, or from its own end."""
        self._life.settimeout(_END_TIMEOUT_S)
        try:
            if said := self._life.recv(32):
                return _describe_end(int(said))
            code = self._started.wait(_END_TIMEOUT_S)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return "its process closed its pipes"
        return _describe_end(-code if code < 0 else code << 8)


def _is_readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


def _describe_end(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"its process ended with exit code {os.WEXITSTATUS(status)} before it returned"
    number = os.WTERMSIG(status)
    with suppress(ValueError):
        return f"its process was ended by {signal.Signals(number).name}"
    return f"its process was ended by signal {number}"


def _library_folders() -> dict[str, str]:
    specs = {name: importlib.util.find_spec(name) for name in _LIBRARIES}
    return {name: str(Path(spec.origin).parent) for name, spec in specs.items() if spec is not None and spec.origin}


class WorkerStream:
    """The lines of a stream as they come; `close` ends a blocked read at once."""

    def __init__(self, process: _Process, call: _Call) -> None:
        self._process = process
        self._call = call
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
        call = self._call
        with self._process.changed:
            self._process.changed.wait_for(lambda: call.lines or call.is_answered or self._is_closed)
            if self._is_closed or not call.lines:
                error, call.error = call.error, None
                raise error if error is not None and not self._is_closed else StopIteration
            line = call.lines.popleft()
        self._room += 1
        if self._room >= framing.STREAM_AHEAD // 2:
            self._process.send({"id": call.number, "room": self._room})
            self._room = 0
        return line

    def close(self) -> None:
        """End the iteration at once."""
        with self._process.changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._call.lines.clear()
            self._process.changed.notify_all()
        if not self._call.is_answered:
            self._process.send({"id": self._call.number, "close": True})

    def __del__(self) -> None:
        self.close()
