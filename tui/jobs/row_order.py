"""The order of a table's rows, kept as rows change, come and go."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any

from ..rows import JobRow


class RowOrder:
    """Handles in the order of a key; a change costs no more than finding its place.

    Args:
        key: what rows are ordered by; equal ones are ordered by handle.
        reverse: the largest comes first.
    """

    def __init__(self, key: Callable[[JobRow], Any], *, reverse: bool = False) -> None:
        self._key = key
        self._reverse = reverse
        self._entries: list[tuple[Any, str]] = []
        # A key is kept, since it may depend on the time that it was made at.
        self._keys: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, handle: object) -> bool:
        return handle in self._keys

    def reset(self, rows: Iterable[JobRow]) -> None:
        """Order these rows, and no others."""
        self._keys = {row.handle: self._key(row) for row in rows}
        self._entries = sorted((key, handle) for handle, key in self._keys.items())

    def put(self, row: JobRow) -> None:
        """Add a row, or move it to where it belongs now."""
        key = self._key(row)
        if row.handle in self._keys:
            if self._keys[row.handle] == key:
                return
            self.drop(row.handle)
        self._keys[row.handle] = key
        insort(self._entries, (key, row.handle))

    def drop(self, handle: str) -> None:
        """Take a row out, if it is there."""
        if handle in self._keys:
            del self._entries[self._place(handle)]
            del self._keys[handle]

    def handles(self, first: int = 0, count: int | None = None) -> list[str]:
        """Return ``count`` handles from the ``first`` one on, or all."""
        size = len(self._entries)
        stop = size if count is None else min(size, first + count)
        if self._reverse:
            return [self._entries[size - 1 - number][1] for number in range(first, stop)]
        return [handle for _, handle in self._entries[first:stop]]

    def index(self, handle: str) -> int:
        """Return where a handle stands.

        Raises:
            KeyError: it is not there.
        """
        place = self._place(handle)
        return len(self._entries) - 1 - place if self._reverse else place

    def _place(self, handle: str) -> int:
        return bisect_left(self._entries, (self._keys[handle], handle))
