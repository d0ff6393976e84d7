"""Attributes of a role whose values are made when they are first read.

`Role.overrides` maps an attribute to a callable or an awaitable. Its result replaces the attribute's value, and is
kept, so that each is called or awaited once.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import Any

_lock = threading.RLock()


class _Made:
    """A value that was made, told apart from a callable that is yet to be called."""

    def __init__(self, value: Any) -> None:
        self.value = value


def overridden(overrides: dict[str, Any], name: str) -> Any:
    """Return the value that replaces an attribute, making it where that has not happened yet.

    Args:
        overrides: A role's overrides, which have `name`.
        name: The attribute.
    """
    with _lock:
        maker = overrides[name]
        if not isinstance(maker, _Made):
            value = _awaited(maker) if isinstance(maker, Awaitable) else maker()
            maker = overrides[name] = _Made(value)
        return maker.value


def _awaited(awaitable: Awaitable[Any]) -> Any:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await awaitable

    # A thread of its own, since the caller's may be running an event loop, where asyncio.run is refused.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(wait())).result()
