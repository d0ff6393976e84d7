"""Launches that no backend knows any more, as far as the journal was read, and showing many of them in turns."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from ..rows import JobRow

# The event loop gives so long (s) to rows that are shown, then keys have their turn; rows are taken so many at a time.
_TURN_SECONDS = 0.01
_ROWS = 100


class PastJobs:
    """The rows of the history, by handle."""

    def __init__(self) -> None:
        self._rows: dict[str, JobRow] = {}
        self._counts: Counter[str] = Counter()
        self._unshown: deque[JobRow] = deque()

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, scheduler: str | None) -> int:
        """Return how many there are of a backend, or of all."""
        return len(self._rows) if scheduler is None else self._counts[scheduler]

    def of(self, handles: Iterable[str]) -> list[JobRow]:
        """Return the rows of these handles, as far as there are any."""
        return [self._rows[handle] for handle in handles if handle in self._rows]

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._counts.clear()
        self._unshown.clear()

    def add(self, rows: Iterable[JobRow]) -> None:
        """Add rows, which are to be shown."""
        for row in rows:
            if row.handle not in self._rows:
                self._counts[row.scheduler] += 1
            self._rows[row.handle] = row
            self._unshown.append(row)

    def drop(self, handles: Iterable[str]) -> None:
        """Forget some."""
        for handle in handles:
            row = self._rows.pop(handle, None)
            if row is not None:
                self._counts[row.scheduler] -= 1

    def show_again(self) -> None:
        """Let all be shown, from the first on: a table was emptied."""
        self._unshown = deque(self._rows.values())

    def take_turn(self, show: Callable[[Iterator[JobRow]], object]) -> bool:
        """Hand over rows that were not shown yet, for a short time, and return whether there are more."""
        until = time.monotonic() + _TURN_SECONDS
        while self._unshown and time.monotonic() < until:
            rows = [self._unshown.popleft() for _ in range(min(_ROWS, len(self._unshown)))]
            show(row for row in rows if self._rows.get(row.handle) is row)
        return bool(self._unshown)
