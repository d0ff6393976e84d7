"""Several values in the text of one field: lists and ranges of numbers."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from ...specs.run_options import split_parts, unquoted

MAX_VALUES = 10_000
"""Values of one field; ``most_of_a_sweep`` in the settings limits what is launched."""
# Larger counts are not printed.
_UNCOUNTED = 10**12
RANGE_HELP = "use a list such as 0.1, 0.01, or a range: 1..8, 0..1..0.25 with a step, 1e-4..1e-1*10 with a factor"


class SweepError(ValueError):
    """A list of values cannot be parsed."""


def values_of(kind: str, text: str) -> list[str]:
    """Parse a list of values, without duplicates.

    Args:
        kind: the type of each; numbers may be ranges: ``1..8`` by ones, ``0..1..0.25`` by a step, ``1..64*2`` by a
            factor.
        text: values separated by commas, in quotes if they have commas themselves.

    Raises:
        SweepError: a range is invalid, or there is no value.
    """
    values: list[str] = []
    for part in split_parts(text, ","):
        word = part.strip()
        if word and kind in ("int", "float") and ".." in word:
            values += _range(kind, word)
        elif word:
            values.append(unquoted(word))
        if len(values) > MAX_VALUES:
            raise SweepError(f"there are more than {MAX_VALUES:,} values; give fewer")
    if not values:
        raise SweepError(f"no value given: {RANGE_HELP}")
    return list(dict.fromkeys(values))


def _range(kind: str, text: str) -> list[str]:
    ends, star, factor_text = text.partition("*")
    numbers = [_number(part, text) for part in ends.split("..")]
    if len(numbers) not in ((2,) if star else (2, 3)):
        raise SweepError(f"`{text}` is not a range: {RANGE_HELP}")
    first, last, *steps = numbers
    if star:
        factor = _number(factor_text, text)
        if factor <= 0 or factor == 1 or first <= 0 or last <= 0:
            raise SweepError(f"`{text}` with a factor needs ends above 0 and a factor other than 1")
        if (last >= first) != (factor > 1):
            factor = 1 / factor
        # A product of decimals may miss the last value by a rounding error.
        count = _count((last.ln() - first.ln()) / factor.ln() + Decimal("1e-9"), text)
        values = [first * factor**number for number in range(count)]
    else:
        step = abs(steps[0]) if steps else Decimal(1)
        if not step:
            raise SweepError(f"the step of `{text}` is 0")
        count = _count(abs(last - first) / step, text)
        values = [first + (step if last >= first else -step) * number for number in range(count)]
    if kind == "float":
        return [f"{float(value):.12g}" for value in values]
    if any(value != value.to_integral_value() for value in (first, last, *values)):
        raise SweepError(f"`{text}` has values that are not whole numbers")
    return [str(int(value)) for value in values]


def _number(text: str, whole: str) -> Decimal:
    text = text.strip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise SweepError(f"`{text}` in `{whole}` is not a number: {RANGE_HELP}") from None
    if not number.is_finite():
        raise SweepError(f"`{whole}` is not finite")
    # Arithmetic beyond the range of a float takes minutes.
    if math.isinf(float(number)) or (number and not float(number)):
        raise SweepError(f"`{text}` in `{whole}` is too large or too small a number")
    return number


def _count(steps: Decimal, text: str) -> int:
    if steps >= MAX_VALUES:
        many = f"{int(steps) + 1:,}" if steps < _UNCOUNTED else "too many"
        raise SweepError(f"`{text}` has {many} values; the maximum is {MAX_VALUES:,}")
    return int(steps) + 1
