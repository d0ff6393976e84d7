"""Waiting for a condition, with a limit that depends on how busy the machine is."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

# Additions, and the seconds that a quiet processor of 2 GHz takes for them.
_ADDITIONS, _USUAL_S = 1_000_000, 0.06


def _slowness() -> float:
    """Return how many times longer a computation takes now than on a quiet machine."""
    began, total = time.perf_counter(), 0
    for number in range(_ADDITIONS):
        total += number
    return max(1.0, (time.perf_counter() - began) / _USUAL_S)


PATIENCE = 20.0 * _slowness()
"""Seconds to wait for what a quiet machine does within 20 s."""

TORCH_PATIENCE = 4 * PATIENCE
"""Seconds to wait for processes that import torch, for which each needs several seconds of CPU time."""

CLUSTER_PATIENCE = 3 * PATIENCE
"""Seconds to wait for a job on a cluster on which the jobs of other tests run as well."""

NEVER = 3600.0
"""Seconds that no test takes: the value of a limit of the product that must not be reached."""


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return the first true value that ``condition`` returns.

    Raises:
        AssertionError: there was none within the limit; the message shows the variables of ``condition``.
    """
    began = time.monotonic()
    while not (found := condition()):
        passed = time.monotonic() - began
        assert passed < seconds, not_within(seconds, what, condition)
        # Most conditions query a backend, which does the work that is waited for: more queries would slow it down.
        time.sleep(min(max(0.02, passed / 5), 0.3))
    return found


def not_within(seconds: float, what: str, condition: Callable[[], Any]) -> str:
    """Return the message for a condition that stayed false, with its variables."""
    variables = inspect.getclosurevars(condition).nonlocals if inspect.isfunction(condition) else {}
    seen = "".join(f"\n  {name} = {repr(value)[:500]}" for name, value in variables.items())
    return f"not within {seconds:.0f} s: {what}{seen}"
