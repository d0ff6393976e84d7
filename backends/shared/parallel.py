"""The same call for many items, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    listed = list(items)
    if not listed:
        return []
    raised: dict[int, Exception] = {}
    pool = ThreadPoolExecutor(min(most, len(listed)), thread_name_prefix="parallel-map")
    try:
        places = {pool.submit(act, item): place for place, item in enumerate(listed)}
        for count, future in enumerate(as_completed(places), 1):
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            if error is not None:
                raised[places[future]] = error
            if on_done is not None:
                on_done(count, error)
    finally:
        pool.shutdown(cancel_futures=True)
    return [raised[place] for place in sorted(raised)]
