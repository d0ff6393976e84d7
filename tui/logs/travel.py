"""Going to a place in a log that may not have been read yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .finder import CauseFound, LogFinder
from .jump import Jump, JumpError, Line, Times, parse_jump
from .reading import LogReading
from .view import LogView


@dataclass(frozen=True)
class _Cause:
    """The error that the log ended of."""


class LogTravel:
    """Takes the view to a place, as soon as it is known; whatever a person moves meanwhile, ends the travel.

    Args:
        view: what is moved.
        reading: the log that the place is in.
        finder: finds errors.
    """

    def __init__(self, view: LogView, reading: LogReading, finder: LogFinder) -> None:
        self._view = view
        self._reading = reading
        self._finder = finder
        self._goal: Jump | _Cause | None = None
        self._moves = 0
        self._as_current = False
        self._asked = False
        self._places: dict[tuple[int | None, str], Line] = {}

    @property
    def under_way(self) -> bool:
        """Whether the place is not known yet, and nobody has moved the view since."""
        if self._moves != self._view.moves:
            self._goal = None
        return self._goal is not None

    def jump(self, text: str) -> None:
        """Go where a person wants to; that line is the current one then.

        Raises:
            JumpError: it is no place, or no line of the log has a time.
        """
        last = self._reading.last_time()
        now = last if self._reading.ended and last is not None else time.time()
        self._set(parse_jump(text, Times(self._reading.start_time(), last, now)))
        self._as_current = True
        if self._arrive() is False:
            raise JumpError("no line of this log has a time: type a line number or 50%")

    @contextmanager
    def kept_places(self) -> Iterator[None]:
        """Remember where the view is; when another log is shown, go where it was in that one."""
        bounds, top = self._view.bounds, self._view.first_line
        place = (self._reading.replica, self._reading.stream)
        self._places.pop(place, None)
        # While older lines are counted, nobody knows which line of all it is.
        if not self._view.following and top is not None and bounds.complete:
            self._places[place] = Line(top.number - bounds.first + bounds.gone + 1)
        yield
        self.cancel()
        before = self._places.get((self._reading.replica, self._reading.stream))
        if before is not None:
            self._view.pause()
            self._set(before)
            self._as_current = False
            self._arrive()

    def forget(self) -> None:
        """Go nowhere, and forget all places: lines are numbered in another way from now on."""
        self._goal = None
        self._places.clear()

    def go_to_cause(self) -> None:
        """Go to the error that the log ended of, once it has ended, if there is one."""
        self._set(_Cause())
        self._asked = False
        self.grew()

    def cancel(self) -> None:
        """Go nowhere."""
        self._goal = None

    def grew(self) -> None:
        """Look again: more of the log is known."""
        if not self.under_way:
            return
        if not isinstance(self._goal, _Cause):
            self._arrive()
        elif self._reading.ended and self._view.bounds.complete and not self._asked:
            self._asked = True
            self._finder.find_cause()

    def take_cause(self, message: CauseFound) -> bool:
        """Go to the error that was looked for; return whether there is one, and nobody has moved the view since."""
        if not self.under_way or not isinstance(self._goal, _Cause) or message.log is not self._reading.log:
            return False
        self._goal = None
        if message.line is None:
            return False
        self._finder.current = message.line
        self._view.reveal(message.line)
        return True

    def _set(self, goal: Jump | _Cause) -> None:
        self._goal = goal
        self._moves = self._view.moves

    def _arrive(self) -> bool | None:
        """Go there if it is known; return whether there is such a place, None while that is open."""
        log, goal = self._reading.log, self._goal
        if log is None or goal is None or isinstance(goal, _Cause):
            return None
        first, end, complete, _ = log.bounds()
        if first == end:
            return None
        number, sure = goal.find(log)
        if sure:
            self._goal = None
        if number is None:
            return False if complete else None
        if sure:
            if self._as_current:
                self._finder.current = number
            self._view.go_to(number)
            return True
        return None
