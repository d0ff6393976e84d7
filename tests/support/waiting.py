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
    begin = time.monotonic()
    while not (found := condition()):
        passed = time.monotonic() - begin
        assert passed < seconds, f"{what} did not come about within {seconds:.0f} s"
        # Most conditions ask a backend, which works on what is waited for: asked more often, it would take longer.
        time.sleep(min(max(0.02, passed / 5), 0.3))
    return found
