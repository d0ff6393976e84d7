"""Calls that are bounded in time, in a thread that can be abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from .errors import TorchXTuiError

T = TypeVar("T")
# No call is started while this number of threads hangs.
_MAX_HANGING = 3
# How often a wait checks whether it shall end (s).
_CHECK_INTERVAL_S = 0.1


class NoAnswerError(TorchXTuiError, TimeoutError):
    """A call did not return in time."""


class CallDroppedError(TorchXTuiError):
    """The caller no longer needs the answer."""


class LimitedCaller:
    """Makes calls with a time limit; a call that hangs is abandoned in its daemon thread.

    Args:
        name: what the threads are called.
        slow_seconds: a call that takes longer is reported as slow.
        on_slow: called with a sentence about it.
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
            raise NoAnswerError(f"{len(self._hanging)} earlier requests still hang")
        call = AwaitedCall(function, self._name)
        began = time.monotonic()
        reported = False
        while not call.wait(_CHECK_INTERVAL_S):
            waited = time.monotonic() - began
            if dropped():
                self._hanging.append(call.thread)
                raise CallDroppedError("the answer is no longer needed")
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
        except BaseException as error:  # SystemExit of a plugin, too
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; return whether the call has returned."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return or raise the result of a call that has returned."""
        if self._error is not None:
            if isinstance(self._error, Exception):
                raise self._error
            raise TorchXTuiError(f"{type(self._error).__name__}: {self._error}") from self._error
        return self._result  # type: ignore[return-value]
