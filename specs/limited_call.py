"""Calls that may hang for ever, each in a thread that can be given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from .errors import TorchXTuiError

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
