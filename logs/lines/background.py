"""The threads behind a log on screen: one follows it, one searches it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ...base.threads import BackgroundThread
from ..pattern.pattern import Pattern
from .matches import Matches, Rule
from .merge import ARRIVAL_WINDOW, MergedLog

# Lines that are indexed before the first notification: the last page of any screen.
_FIRST_PAGE_LINES = 500
# How long older lines are indexed between two polls for new ones (s).
_SLICE_S = 0.02
QUIET_AFTER_END_S = 0.5
"""Seconds without a change after which the log of an ended job is complete."""
MAX_WAIT_AFTER_END_S = 5.0
"""The maximum time in seconds for which files are watched after the job's end."""
# How long to wait (s) for the existing lines of logs that are streams, so that they are merged by time.
_CATCH_UP_TIMEOUT_S = 2.0
# How long the thread works before it yields the interpreter to others (s).
_SEARCH_SLICE_S = 0.005
# How long it sleeps when there is nothing to search, unless it is woken (s).
_IDLE_S = 0.25


_log = logging.getLogger(__name__)


def poll_interval(quiet: float) -> float:
    """Return the seconds until the next poll of the files, after ``quiet`` seconds without a change."""
    if quiet < 2:
        return 0.02
    if quiet < 10:
        return 0.04
    if quiet < 60:
        return 0.1
    return ARRIVAL_WINDOW


class LogFollower(BackgroundThread):
    """Reads a log in a daemon thread of its own, as it grows, until it ends or is closed.

    Args:
        log: the log; the thread opens it, reads it and closes its files.
        on_change: called in the thread when lines changed or the end was reached; not again before `acknowledge`.
        is_final: called in the thread, returns whether the job has ended; without it the log is followed for ever.
    """

    def __init__(
        self,
        log: MergedLog | Matches,
        on_change: Callable[[], object],
        is_final: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__("log-follower", on_change)
        self.log = log
        self.opened = False
        """Whether the last page has been read."""
        self.ended = False
        """Whether the job has ended and all its lines are known."""
        self.failure = ""
        """Why the log can no longer be read; empty while it can."""
        self._is_final = is_final
        self._next: MergedLog | Matches | None = None
        self._done = threading.Event()

    def switch_to(self, log: MergedLog | Matches) -> None:
        """Follow another view of the log from now on: a filtered one, or the log itself again."""
        self._next = log
        self._wake.set()

    def close(self) -> None:
        """End the thread without waiting for it; from now on it touches only its own files."""
        super().close()
        # Whichever ends last, this or the thread, closes the files: closing while it reads could block on a slow disk.
        if self._done.is_set() or self._thread.ident is None:
            self.log.close()

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            _log.exception("reading a log failed")
            self.failure = f"the log can no longer be read: {error}"
            self._unacknowledged.clear()
            self._notify()
        finally:
            self._done.set()
            if self._stop.is_set():
                self.log.close()

    def _follow(self) -> None:
        log = self.log
        log.connect()
        deadline = time.monotonic() + _CATCH_UP_TIMEOUT_S
        while not log.caught_up and time.monotonic() < deadline and not self._stop.wait(_SLICE_S):
            pass
        log.open()
        older = log.read_older(1.0, _FIRST_PAGE_LINES)
        self.opened = True
        self._notify()
        changed_at = time.monotonic()
        pending = False
        while not self._stop.is_set():
            if self._next is not None:
                self.log, self._next = self._next, None
                log, older, pending = self.log, True, True
            changed, more = log.poll()
            now = time.monotonic()
            if changed:
                changed_at = now
            was_older = older
            if older:
                older = log.read_older(_SLICE_S)
            pending = not self._notify() if changed or was_older or pending else False
            if not (older or more) and self._has_ended(now - changed_at):
                self.ended = True
                self._unacknowledged.clear()
                self._notify()
                return
            if not (more or older):
                self._wake.wait(poll_interval(now - changed_at))
                self._wake.clear()

    def _has_ended(self, quiet: float) -> bool:
        if quiet < QUIET_AFTER_END_S or self._is_final is None or not self._is_final():
            return False
        return self.log.fully_read or (quiet > MAX_WAIT_AFTER_END_S and not self.log.reports_end)


class SearchState(NamedTuple):
    """The progress of a search.

    Attributes:
        found: how many of the searched lines match.
        complete: every known line of the log was searched.
        failure: why the search ended, as a sentence; empty while it runs.
    """

    found: int = 0
    complete: bool = False
    failure: str = ""


class Search(BackgroundThread):
    """Searches a log for a pattern, also in lines that are added, until it is closed.

    Args:
        log: the log, or those of its lines that a filter shows; it must stay open.
        pattern: the pattern.
        on_change: called in the search's thread when `state` changed; not again before `acknowledge`.
    """

    def __init__(
        self, log: MergedLog | Matches, pattern: Pattern, on_change: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__("log-search", on_change)
        self.pattern = pattern
        self.state = SearchState()
        self._filter = log if isinstance(log, Matches) else None
        whole, rules = (log.log, log.rules) if isinstance(log, Matches) else (log, ())
        self._matches = Matches(whole, (*rules, Rule(pattern)))
        self._changed = False
        self._questions: dict[str, Callable[[], object]] = {}

    def find(self, line: int, forward: bool, answer: Callable[[int | None], object]) -> None:
        """Ask for the nearest matching line; an earlier question without an answer is dropped.

        Args:
            line: the first line to search, as the log numbers it.
            forward: whether to continue with later or with earlier lines.
            answer: called in the search's thread with the line's number, or None if no known line matches.
        """

        def work() -> None:
            found = self._matches.find(self._original(line, forward), forward, self._is_superseded)
            if not self._is_superseded():
                answer(found if found is None or self._filter is None else self._filter.position(found))

        self._ask("find", work)

    def rank(self, line: int, answer: Callable[[int | None], object]) -> None:
        """Ask which of the matching lines a line is; an earlier question without an answer is dropped.

        Args:
            line: the line, as the log numbers it.
            answer: called in the search's thread with the number of known matching lines before it; None if it does
                not match, or is not searched yet.
        """
        self._ask("rank", lambda: answer(self._matches.rank(self._original(line, True))))

    def _ask(self, kind: str, question: Callable[[], object]) -> None:
        self._questions[kind] = question
        self._wake.set()

    def _is_superseded(self) -> bool:
        return self._stop.is_set() or "find" in self._questions

    def _run(self) -> None:
        try:
            self._search()
        except Exception as error:
            _log.exception("a search failed")
            self._unacknowledged.clear()
            self._report(self.state._replace(failure=f"the search failed: {error}"))

    def _search(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            for kind in ("find", "rank"):
                question = self._questions.pop(kind, None)
                if question is not None and not self._stop.is_set():
                    question()
            more = self._matches.step(_SEARCH_SLICE_S)
            self._report(SearchState(self._matches.count, not more and self._matches.log.bounds().complete))
            if more:
                time.sleep(0)
            else:
                self._wake.wait(_IDLE_S)

    def _original(self, line: int, forward: bool) -> int:
        """Return a line's number in the log itself."""
        if self._filter is None:
            return line
        with suppress(IndexError):
            return self._filter.original(line)
        bounds = self._matches.log.bounds()
        return (bounds.first if line < self._filter.bounds().first else bounds.end) - (not forward)

    def _report(self, state: SearchState) -> None:
        self._changed = self._changed or state != self.state
        self.state = state
        if self._changed:
            self._changed = not self._notify()
