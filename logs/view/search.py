"""Searches a log in a thread of its own: counts the matching lines, and finds the next one from any line at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ..pattern.engine import CostlyPatternError, PatternError
from ..pattern.pattern import Pattern
from ..text.shown import shown_text
from .filtering import FilteredLog, Rule, RulesScanner
from .log_thread import LogThread
from .match_index import MatchIndex, take_sample
from .merge import LogLine, MergedLog

_log = logging.getLogger(__name__)

# How long the thread works before it yields the interpreter to others (s).
_SEARCH_SLICE_S = 0.005
# How long it sleeps when there is nothing to search, unless it is woken (s).
_IDLE_S = 0.25


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


class Search(LogThread):
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
        first, end, *_ = self._shown.bounds()
        if first <= line < end:
            # It may be dropped just now.
            with suppress(IndexError):
                return self._shown.original(line)
        bounds = self._log.bounds()
        return bounds.first - (not forward) if line < first else bounds.end - (not forward)

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
