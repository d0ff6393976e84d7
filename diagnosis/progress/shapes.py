"""The recipes of the shapes of lines that were seen, and how much time learning new ones may take."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection

from .grammar import learn
from .recipe import Recipe, split_line

# Logs with a word of ours in lines that are all different have no end of shapes.
_MOST_SHAPES = 4096
# Learning may take this part of the time, and so many seconds at once: a line takes some 0.2 ms.
_SHARE = 0.05
_MOST_AT_ONCE_S = 0.5


class Shapes:
    """Recipes by shape.

    Args:
        denied: names that are no values.
        known: names that are values wherever they stand.
        is_bounded: learn a part of the time only; lines of a new shape are passed over meanwhile.
    """

    def __init__(self, denied: Collection[str] = (), known: Collection[str] = (), *, is_bounded: bool = False) -> None:
        self._denied, self._known = frozenset(denied), frozenset(known)
        self._recipes: OrderedDict[str, Recipe] = OrderedDict()
        self._is_bounded = is_bounded
        self._allowed_s = _MOST_AT_ONCE_S
        self._looked_at = time.monotonic()
        self.passed_over = 0
        """How many lines of new shapes there was no time for."""

    def read(self, line: bytes) -> tuple[Recipe, list[str]] | None:
        """Return what the numbers of a line mean, and its parts as `split_line` makes them; None if it says nothing."""
        split = split_line(line)
        if split is None:
            return None
        shape, parts = split
        recipe = self._recipes.get(shape)
        if recipe is None:
            if not self._may_learn():
                self.passed_over += 1
                return None
            began = time.monotonic()
            recipe = learn(parts, self._denied, self._known)
            self._allowed_s -= time.monotonic() - began
            self._recipes[shape] = recipe
            if len(self._recipes) > _MOST_SHAPES:
                self._recipes.popitem(last=False)
        return None if recipe.is_empty else (recipe, parts)

    def _may_learn(self) -> bool:
        if not self._is_bounded:
            return True
        now = time.monotonic()
        self._allowed_s = min(_MOST_AT_ONCE_S, self._allowed_s + (now - self._looked_at) * _SHARE)
        self._looked_at = now
        return self._allowed_s > 0
