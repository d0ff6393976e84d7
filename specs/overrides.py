"""Attributes of a role whose values are made when they are first read.

`Role.overrides` maps an attribute to a callable or an awaitable. Its result replaces the attribute's value, and is
kept, so that each is called or awaited once.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_lock = threading.Lock()


class _Value:
    """A value that is made once, told apart from a callable that is yet to be called."""

    def __init__(self, maker: Any) -> None:
        self._maker = maker
        # Its own: a maker may read another role, whose makers may be under way in another thread.
        self._lock = threading.RLock()
        self._is_made = False
        self._value: Any = None

    def value(self) -> Any:
        """Return the value; what making it raises is raised each time."""
        with self._lock:
            if not self._is_made:
                self._value = _awaited(self._maker) if isinstance(self._maker, Awaitable) else self._maker()
                self._is_made = True
            return self._value


def overridden(overrides: dict[str, Any], name: str) -> Any:
    """Return the value that replaces an attribute, making it where that has not happened yet.

    Args:
        overrides: A role's overrides, which have `name`.
        name: The attribute.
    """
    maker = overrides[name]
    if not isinstance(maker, _Value):
        with _lock:
            maker = overrides[name]
            if not isinstance(maker, _Value):
                maker = overrides[name] = _Value(maker)
    return maker.value()


def _awaited(awaitable: Awaitable[Any]) -> Any:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    if isinstance(awaitable, asyncio.Future):
        return _result_of(awaitable)

    async def wait() -> Any:
        return await awaitable

    # A thread of its own, since the caller's may be running an event loop, where asyncio.run is refused.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(wait())).result()


def _result_of(future: asyncio.Future[Any]) -> Any:
    """Return a future's result; it is of one event loop, and only that can wait for it.

    Raises:
        RuntimeError: that loop runs in this thread, where waiting would hold it up for ever.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    if future.done():
        return future.result()

    async def wait() -> Any:
        return await future

    loop = future.get_loop()
    try:
        here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if loop is here:
        raise RuntimeError("an override waits for the event loop that runs in this thread: `await` it before")
    if loop.is_running():
        return asyncio.run_coroutine_threadsafe(wait(), loop).result()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(loop.run_until_complete, future).result()
