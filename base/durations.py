"""Durations as a person reads them."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
LONGEST = 99_999 * _DAY
"""Longest duration to show: estimates may be infinite."""


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as ``3s``, ``1m 52s``, ``2h 07m``, ``3d 04h``."""
    whole = round(min(max(0.0, seconds), LONGEST))
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"
