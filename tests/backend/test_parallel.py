"""Doing one thing to many containers, several at once."""

from __future__ import annotations

import threading

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.shared.parallel import parallel_map


def test_all_are_done_and_errors_come_in_order() -> None:
    done: set[int] = set()

    def act(number: int) -> None:
        done.add(number)
        if number % 3 == 0:
            raise ValueError(number)

    errors = parallel_map(act, range(10), most=4)
    assert done == set(range(10))
    assert [error.args[0] for error in errors] == [0, 3, 6, 9]
    assert parallel_map(act, []) == []


def test_several_are_under_way_together() -> None:
    together = threading.Barrier(4, timeout=PATIENCE)
    assert parallel_map(lambda _: together.wait(), range(8), most=4) == []


def test_what_the_listener_raises_ends_the_rest() -> None:
    begun: list[int] = []

    def stop(count: int, error: Exception | None) -> None:
        if count == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        parallel_map(begun.append, range(1000), stop, most=1)
    threads = [thread for thread in threading.enumerate() if thread.name == "docker-request"]
    assert threads == []
    assert begun == list(range(len(begun)))
