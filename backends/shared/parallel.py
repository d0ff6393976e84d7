"""The same call for many items, several at a time, each on a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

# An engine or a server itself takes few requests at a time; 16 keep it busy.
_MOST = 16


def parallel_map(
    act: Callable[[T], object],
    items: Iterable[T],
    on_done: Callable[[int, Exception | None], object] | None = None,
    most: int = _MOST,
) -> list[Exception]:
    """Call ``act`` for every item, on several threads; return what was raised, in the order of the items.

    Args:
        act: what to do with an item.
        items: the items.
        on_done: called in this thread after each with how many are done, and what it raised. What this itself raises
            ends all: those under way are waited for, the rest is not begun.
        most: how many threads.
    """
    left = deque(enumerate(items))
    total = len(left)
    done: queue.SimpleQueue[tuple[int, Exception | None]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            try:
                place, item = left.popleft()
            except IndexError:
                return
            try:
                act(item)
            except Exception as error:
                done.put((place, error))
            else:
                done.put((place, None))

    threads = [threading.Thread(target=work, name="parallel-map", daemon=True) for _ in range(min(most, total))]
    for thread in threads:
        thread.start()
    raised: dict[int, Exception] = {}
    try:
        for count in range(1, total + 1):
            place, error = done.get()
            if error is not None:
                raised[place] = error
            if on_done is not None:
                on_done(count, error)
    finally:
        left.clear()
        for thread in threads:
            thread.join()
    return [raised[place] for place in sorted(raised)]
