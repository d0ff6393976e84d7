"""The threads behind a log on screen: one follows it, one searches it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ...base.threads import BackgroundThread
from ..pattern.engine import CostlyPatternError, PatternError
from ..pattern.pattern import Pattern
from ..text.shown import shown_text
from .filtering import FilteredLog, Rule, RulesScanner
from .match_index import MatchIndex, take_sample
from .merge import ARRIVAL_WINDOW, LogLine, MergedLog

# Lines that are indexed before the first notification: the last page of any screen.
_FIRST_PAGE_LINES = 500
# How long older lines are indexed between two polls for new ones (s).
_SLICE_S = 0.02
QUIET_AFTER_END_S = 0.5
"""After the job's end the files must be quiet for so long (s), since the last lines may still be written."""
MAX_WAIT_AFTER_END_S = 5.0
"""The most seconds for which files are watched after the job's end."""
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
        is_final: called in the thread, tells whether the job has ended; without it the log is followed for ever.
    """

    def __init__(
        self,
        log: MergedLog | FilteredLog,
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
        self._next: MergedLog | FilteredLog | None = None
        self._done = threading.Event()

    def switch_to(self, log: MergedLog | FilteredLog) -> None:
        """Follow another view of the log from now on: a filtered one, or the log itself again."""
        self._next = log
        self._wake.set()

    def close(self) -> None:
        """End the thread without waiting for it; from now on it touches only its own files."""
        super().close()
        # Whichever ends last, this or the thread, closes the files: closing while it reads could block on a slow disk.
        if self._done.is_set():
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


class _Question(NamedTuple):
    line: int
    forward: bool
    answer: Callable[[int | None], object]


class _RankQuestion(NamedTuple):
    line: int
    answer: Callable[[int | None], object]


class Search(BackgroundThread):
    """Searches a log for a pattern, also in lines that are added, until it is closed.

    Args:
        log: the log, or a filtered view of it; it must stay open.
        pattern: the pattern.
        on_change: called in the search's thread when `state` changed; not again before `acknowledge`.
    """

    def __init__(
        self, log: MergedLog | FilteredLog, pattern: Pattern, on_change: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__("log-search", on_change)
        self.pattern = pattern
        self.state = SearchState()
        self._shown = log
        self._log = log.log if isinstance(log, FilteredLog) else log
        self._untold = False
        self._lock = threading.Lock()
        self._question: _Question | None = None
        self._rank_question: _RankQuestion | None = None

    def find(self, line: int, forward: bool, answer: Callable[[int | None], object]) -> None:
        """Ask for the nearest matching line; an earlier question without an answer is dropped.

        Args:
            line: the first line to search, as the log numbers it.
            forward: whether to continue with later or with earlier lines.
            answer: called in the search's thread with the line's number, or None if no known line matches.
        """
        with self._lock:
            self._question = _Question(line, forward, answer)
        self._wake.set()

    def rank(self, line: int, answer: Callable[[int | None], object]) -> None:
        """Ask which of the matching lines a line is; an earlier question without an answer is dropped.

        Args:
            line: the line, as the log numbers it.
            answer: called in the search's thread with the number of known matching lines before it; None if it does
                not match, or is not counted yet.
        """
        with self._lock:
            self._rank_question = _RankQuestion(line, answer)
        self._wake.set()

    def spans(self, line: LogLine) -> list[tuple[int, int]]:
        """List the matches in a line's shown text: starts and ends, in order."""
        try:
            return self.pattern.spans(shown_text(line.data))
        except CostlyPatternError:
            return []

    def _run(self) -> None:
        try:
            self._search()
        except PatternError as error:
            self._fail(str(error))
        except Exception as error:
            _log.exception("a search failed")
            self._fail(f"the search failed: {error}")

    def _search(self) -> None:
        filters = self._shown.rules if isinstance(self._shown, FilteredLog) else ()
        rules = [*filters, Rule(self.pattern)]
        matches: MatchIndex | None = None
        while not self._stop.is_set():
            self._wake.clear()
            # The rarest bytes are estimated from a sample of the log; an empty one gives none.
            if matches is None and any(self._log.index.sizes()):
                matches = MatchIndex(self._log, RulesScanner(rules, take_sample(self._log)))
            self._answer(matches)
            self._answer_rank(matches)
            more = matches is not None and matches.step(_SEARCH_SLICE_S)
            complete = not more and self._log.bounds().complete
            self._tell(SearchState(matches.count if matches is not None else 0, complete))
            if more:
                time.sleep(0)
            else:
                self._wake.wait(_IDLE_S)

    def _answer(self, matches: MatchIndex | None) -> None:
        with self._lock:
            question, self._question = self._question, None
        if question is None:
            return
        nearest = None
        if matches is not None:
            line = self._original(question.line, question.forward)
            nearest = matches.find(line, question.forward, self._is_asked_anew)
        if not self._is_asked_anew():
            if nearest is not None and isinstance(self._shown, FilteredLog):
                nearest = self._shown.position(nearest)
            question.answer(nearest)

    def _answer_rank(self, matches: MatchIndex | None) -> None:
        with self._lock:
            question, self._rank_question = self._rank_question, None
        if question is not None and not self._stop.is_set():
            question.answer(matches.rank(self._original(question.line, True)) if matches is not None else None)

    def _original(self, line: int, forward: bool) -> int:
        """Return a line's number in the log itself."""
        if not isinstance(self._shown, FilteredLog):
            return line
        with suppress(IndexError):
            return self._shown.original(line)
        bounds = self._log.bounds()
        return (bounds.first if line < self._shown.bounds().first else bounds.end) - (not forward)

    def _is_asked_anew(self) -> bool:
        return self._stop.is_set() or self._question is not None

    def _tell(self, state: SearchState) -> None:
        self._untold = self._untold or state != self.state
        self.state = state
        if self._untold:
            self._untold = not self._notify()

    def _fail(self, failure: str) -> None:
        self._unacknowledged.clear()
        self._tell(self.state._replace(failure=failure))
        with self._lock:
            question, self._question = self._question, None
        if question is not None and not self._stop.is_set():
            question.answer(None)
