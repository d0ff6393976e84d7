"""Calls of code that is not ours: bounded in time, in a thread that can be abandoned, with their output captured."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Generic, TypeVar

from .errors import TorchXTuiError

T = TypeVar("T")
# While so many threads hang, no further one is started.
_MAX_HANGING = 3
# How often a wait checks whether it shall end (s).
_CHECK_INTERVAL_S = 0.1
# Bytes of the captured output that are kept.
_MAX_OUTPUT_SIZE = 20_000
_thread = threading.local()
_install_lock = threading.Lock()


class NoAnswerError(TorchXTuiError, TimeoutError):
    """A call did not return in time."""


class CallDroppedError(TorchXTuiError):
    """Nobody waits for the answer of a call any more; it says nothing about whether one would have come."""


class LimitedCaller:
    """Makes calls with a time limit; a call that hangs is abandoned in its daemon thread.

    Args:
        name: what the threads are called.
        slow_seconds: after so long a call is reported as slow.
        on_slow: called then, with a sentence.
    """

    def __init__(
        self, name: str, *, slow_seconds: float = 10.0, on_slow: Callable[[str], object] = lambda _: None
    ) -> None:
        self._name = name
        self._slow_seconds = slow_seconds
        self._on_slow = on_slow
        self._hanging: list[threading.Thread] = []

    def call(self, function: Callable[[], T], limit: float, dropped: Callable[[], bool] = lambda: False) -> T:
        """Call a function; return what it returns, or raise what it raises.

        Args:
            function: called in a thread of its own.
            limit: seconds to wait for it.
            dropped: tells that the answer is no longer wanted.

        Raises:
            CallDroppedError: ``dropped`` returned true before the answer came.
            NoAnswerError: it did not return in time, or too many earlier calls still hang.
        """
        self._hanging = [thread for thread in self._hanging if thread.is_alive()]
        if len(self._hanging) >= _MAX_HANGING:
            raise NoAnswerError(f"no answer to {len(self._hanging)} questions, they still hang")
        call = AwaitedCall(function, self._name)
        began = time.monotonic()
        reported = False
        while not call.wait(_CHECK_INTERVAL_S):
            waited = time.monotonic() - began
            if dropped():
                self._hanging.append(call.thread)
                raise CallDroppedError("the answer is not wanted any more")
            if waited >= limit:
                self._hanging.append(call.thread)
                raise NoAnswerError(f"no answer within {limit:g} s")
            if waited >= self._slow_seconds and not reported:
                reported = True
                self._on_slow(f"no answer for {waited:.0f} s, still waiting")
        return call.result()


class AwaitedCall(Generic[T]):
    """A call in a daemon thread, begun at once.

    Args:
        function: what is called.
        name: what the thread is called.
    """

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._function = function
        self._result: T | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:  # whatever a plug-in raises, SystemExit too, is its caller's to see
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds; return whether the call has returned."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return or raise the result of a call that has returned."""
        if self._error is not None:
            if isinstance(self._error, Exception):
                raise self._error
            raise TorchXTuiError(f"{type(self._error).__name__}: {self._error}") from self._error
        return self._result  # type: ignore[return-value]


@contextmanager
def capture_prints() -> Iterator[CapturedOutput]:
    """Redirect what this thread prints away from the terminal; yield the captured output."""
    _install()
    before = getattr(_thread, "printed", None)
    _thread.printed = printed = CapturedOutput()
    try:
        yield printed
    finally:
        _thread.printed = before
        printed.close()


class CapturedOutput:
    """The output of one thread while a plugin runs there."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    @property
    def file(self) -> IO[bytes]:
        """The file of the output; created when something is printed, or when a program is started."""
        if self._file is None:
            # Unbuffered: programs write to it as well.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this object
        return self._file

    def write(self, text: str) -> None:
        """Add a text; if there is too much, the beginning is dropped."""
        if self.file.tell() > 10 * _MAX_OUTPUT_SIZE:
            self.file.seek(0)
            self.file.truncate()
        self.file.write(text.encode("utf-8", "replace"))

    def text(self) -> str:
        """Return the end of the output."""
        if self._file is None:
            return ""
        length = self._file.seek(0, 2)
        self._file.seek(max(0, length - _MAX_OUTPUT_SIZE))
        return self._file.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class _StreamByThread:
    """Replaces a stream of `sys`: the output of a thread in which a plugin runs is captured."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write where this thread writes."""
        printed: CapturedOutput | None = getattr(_thread, "printed", None)
        if printed is None:
            return self._stream.write(text)
        printed.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts where this thread writes."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        """What takes bytes, where this thread writes."""
        printed: CapturedOutput | None = getattr(_thread, "printed", None)
        return self._stream.buffer if printed is None else printed.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _install() -> None:
    """Install the redirections; streams that were replaced since, as the dashboard does, are replaced again."""
    with _install_lock:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _StreamByThread):
                setattr(sys, name, _StreamByThread(stream))
        if not hasattr(subprocess.Popen.__init__, "without_plugins"):
            subprocess.Popen.__init__ = _redirecting_popen(subprocess.Popen.__init__)
            signal.signal = _ignoring_in_plugin(signal.signal)


def _redirecting_popen(start: Any) -> Any:
    """Wrap the start of a program, so that the output of a plugin's programs is captured.

    There is no other way to the streams of a program that somebody else starts.
    """

    @functools.wraps(start)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        printed: CapturedOutput | None = getattr(_thread, "printed", None)
        # Calls with more positional arguments than the command and the buffer size are left alone.
        if printed is not None and len(args) <= 2:
            for name in ("stdout", "stderr"):
                if kwargs.get(name) is None:
                    kwargs[name] = printed.file
            if kwargs.get("stdin") is None:
                kwargs["stdin"] = subprocess.DEVNULL
        start(self, *args, **kwargs)

    init.without_plugins = start  # type: ignore[attr-defined]
    return init


def _ignoring_in_plugin(handle: Any) -> Any:
    """Wrap `signal.signal`, so that a plugin's handlers are ignored."""

    @functools.wraps(handle)
    def set_handler(number: int, handler: Any) -> Any:
        if getattr(_thread, "printed", None) is not None:
            return signal.getsignal(number)
        return handle(number, handler)

    return set_handler
