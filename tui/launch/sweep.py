"""Several values in one field: a list, a range; and the launches that several such fields make together."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from ...specs.run_options import split_parts, unquoted

# A field may have so many values; what a launch may make is in the settings.
MOST_OF_A_RANGE = 10_000
# From so many on their number tells a person nothing.
_UNCOUNTED = 10**12
RANGE_HELP = "want a list such as 0.1, 0.01, or a range: 1..8, 0..1..0.25 with a step, 1e-4..1e-1*10 with a factor"


class SweepError(ValueError):
    """Several values are meant and cannot be read; the message says what is wanted."""


def values_of(kind: str, text: str) -> list[str]:
    """Return the values of a text, each once, in order.

    Args:
        kind: the type of each: numbers may be ranges, ``1..8`` by ones, ``0..1..0.25`` by a step, ``1..64*2`` by a
            factor.
        text: values parted by commas; quotes keep one together.

    Raises:
        SweepError: a range cannot be read, or there is no value.
    """
    values: list[str] = []
    for part in split_parts(text, ","):
        word = part.strip()
        if not word:
            continue
        if kind in ("int", "float") and ".." in word:
            values += _range(kind, word)
        else:
            values.append(unquoted(word))
        if len(values) > MOST_OF_A_RANGE:
            raise SweepError(f"there are more than {MOST_OF_A_RANGE:,} values; so many can be read at most")
    if not values:
        raise SweepError(f"there is no value in it: {RANGE_HELP}")
    return list(dict.fromkeys(values))


def _range(kind: str, text: str) -> list[str]:
    ends, star, factor_text = text.partition("*")
    parts = ends.split("..")
    if len(parts) not in (2, 3) or (star and len(parts) == 3):
        raise SweepError(f"`{text}` is no range: {RANGE_HELP}")
    numbers = [_number(part, text) for part in parts]
    first, last = numbers[0], numbers[1]
    if star:
        found = _by_factor(first, last, _number(factor_text, text), text)
    else:
        found = _by_step(first, last, numbers[2] if len(numbers) == 3 else None, text)
    if kind == "int" and any(value != value.to_integral_value() for value in (first, last, *found)):
        raise SweepError(f"`{text}` has values that are no whole numbers")
    return [_shown(value, kind) for value in found]


def _number(text: str, whole: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise SweepError(f"`{text.strip()}` in `{whole}` is no number: {RANGE_HELP}") from None
    if not number.is_finite():
        raise SweepError(f"`{whole}` has no end")
    # Beyond what a float holds nothing is launched, and reckoning with it takes minutes.
    if math.isinf(float(number)) or (number and not float(number)):
        raise SweepError(f"`{text.strip()}` in `{whole}` is too large or too small a number")
    return number


def _by_step(first: Decimal, last: Decimal, step: Decimal | None, text: str) -> list[Decimal]:
    size = abs(step) if step is not None else Decimal(1)
    if not size:
        raise SweepError(f"the step of `{text}` is 0")
    count = _counted(abs(last - first) / size, text)
    sign = 1 if last >= first else -1
    return [first + sign * size * number for number in range(count)]


def _by_factor(first: Decimal, last: Decimal, factor: Decimal, text: str) -> list[Decimal]:
    if factor <= 0 or factor == 1 or first <= 0 or last <= 0:
        raise SweepError(f"`{text}` needs ends over 0 and a factor that is not 1")
    if (last >= first) != (factor > 1):
        factor = 1 / factor
    # The last value is meant although a product of decimals may miss it by a hair.
    count = _counted((last.ln() - first.ln()) / factor.ln() + Decimal("1e-9"), text)
    return [first * factor**number for number in range(count)]


def _counted(steps: Decimal, text: str) -> int:
    if steps >= MOST_OF_A_RANGE:
        many = f"{int(steps) + 1:,}" if steps < _UNCOUNTED else "too many"
        raise SweepError(f"`{text}` has {many} values; at most {MOST_OF_A_RANGE:,} can be read")
    return int(steps) + 1


def _shown(value: Decimal, kind: str) -> str:
    if kind == "int":
        return str(int(value))
    return f"{float(value):.12g}"
