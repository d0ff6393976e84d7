"""Calls of code that is not ours: how long they are waited for, and what becomes of what they print."""

from __future__ import annotations

import sys
import threading

import pytest
from support.waiting import PATIENCE

from torchx_tui.base.errors import TorchXTuiError
from torchx_tui.base.timeouts import CallDroppedError, LimitedCaller, NoAnswerError


@pytest.fixture
def hang():
    """Return a function that hangs until the test ends, or ``.free`` is called."""
    free = threading.Event()

    def wait() -> bool:
        return free.wait(PATIENCE)

    wait.free = free.set  # type: ignore[attr-defined]
    yield wait
    free.set()


def test_a_call_that_comes_back():
    caller = LimitedCaller("test")
    assert caller.call(lambda: threading.current_thread().name, 20) == "test"
    with pytest.raises(KeyError):
        caller.call(lambda: {}["x"], 20)
    with pytest.raises(TorchXTuiError, match="SystemExit: 3"):
        caller.call(lambda: sys.exit(3), 20)


def test_no_more_than_three_calls_may_hang(hang):
    caller = LimitedCaller("test")
    for _ in range(2):
        with pytest.raises(NoAnswerError, match="no answer within 0 s"):
            caller.call(hang, 0)
    with pytest.raises(CallDroppedError):
        caller.call(hang, 60, lambda: True)
    with pytest.raises(NoAnswerError, match="3 earlier requests still hang"):
        caller.call(lambda: 1, 60)
    hanging = [thread for thread in threading.enumerate() if thread.name == "test"]
    hang.free()
    for thread in hanging:
        thread.join(PATIENCE)
    assert caller.call(lambda: 1, 60) == 1


def test_a_slow_call_is_told_of_once():
    told, answered = [], threading.Event()

    def tell(words: str) -> None:
        told.append(words)
        # Two more looks at the clock before the answer comes.
        threading.Timer(0.3, answered.set).start()

    assert LimitedCaller("test", slow_seconds=0, on_slow=tell).call(lambda: answered.wait(PATIENCE), 60)
    assert told == ["no answer for 0 s, still waiting"]


def test_a_call_that_is_not_slow_is_not_told_of(hang):
    told = []
    caller = LimitedCaller("test", slow_seconds=30, on_slow=told.append)
    with pytest.raises(NoAnswerError):
        caller.call(hang, 0.3)
    assert told == []
