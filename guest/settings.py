"""Limits of guests; imported where config is read, which starts none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class GuestSettings:
    """Limits of guests.

    Args:
        python: The interpreter that config names; empty for that of the project.
        memory_gigabytes: Memory that the process of a component may take (RLIMIT_DATA, Linux alone); 0 for no limit.
        timeout_s: Seconds that an answer may take.
        slow_s: Seconds after which it is reported that it takes long.
        idle_s: Seconds after which a guest that nobody asks ends.
    """

    python: str = ""
    memory_gigabytes: float = 8.0
    timeout_s: float = 10.0
    slow_s: float = 2.0
    idle_s: float = 60.0


guest_settings = GuestSettings()
"""Those of this process, as config says."""
