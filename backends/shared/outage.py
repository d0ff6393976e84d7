"""Surviving outages: a backend that cannot be reached is asked again until it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ...specs.errors import BackendUnavailableError
from .changes import retry_backoff

if TYPE_CHECKING:
    from ...specs.status import AppStatus
    from ..types import DescribeAppResponse

T = TypeVar("T")
OnLost = Callable[[BackendUnavailableError], object]
# Seconds between the first questions about a job that is waited for, and which part of the time that it was waited for
# already goes by between later ones.
_FIRST_INTERVAL, _PART = 0.2, 0.1


def ignore(_error: BackendUnavailableError) -> None:
    """Say nothing of an outage."""


def until_answered(
    ask: Callable[[], T],
    stop: threading.Event,
    *,
    on_lost: OnLost = ignore,
    deadline: float | None = None,
) -> T:
    """Return a backend's answer; while the backend cannot be reached, wait longer each time and ask again.

    Args:
        ask: asks once.
        stop: ends the waiting.
        on_lost: called once, with the first error.
        deadline: when to give up, on the clock of `time.monotonic`; never if None.

    Raises:
        BackendUnavailableError: it was stopped, or the deadline has passed.
        Exception: any other error of ``ask``, at once: to ask again would not help.
    """
    backoff = retry_backoff()
    is_told = False
    while True:
        try:
            return ask()
        except BackendUnavailableError as error:
            left = None if deadline is None else deadline - time.monotonic()
            if stop.is_set() or (left is not None and left <= 0):
                raise
            if not is_told:
                is_told = True
                on_lost(error)
            backoff.wait(stop, left)


def wait_for_end(
    ask: Callable[..., DescribeAppResponse | None], handle: str, interval: float, timeout: float | None
) -> AppStatus | None:
    """Wait for a job's end, see `Job.wait`; ``ask`` is given the deadline, see `until_answered`."""
    began = time.monotonic()
    deadline = None if timeout is None else began + timeout
    known = ""
    while True:
        try:
            found = ask(deadline=deadline)
        except BackendUnavailableError as error:
            if deadline is None or time.monotonic() < deadline:
                raise
            raise TimeoutError(f"{handle} has not ended within {timeout:g} s: {known}{error}") from error
        if found is None:
            return None
        if found.has_ended:
            return found.status()
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            raise TimeoutError(f"{handle} has not ended within {timeout:g} s: {found.state.name}")
        known = f"it was {found.state.name} last; "
        pause = min(interval, max(_FIRST_INTERVAL, _PART * (now - began)))
        time.sleep(pause if deadline is None else min(pause, deadline - now))
