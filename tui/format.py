"""Words and figures of the screens: states, ages, durations, sizes, names cut to a width."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from ..base.durations import LONGEST
from ..base.durations import duration as duration
from ..specs.status import AppState

_STATE_WORDS = {
    AppState.UNSUBMITTED: "Unsubmitted",
    AppState.SUBMITTED: "Submitted",
    AppState.PENDING: "Pending",
    AppState.RUNNING: "Running",
    AppState.SUCCEEDED: "Succeeded",
    AppState.FAILED: "Failed",
    AppState.CANCELLED: "Cancelled",
    AppState.UNKNOWN: "Unknown",
}

# A unique suffix as TorchX makes them: no vowels and no 8, at least eleven characters.
_SUFFIX = re.compile(r"^(?P<name>.+)-(?P<suffix>[bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz0-9]{9,15})$")

_DECIMAL = re.compile(r"-?\d+(?:\.(?P<digits>\d+))?")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# The year 9999; no local time is known of later ones.
_LATEST = 253_402_000_000.0


def state_word(state: AppState) -> str:
    """Return the word of a state, such as ``Running``."""
    return _STATE_WORDS[state]


def age(seconds: float) -> str:
    """Return an age in one unit, such as ``<1m``, ``41m``, ``3h``, ``13d``."""
    seconds = min(max(0.0, seconds), LONGEST)
    if seconds < _MINUTE:
        return "<1m"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)}m"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)}h"
    return f"{int(seconds // _DAY)}d"


def clock(at: float, now: float) -> str:
    """Return the time of day of ``at``, with the date if that is another than of ``now``; both since the epoch."""
    moment = time.localtime(min(max(0.0, at), _LATEST))
    same_day = moment[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", moment)


def bytes_words(size: int) -> str:
    """Return a size as a person reads it."""
    amount, unit = float(size), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 999.5:  # more is rounded to 1000
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 replica``, ``1,204 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def split_name(app_id: str) -> tuple[str, str]:
    """Part an app id into the name that a person gave and the unique suffix, which may be empty."""
    match = _SUFFIX.match(app_id)
    return (match["name"], match["suffix"]) if match else (app_id, "")


def cut(text: str, width: int, glyph: str) -> str:
    """Return ``text`` in at most ``width`` cells; what was cut ends with ``glyph``."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + glyph


def fit_name(app_id: str, width: int, glyph: str) -> tuple[str, str]:
    """Return an app id's name and suffix in at most ``width`` cells.

    The suffix is shortened to its last four letters first; the name itself is cut last.
    """
    name, suffix = split_name(app_id)
    if not suffix:
        return cut(name, width, glyph), ""
    if cell_len(app_id) <= width:
        return name, f"-{suffix}"
    short = f"-{glyph}{suffix[-4:]}"
    if cell_len(name) + len(short) <= width:
        return name, short
    room = width - len(suffix[-4:]) - len(glyph)
    if room < 4:
        return cut(app_id, width, glyph), ""
    return set_cell_size(name, room).rstrip(), f"{glyph}{suffix[-4:]}"


def same_digits(numbers: Sequence[str]) -> list[str]:
    """Return the texts of a column, decimal numbers with equally many digits behind the point."""
    fractions = [found["digits"] for text in numbers if (found := _DECIMAL.fullmatch(text))]
    most = max((len(digits or "") for digits in fractions), default=0)
    return [_with_digits(text, most) if _DECIMAL.fullmatch(text) else text for text in numbers]


def _with_digits(number: str, digits: int) -> str:
    whole, _, fraction = number.partition(".")
    return f"{whole}.{fraction:0<{digits}}" if digits else whole
