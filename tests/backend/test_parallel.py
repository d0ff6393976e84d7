"""Doing one thing to many containers, several at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.shared import parallel
from torchx_tui.backends.shared.parallel import parallel_map


def test_all_run_and_errors_come_in_order():
    done = set()

    def act(number):
        done.add(number)
        if number % 3 == 0:
            raise ValueError(number)

    counts = []
    errors = parallel_map(act, range(10), lambda count, _: counts.append(count), most=4)
    assert counts == list(range(1, 11))
    assert done == set(range(10))
    assert [error.args[0] for error in errors] == [0, 3, 6, 9]
    assert parallel_map(act, []) == []


def test_several_run_at_once():
    together = threading.Barrier(4, timeout=PATIENCE)
    assert parallel_map(lambda _: together.wait(), range(8), most=4) == []


def test_an_error_of_the_listener_ends_the_rest(monkeypatch):
    begun = []
    under_way, cancelled = threading.Event(), threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            cancelled.set()
            super().shutdown(wait=wait)

    def act(number):
        begun.append(number)
        if number == 2:
            under_way.set()
            assert cancelled.wait(PATIENCE)

    def stop(count, error):
        if count == 2:
            assert under_way.wait(PATIENCE)
            raise KeyError("enough")

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyError, match="enough"):
        parallel_map(act, range(1000), stop, most=1)
    assert [thread for thread in threading.enumerate() if thread.name.startswith("parallel-map")] == []
    assert begun == [0, 1, 2]
