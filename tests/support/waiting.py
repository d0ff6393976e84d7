"""Waiting for what is to come about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds after which something that should have come about has not, also on a machine that does much else."""

PROMPT = 60.0
"""Seconds in which what nothing holds up has happened, also on such a machine."""


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return what ``condition`` returns as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:.0f} s"
        time.sleep(0.02)
    return found
