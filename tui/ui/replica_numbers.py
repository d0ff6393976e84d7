"""How the replicas of a job are numbered on the screen, and how a typed number finds one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.binding import Binding

DIGITS = [
    Binding(str(digit), f"digit('{digit}')", "Replica by its number", id=f"replicas.digit_{digit}")
    for digit in range(10)
]
"""The keys of a widget with a method `action_digit`: bound, so that they keep their turn among other keys."""


def replica_numbers(replicas: Iterable[tuple[str, int]]) -> tuple[int, ...]:
    """Return the number that stands for each replica: its own in a job of one role, else its place among all.

    The tasks of an array need not begin with 0, nor be all that lie between.

    Args:
        replicas: the role and the own number of each.
    """
    named = tuple(replicas)
    own = tuple(number for _, number in named)
    is_clear = len({role for role, _ in named}) == 1 and len({*own}) == len(own)
    return own if is_clear else tuple(range(len(named)))


class TypedNumber:
    """The number that digits make which are typed one after the other."""

    def __init__(self) -> None:
        self._typed = ""
        self._place = 0

    def add(self, digit: str, numbers: Sequence[int], place: int) -> int:
        """Return the place that the cursor goes to; where it is while no number is typed that there is.

        Args:
            digit: what is typed.
            numbers: those that there are.
            place: where the cursor is; where it was moved since the last digit, a new number begins.
        """
        texts = [str(number) for number in numbers]
        typed = (self._typed if place == self._place else "") + digit
        self._typed = typed if any(text.startswith(typed) for text in texts) else digit
        self._place = texts.index(self._typed) if self._typed in texts else place
        return self._place
