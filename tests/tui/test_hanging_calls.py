"""Calls of backends that hang, or raise what nobody expects."""

from __future__ import annotations

import threading

import pytest
from support.waiting import PATIENCE, wait_until

from torchx_tui.base.timeouts import LimitedCaller, NoAnswerError


def test_calls_that_hang_do_not_pile_up():
    released = threading.Event()
    caller = LimitedCaller("calls-that-hang")

    def running() -> int:
        return sum(thread.name == "calls-that-hang" for thread in threading.enumerate())

    try:
        for _ in range(3):
            with pytest.raises(NoAnswerError, match="no answer within"):
                caller.call(lambda: released.wait(PATIENCE), 0.01)
        with pytest.raises(NoAnswerError, match="3 earlier requests"):
            caller.call(lambda: 1, 1)
        assert running() == 3
    finally:
        released.set()
    wait_until(lambda: not running(), "their end")
    assert caller.call(lambda: 1, PATIENCE) == 1


def test_whatever_a_call_raises_comes_to_its_caller():
    caller = LimitedCaller("test")

    def leave():
        raise SystemExit("a plug-in that leaves")

    with pytest.raises(Exception, match="a plug-in that leaves"):
        caller.call(leave, PATIENCE)
