"""Tells which states of a progress bar only repeat the values of the state before.

Many loops give a bar the values of a step first, which draws it, and then count the step, which draws it again; its end
draws it once more. Two equal values of two steps are two points all the same, as far as the states tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence


class Redraws:
    """The state of the bar that was drawn last, of those that have values."""

    def __init__(self) -> None:
        self._step = -1.0
        self._values: Sequence[str] = ()
        self._is_same_step = False
        self._is_first = False

    def take(self, step: float, total: float | None, values: Sequence[str]) -> bool:
        """Take in a state, and return whether it only repeats its values.

        Args:
            step: what the bar counts.
            total: where it ends; None where that is not known.
            values: as they were printed.
        """
        is_same_step, is_back = step == self._step, step < self._step
        is_repeated = (
            values == self._values
            and not is_back
            and (self._is_first or (step == total if is_same_step else self._is_same_step))
        )
        self._is_first = is_back or not self._values
        self._step, self._values, self._is_same_step = step, values, is_same_step
        return is_repeated
