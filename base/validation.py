"""Validation of foreign values where they enter: JSON, times, names.

Valid values can be compared, copied, shown and written again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

JsonObject = dict[str, Any]
MAX_NESTING = 100
"""How deep arrays and objects may be nested."""

MAX_EPOCH_S = 253_370_764_800.0
"""The first second of the year 9999: every function of the standard library accepts all earlier times."""

_MAX_DIGITS = 40


def epoch_seconds(value: Any) -> float | None:
    """Convert a value to seconds since the epoch; None if it is not a time: nan, before 1970, after 9998."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MAX_EPOCH_S:
        return None
    return float(value)


def is_name(value: Any) -> bool:
    """Return whether a value can be a name: a text that is not empty and is printable in one line."""
    return isinstance(value, str) and value != "" and value.isprintable()


Check = Callable[[Any], bool]
"""Returns whether a field may have a value."""


def is_text(value: Any) -> bool:
    """Return whether a value is a text."""
    return isinstance(value, str)


def is_path(value: Any) -> bool:
    """Return whether a value is a text that the system accepts as a path, or empty."""
    return isinstance(value, str) and "\0" not in value


def is_object(value: Any) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of 32 bits."""
    return type(value) is int and -(2**31) <= value < 2**31


def is_count(value: Any) -> bool:
    """Return whether a value is an integer of 32 bits and not negative."""
    return is_integer(value) and value >= 0


def is_time(value: Any) -> bool:
    """Return whether a value is a number that `epoch_seconds` accepts."""
    return not isinstance(value, str) and epoch_seconds(value) is not None


def is_list_of(check: Check) -> Check:
    """Make a check that accepts a list if a check accepts each item."""
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def is_dict_of(check: Check) -> Check:
    """Make a check that accepts an object if a check accepts each value."""
    return lambda value: isinstance(value, dict) and all(check(item) for item in value.values())


def find_invalid_field(value: Mapping[str, Any], required: Mapping[str, Check], optional: Mapping[str, Check]) -> str:
    """Describe the first missing or invalid field; empty if all are valid.

    Args:
        value: the object.
        required: the checks of required fields.
        optional: the checks of optional fields.
    """
    for name in required:
        if name not in value:
            return f"{name} is missing"
    for name, check in {**required, **optional}.items():
        if name in value and not check(value[name]):
            return f"{name} cannot be {value[name]!r:.40}"
    return ""


def decode_json(text: str | bytes) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: the text is not JSON, is nested deeper than `MAX_NESTING`, or has a number that is not finite or
            has more than 40 digits.
    """
    if not isinstance(text, str):
        text = text.decode()
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    # Most texts have fewer brackets than levels are allowed: they need no walk.
    if text.count("[") + text.count("{") > MAX_NESTING and _is_too_deep(value):
        raise _too_deep()
    return value


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_NESTING} levels")


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_NESTING + 1):
        containers = [item for item in level if type(item) is dict or type(item) is list]
        if not containers:
            return False
        level = [item for node in containers for item in (node.values() if type(node) is dict else node)]
    return True


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _parse_number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"the number {text} is too large")
    return number


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_parse_integer, parse_float=_parse_number, parse_constant=_reject_constant)


def encode_json(value: Any, *, indent: int | None = None) -> str:
    """Write a value as JSON that every reader accepts; an infinite number, for example, becomes a text."""
    try:
        return json.dumps(value, indent=indent, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
