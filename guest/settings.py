"""Limits of the processes that run components, and the Python that config chooses for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class GuestSettings:
    """Settings of components' processes.

    Args:
        python: The interpreter that config names; empty for that of the project.
        memory_gigabytes: RLIMIT_DATA of a component's process (Linux only); 0 for no limit.
        timeout_s: Seconds after which a component is ended.
        slow_s: Seconds after which a component is reported as slow.
        idle_s: Seconds without a call after which a process ends.
    """

    python: str = ""
    memory_gigabytes: float = 8.0
    timeout_s: float = 10.0
    slow_s: float = 2.0
    idle_s: float = 300.0


_current = GuestSettings()


def guest_settings() -> GuestSettings:
    """Return the settings in use."""
    return _current


@contextmanager
def use_guest_settings(**changes: Any) -> Iterator[None]:
    """Change settings, for all threads, until the end of the block."""
    global _current
    before = _current
    _current = replace(before, **changes)
    try:
        yield
    finally:
        _current = before
