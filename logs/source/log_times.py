"""The timestamps in front of the lines that Docker and Kubernetes send (RFC 3339 with nanoseconds)."""

from __future__ import annotations

import calendar
import time
from datetime import datetime, timezone

STAMP = 31
"""Bytes of ``2026-01-31T12:00:00.123456789Z ``."""


class LogClock:
    """Parses the timestamps of messages; fast, because nearly all are of the same second as the one before."""

    def __init__(self) -> None:
        self._second = b"none yet"
        self._nanoseconds = 0

    def read(self, data: bytes, at: int) -> tuple[int, int]:
        """Parse a message's time, in nanoseconds since the epoch, and find where its text begins."""
        if data.startswith(self._second, at) and data.startswith(b"Z ", at + 29):
            return self._nanoseconds + int(data[at + 20 : at + 29]), at + STAMP
        return self._read_anew(data, at)

    def _read_anew(self, data: bytes, at: int) -> tuple[int, int]:
        if not data.startswith(b"Z ", at + 29):
            return self._read_other(data, at)
        second = data[at : at + 19]
        if second != self._second:
            try:
                parsed = time.strptime(second.decode("ascii"), "%Y-%m-%dT%H:%M:%S")
            except ValueError:
                return self._nanoseconds, at
            self._second, self._nanoseconds = second, calendar.timegm(parsed) * 10**9
        return self._nanoseconds + int(data[at + 20 : at + 29]), at + STAMP

    def _read_other(self, data: bytes, at: int) -> tuple[int, int]:
        """Read a time in another form: with the engine's time zone, or with fewer digits."""
        end = data.find(b" ", at, at + 40)
        try:
            return nanoseconds_of(data[at:end].decode("ascii")), end + 1
        except ValueError:
            return self._nanoseconds, at


def nanoseconds_of(text: str) -> int:
    """Parse a time such as ``2026-01-31T12:00:00.12+01:00`` to nanoseconds since the epoch.

    Raises:
        ValueError: it is not a time.
    """
    whole, _, rest = text.removesuffix("Z").partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if rest else ""
    zone = rest[len(digits) :] or "+00:00"
    if not rest and len(whole) > 19:
        whole, zone = whole[:19], whole[19:]
    at = datetime.fromisoformat(f"{whole}{zone}").astimezone(timezone.utc)
    return calendar.timegm(at.utctimetuple()) * 10**9 + int(digits.ljust(9, "0")[:9] or 0)
