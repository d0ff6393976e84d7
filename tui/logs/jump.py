"""Where in a log to go: a line, a part of it, or a time, as a person types it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime

from ...logs.lines.matches import Matches
from ...logs.lines.merge import MergedLog

EXAMPLES = "48112, 50%, 12:01:30, -10m, +1h or 2026-11-21 10:45"

_DAY = 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": _DAY}
_LINE = re.compile(r"\d[\d,_]{0,20}", re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?", re.ASCII)
_DISTANCE = re.compile(r"([+-])\s*((?:\d+(?:\.\d+)?\s*[smhd]\s*)+)", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])", re.ASCII)


class JumpError(ValueError):
    """What was typed is no place in a log; the message says what is."""


@dataclass(frozen=True)
class Line:
    """A line by the number that is shown for it, from 1."""

    number: int

    def find(self, log: MergedLog | Matches) -> tuple[int | None, bool]:
        """Return the number of the nearest known line, and whether it is sure by now."""
        first, end, complete, gone = log.bounds()
        return min(max(first - gone + self.number - 1, first), end - 1), complete


@dataclass(frozen=True)
class Share:
    """A place by the part of the log before it, 0 to 1."""

    part: float

    def find(self, log: MergedLog | Matches) -> tuple[int | None, bool]:
        """See `Line.find`."""
        first, end, complete, _ = log.bounds()
        return min(first + int(self.part * (end - first)), end - 1), complete


@dataclass(frozen=True)
class Moment:
    """A place by its time, in seconds since the epoch."""

    at: float

    def find(self, log: MergedLog | Matches) -> tuple[int | None, bool]:
        """See `Line.find`; there is no line where no line has a time."""
        first, end, complete, _ = log.bounds()
        number = log.line_at(self.at)
        if number is None:
            return None, complete
        return min(number, end - 1), complete or number > first


Jump = Line | Share | Moment


@dataclass(frozen=True)
class Times:
    """What times that are typed count from, in seconds since the epoch; None where the log has no times.

    Attributes:
        start: when the log's first line came.
        last: when its last line came.
        now: what "ago" counts from: the present, or the last line's time of a job that has ended.
    """

    start: float | None
    last: float | None
    now: float


def parse_jump(text: str, times: Times) -> Jump:
    """Read what was typed.

    Args:
        text: such as ``48112``, ``50%``, ``12:01``, ``-10m`` (so long ago), ``+1h`` (after the start), or a date and
            time as ISO 8601 writes it; local time where it names no zone.
        times: what times count from.

    Raises:
        JumpError: it is none of these.
    """
    wanted = text.strip()
    if _LINE.fullmatch(wanted):
        return Line(max(1, int(re.sub("[,_]", "", wanted))))
    if (share := _SHARE.fullmatch(wanted)) and float(share[1]) <= 100:
        return Share(float(share[1]) / 100)
    if clock := _CLOCK.fullmatch(wanted):
        hours, minutes, seconds = int(clock[1]), int(clock[2]), float(clock[3] or 0)
        if hours < 24 and minutes < 60 and seconds < 60:
            return Moment(_on_the_day(hours * 3600 + minutes * 60 + seconds, times))
    elif distance := _DISTANCE.fullmatch(wanted):
        return Moment(_away(distance[1], distance[2], times))
    elif moment := _iso(wanted):
        return Moment(moment)
    raise JumpError(f"not a line number or a time: type {EXAMPLES}")


def _on_the_day(seconds: float, times: Times) -> float:
    """Return the last such time of day that the log may hold."""
    last = times.now if times.last is None else times.last
    start = last if times.start is None else times.start
    at = _midnight(last) + seconds
    if at > last:
        before = _midnight(last - _DAY) + seconds
        if before >= start - _DAY / 2 and _midnight(start) < _midnight(last):
            return before
    return at


def _midnight(at: float) -> float:
    moment = time.localtime(at)
    return time.mktime((moment.tm_year, moment.tm_mon, moment.tm_mday, 0, 0, 0, 0, 0, -1))


def _away(glyph: str, amount: str, times: Times) -> float:
    seconds = sum(float(figure) * _UNITS[unit] for figure, unit in _PART.findall(amount))
    if glyph == "-":
        return times.now - seconds
    return (times.now if times.start is None else times.start) + seconds


def _iso(text: str) -> float | None:
    try:
        # Before Python 3.11 a Z is not understood.
        return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
