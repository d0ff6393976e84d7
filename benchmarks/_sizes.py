"""The sizes of benchmarks: how many jobs, lines or rounds. ``make bench SCALE=0.1`` divides all of them by ten."""

from __future__ import annotations

import os

_SCALE = float(os.environ.get("SCALE", "1"))


def scaled(usual: int, least: int) -> int:
    """Return a number times ``SCALE``, at least ``least``."""
    return max(least, round(usual * _SCALE))
