"""Calls that may hang for ever, each in a thread that can be given up."""

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

# Bytes of what a call printed that are kept.
_MOST = 20_000

_here = threading.local()
_installing = threading.Lock()


class Printed:
    """What was printed in one thread while a plugin worked there."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    @property
    def file(self) -> IO[bytes]:
        """A file for it; made when something is printed, or when a program is started."""
        if self._file is None:
            # Unbuffered: programs write to it as well.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this object
        return self._file

    def write(self, text: str) -> None:
        """Add a text; of a great deal the beginning is forgotten."""
        if self.file.tell() > 10 * _MOST:
            self.file.seek(0)
            self.file.truncate()
        self.file.write(text.encode("utf-8", "replace"))

    def text(self) -> str:
        """Return the end of it."""
        if self._file is None:
            return ""
        length = self._file.seek(0, 2)
        self._file.seek(max(0, length - _MOST))
        return self._file.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Free it."""
        if self._file is not None:
            self._file.close()


@contextmanager
def printed_aside() -> Iterator[Printed]:
    """Take what this thread prints away from the terminal; give what it was."""
    _install()
    before = getattr(_here, "printed", None)
    _here.printed = printed = Printed()
    try:
        yield printed
    finally:
        _here.printed = before
        printed.close()


class _ByThread:
    """Stands for a stream of `sys`: a thread in which a plugin works writes elsewhere."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write where this thread writes."""
        printed: Printed | None = getattr(_here, "printed", None)
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
        printed: Printed | None = getattr(_here, "printed", None)
        return self._stream.buffer if printed is None else printed.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _install() -> None:
    """Make way for it; streams that were exchanged since, as the dashboard does, are exchanged again."""
    with _installing:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _ByThread):
                setattr(sys, name, _ByThread(stream))
        if not hasattr(subprocess.Popen.__init__, "without_plugins"):
            subprocess.Popen.__init__ = _aside(subprocess.Popen.__init__)
            signal.signal = _unless_in_plugin(signal.signal)


def _aside(start: Any) -> Any:
    """Return what starts a program; of a plugin's, that which would be printed on our terminal is taken.

    There is no other way to the streams of a program that somebody else starts.
    """

    @functools.wraps(start)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        printed: Printed | None = getattr(_here, "printed", None)
        # Those that give more than the command and the buffer's size by position are left alone.
        if printed is not None and len(args) <= 2:
            for name in ("stdout", "stderr"):
                if kwargs.get(name) is None:
                    kwargs[name] = printed.file
            if kwargs.get("stdin") is None:
                kwargs["stdin"] = subprocess.DEVNULL
        start(self, *args, **kwargs)

    init.without_plugins = start  # type: ignore[attr-defined]
    return init


def _unless_in_plugin(handle: Any) -> Any:
    """Return what sets a signal's handler; a plugin's is not set."""

    @functools.wraps(handle)
    def set_handler(number: int, handler: Any) -> Any:
        if getattr(_here, "printed", None) is not None:
            return signal.getsignal(number)
        return handle(number, handler)

    return set_handler


T = TypeVar("T")

# Threads that hang; while there are so many no further one is started, until one of them comes back.
_MOST_GIVEN_UP = 3
# How often a wait looks whether it shall end (s).
_LOOK_SECONDS = 0.1


class NoAnswerError(TorchXTuiError, TimeoutError):
    """A call did not come back in time."""


class CallDroppedError(TorchXTuiError):
    """Nobody waits for the answer of a call any more; it says nothing about whether one would have come."""


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
        """Wait so long at most, and tell whether it came back."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return what the call returned, or raise what it raised; only for one that came back."""
        if self._error is not None:
            if isinstance(self._error, Exception):
                raise self._error
            raise TorchXTuiError(f"{type(self._error).__name__}: {self._error}") from self._error
        return self._result  # type: ignore[return-value]


class LimitedCaller:
    """Makes calls that are waited for only so long; what hangs is left behind in a daemon thread.

    Args:
        name: what the threads are called.
        slow_seconds: after so long a call is said to be slow.
        on_slow: called then, with a sentence.
    """

    def __init__(
        self, name: str, *, slow_seconds: float = 10.0, on_slow: Callable[[str], object] = lambda _: None
    ) -> None:
        self._name = name
        self._slow_seconds = slow_seconds
        self._on_slow = on_slow
        self._given_up: list[threading.Thread] = []

    def call(self, function: Callable[[], T], limit: float, dropped: Callable[[], bool] = lambda: False) -> T:
        """Return what a function returns, or raise what it raises.

        Args:
            function: called in a thread of its own.
            limit: seconds to wait for it.
            dropped: tells that nobody waits for the answer any more.

        Raises:
            CallDroppedError: ``dropped`` said so before the answer came.
            NoAnswerError: it did not come back in time, or too many earlier calls still hang.
        """
        self._given_up = [thread for thread in self._given_up if thread.is_alive()]
        if len(self._given_up) >= _MOST_GIVEN_UP:
            raise NoAnswerError(f"no answer to {len(self._given_up)} questions, they still hang")
        call = AwaitedCall(function, self._name)
        began = time.monotonic()
        told = False
        while not call.wait(_LOOK_SECONDS):
            waited = time.monotonic() - began
            if dropped():
                self._given_up.append(call.thread)
                raise CallDroppedError("the answer is not wanted any more")
            if waited >= limit:
                self._given_up.append(call.thread)
                raise NoAnswerError(f"no answer within {limit:g} s")
            if waited >= self._slow_seconds and not told:
                told = True
                self._on_slow(f"no answer for {waited:.0f} s, still waiting")
        return call.result()
