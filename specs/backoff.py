"""Waits that are not all of one length, so that what began together does not stay together."""

from __future__ import annotations

import random

# Its own: threads that wait change nothing of what others draw from the common one.
_RANDOM = random.Random()  # noqa: S311


def jittered(seconds: float) -> float:
    """Return a time that is up to a fifth longer or shorter, in seconds."""
    return seconds * _RANDOM.uniform(0.8, 1.2)
