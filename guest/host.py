"""Asks guests: starts them, bounds their answers in time and size, and kills them when they are over.

A guest runs the components of one folder with one interpreter. It is started when it is first asked, kept for the next
question, started afresh when a file that it has imported changed, and ends when it was idle for a minute or this
process is gone. `program.py` has the wire format.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import TorchXTuiError
from ..base.files import modified_ns
from .interpreter import OLDEST, Interpreter
from .program import PROTOCOL
from .settings import GuestSettings, guest_settings

_log = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
# Libraries that the package needs, taken along for interpreters that have none.
_LIBRARIES = ("yaml", "docstring_parser")
# How often a wait looks whether the answer is still wanted (s).
_CHECK_INTERVAL_S = 0.1
START_TIMEOUT_S = 20.0
"""How long a guest may take to start."""
# How long a guest may take to end by itself, and to say where it was, once its time is over (s).
_STOP_TIMEOUT_S = 10.0
# How long a guest is waited for that has closed its answers or was told to end (s).
_END_TIMEOUT_S = 2.0
_MAX_ANSWER_SIZE = 32 << 20
_MAX_OUTPUT_SIZE = 20_000
_MAX_GUESTS = 4
_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in ')


class GuestError(TorchXTuiError):
    """A guest gave no answer.

    Args:
        reason: What happened to it.
        output: What was printed in it, the end of it.
        frames: Files and lines where it was when its time was over, innermost first.
    """

    def __init__(self, reason: str, output: str = "", frames: tuple[tuple[str, int], ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.output = output
        self.frames = frames


@dataclass
class Answer:
    """An answer of a guest.

    Args:
        data: What it says.
        output: What was printed meanwhile, the end of it.
    """

    data: dict[str, Any]
    output: str


class Guests:
    """The guests of this process, by interpreter and folder.

    Args:
        settings: Their limits.
    """

    def __init__(self, settings: GuestSettings) -> None:
        self.settings = settings
        self._guests: dict[tuple[str, str], _Guest] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        interpreter: Interpreter,
        folder: str,
        request: Mapping[str, Any],
        check: Callable[[], object] = lambda: None,
        report: Callable[[str], object] = lambda text: None,
    ) -> Answer:
        """Ask the guest of an interpreter and a folder.

        Args:
            interpreter: Runs it.
            folder: questions about the same folder share a guest.
            request: The question.
            check: Called several times a second; the guest is killed when it raises.
            report: Called when the answer takes long, with a sentence.

        Raises:
            GuestError: It could not be started, ended before it answered, or did not answer in time.
            Exception: What `check` raised.
        """
        key = (interpreter.path, folder)
        with self._lock:
            guest = self._guests.pop(key, None)
            # Oldest first: this one is the last now.
            self._guests[key] = guest = guest or _Guest(interpreter)
            others = list(self._guests.items())[:-_MAX_GUESTS]
            for other, _ in others:
                del self._guests[other]
        for _, old in others:
            old.close()
        return guest.ask(request, self.settings, check, report)

    def keep(self) -> None:
        """Let those that run not end as idle for now; returns at once."""
        with self._lock:
            guests = list(self._guests.values())
        for guest in guests:
            guest.keep()

    def close(self) -> None:
        """End all guests; a guest that is asked later is started again."""
        with self._lock:
            guests, self._guests = list(self._guests.values()), {}
        for guest in guests:
            guest.close()


guests = Guests(guest_settings)
"""Those that components are built by."""


class _Guest:
    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._process: GuestProcess | None = None
        self._lock = threading.Lock()

    def ask(
        self,
        request: Mapping[str, Any],
        settings: GuestSettings,
        check: Callable[[], object],
        report: Callable[[str], object],
    ) -> Answer:
        while not self._lock.acquire(timeout=_CHECK_INTERVAL_S):
            check()
        try:
            if self._process is not None and not (self._process.finish(check) and self._process.is_current()):
                self._end()
            if self._process is None:
                self._process = GuestProcess(self._interpreter, settings, check)
            try:
                answer = self._process.ask(request, settings, check, report)
            except GuestError:
                self._end()
                raise
            if not answer.data.get("loaded"):
                # A module that failed half-way is imported anew, from files that may be mended by then.
                self._end()
            return answer
        finally:
            self._lock.release()

    def keep(self) -> None:
        # One that is asked just now is not idle.
        if self._lock.acquire(blocking=False):
            try:
                if self._process is not None:
                    self._process.keep()
            finally:
                self._lock.release()

    def close(self) -> None:
        if self._lock.acquire(timeout=_CHECK_INTERVAL_S):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class GuestProcess:
    """The processes of a guest. Raises GuestError where they do not start.

    Args:
        interpreter: Runs them.
        settings: Their limits.
        check: Called several times a second while they start; what it raises ends them.
        service: What answers instead of `builder`: its module, import path and other settings of `program`.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        settings: GuestSettings,
        check: Callable[[], object],
        service: Mapping[str, Any] | None = None,
    ) -> None:
        self._interpreter = interpreter
        self._environment = dict(os.environ)
        self._folder = _current_folder()
        self._files: dict[str, int] = {}
        self._received = bytearray()
        self._output = bytearray()
        self._child = 0
        # An answer that is not wanted any more comes by then.
        self._busy_until: float | None = None
        self.printed_size = 0
        self._started = self._start(settings, service or {})
        try:
            late = f"{interpreter} did not start within {START_TIMEOUT_S:g} s"
            self._greet(self.read(time.monotonic() + START_TIMEOUT_S, check, late))
        except BaseException:
            self.end()
            raise

    def _start(self, settings: GuestSettings, service: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        if fault := self._interpreter.fault():
            raise GuestError(fault)
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        life, self._life = os.pipe()
        self._printed, printed = os.pipe()
        self._pipes = [self._requests, self._answers, self._life, self._printed]
        os.set_blocking(self._requests, False)
        given = {
            "requests": requests,
            "answers": answers,
            "life": life,
            "root": str(_ROOT),
            "libraries": _library_folders(),
            "memory": int(settings.memory_gigabytes * (1 << 30)),
            "service": "torchx_tui.guest.builder",
            "arguments": [settings.idle_s],
            # Whatever a component leaves behind is ended with its guest.
            "adopt": True,
            **service,
        }
        program = Path(__file__).with_name("program.py")
        try:
            return subprocess.Popen(
                [self._interpreter.path, str(program), json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(requests, answers, life),
                start_new_session=True,
            )
        except OSError as error:
            self._close_pipes()
            raise GuestError(f"{self._interpreter} cannot be started: {error.strerror}") from error
        finally:
            for descriptor in (requests, answers, life, printed):
                os.close(descriptor)

    def _greet(self, answer: dict[str, Any]) -> None:
        hello = answer.get("hello")
        version = hello.get("version") if isinstance(hello, dict) else None
        if not isinstance(hello, dict) or hello.get("protocol") != PROTOCOL or not isinstance(version, list):
            raise GuestError(f"{self._interpreter} did not start torchx-tui's program", self._text())
        if tuple(version) < OLDEST:
            found, wanted = (".".join(str(part) for part in parts) for parts in (version, OLDEST))
            raise GuestError(f"{self._interpreter} is Python {found}: components need {wanted} or newer")
        self._child = int(hello.get("process", 0))

    def is_current(self) -> bool:
        """Tell whether it still runs, in the world of today: environment, folder and files as they are now."""
        if self._started.poll() is not None or select.select([self._answers], [], [], 0)[0]:
            return False
        if self._environment != dict(os.environ) or self._folder != _current_folder():
            return False
        return all(modified_ns(path) == modified for path, modified in self._files.items())

    def ask(
        self,
        request: Mapping[str, Any],
        settings: GuestSettings,
        check: Callable[[], object],
        report: Callable[[str], object],
    ) -> Answer:
        """Ask for an AppDef; see `Guests.ask`."""
        self._output.clear()
        began = time.monotonic()
        # It ends by itself when its time is over, and writes where it was; unless the code undid that.
        self._busy_until = began + settings.timeout_s + _STOP_TIMEOUT_S
        reported = False

        def look() -> None:
            nonlocal reported
            check()
            if not reported and time.monotonic() - began >= settings.slow_s:
                reported = True
                report(f"no answer for {settings.slow_s:g} s, still waiting")

        self.send({**request, "timeout": settings.timeout_s}, look)
        return self._receive(self._busy_until, look, f"it did not return within {settings.timeout_s:g} s")

    def finish(self, check: Callable[[], object]) -> bool:
        """Wait for an answer that was given up; tell whether the process can be asked again."""
        if self._busy_until is None:
            return True
        try:
            return bool(self._receive(self._busy_until, check, "it did not return").data.get("loaded"))
        except GuestError:
            return False

    def _receive(self, deadline: float, look: Callable[[], object], late: str) -> Answer:
        data = self.read(deadline, look, late)
        self._drain()
        if "ended" in data:
            output, frames = _split_traceback(self._text())
            raise GuestError(f"{late} and was stopped" if frames else _describe_end(data["ended"]), output, frames)
        self._busy_until = None
        for item in data.get("files") or ():
            self._files.setdefault(str(item[0]), int(item[1]))
        return Answer(data, self._text())

    def send(self, request: Mapping[str, Any], look: Callable[[], object]) -> None:
        """Send a request; a guest that has ended takes it as well, and its last answer says how it ended."""
        data = (json.dumps(request) + "\n").encode()
        deadline = time.monotonic() + START_TIMEOUT_S
        while data:
            look()
            _, writable, _ = select.select([], [self._requests], [], _CHECK_INTERVAL_S)
            try:
                data = data[os.write(self._requests, data) :] if writable else data
            except OSError:
                return
            if time.monotonic() > deadline:
                raise GuestError("it takes no question")

    def keep(self) -> None:
        """Send what keeps it from ending as idle."""
        with suppress(OSError):
            os.write(self._requests, b"\n")

    def read(self, deadline: float | None, look: Callable[[], object], late: str) -> dict[str, Any]:
        """Read an answer, and meanwhile what is printed.

        Args:
            deadline: When it is late, by the monotonic clock; None waits for ever, and does not look.
            look: Called several times a second.
            late: What is said then.
        """
        interval = None if deadline is None else _CHECK_INTERVAL_S
        while b"\n" not in self._received:
            look()
            has_ended = self._started.poll() is not None
            ready, _, _ = select.select([self._answers, self._printed], [], [], interval)
            if self._printed in ready:
                self._take_output()
            data = os.read(self._answers, 1 << 16) if self._answers in ready else None
            # Once it has ended, what it started may still hold its pipes open.
            if data == b"" or (data is None and has_ended):
                self._drain()
                raise GuestError(_describe_end(self._wait()), self._text())
            self._received += data or b""
            if len(self._received) > _MAX_ANSWER_SIZE:
                raise GuestError(f"its answer is larger than {_MAX_ANSWER_SIZE >> 20} MiB")
            # What has come is an answer, however late this process itself looks.
            if deadline is not None and b"\n" not in self._received and time.monotonic() > deadline:
                self._drain()
                raise GuestError(late, self._text())
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise GuestError(f"its answer is not JSON: {error}", self._text()) from error
        if not isinstance(answer, dict):
            raise GuestError("its answer is not a JSON object", self._text())
        return answer

    def _take_output(self) -> bool:
        data = os.read(self._printed, 1 << 16)
        self._output += data
        self.printed_size += len(data)
        del self._output[:-_MAX_OUTPUT_SIZE]
        return bool(data)

    def _drain(self) -> None:
        """Take what was printed so far; a process that prints for ever does not hold this up."""
        for _ in range(1000):
            if not select.select([self._printed], [], [], 0)[0] or not self._take_output():
                return

    def _text(self) -> str:
        return self._output.decode("utf-8", "replace").strip()

    def printed_since(self, size: int) -> str:
        """Return what was printed after the first `size` bytes, or the end of that."""
        self._drain()
        new = self.printed_size - size
        return self._output[-new:].decode("utf-8", "replace").strip() if new > 0 else ""

    def _wait(self) -> int | None:
        """Wait for the end of the first process; return its wait status."""
        try:
            code = self._started.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None
        return -code if code < 0 else code << 8

    @staticmethod
    def describe_end(answer: Mapping[str, Any]) -> str:
        """Say how a process ended, from its last answer."""
        return _describe_end(answer.get("ended"))

    def hang_up(self) -> None:
        """Tell the processes to end, while another thread still reads their answers."""
        for descriptor in (self._requests, self._life):
            if descriptor in self._pipes:
                self._pipes.remove(descriptor)
                os.close(descriptor)

    def end(self) -> None:
        """End the processes; what the first does not kill in time, is killed here."""
        self._close_pipes()
        try:
            self._started.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _log.warning("a guest of %s did not end", self._interpreter)
        for group in (self._started.pid, self._child):
            if group > 1:
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._started.wait(_END_TIMEOUT_S)

    def _close_pipes(self) -> None:
        while self._pipes:
            os.close(self._pipes.pop())


def _describe_end(status: Any) -> str:
    if not isinstance(status, int):
        return "its process closed its pipes"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(number).name}"
        return f"its process was ended by signal {number}"
    return f"its process ended with exit code {os.WEXITSTATUS(status)} before it returned"


def _split_traceback(output: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Split what was printed from the traceback of `faulthandler`, if one stands at its end."""
    text, marker, trace = output.rpartition("Timeout (")
    if not marker:
        return output, ()
    matches = (_FRAME.match(line) for line in trace.splitlines())
    return text.strip(), tuple((match["path"], int(match["line"])) for match in matches if match)


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _library_folders() -> dict[str, str]:
    folders = {}
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            folders[name] = str(Path(spec.origin).parents[1])
    return folders
