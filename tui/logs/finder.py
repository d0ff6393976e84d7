"""What is searched for in a log, and which lines are let through: the log pane's side of the search engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rich.text import Text
from textual.message import Message
from textual.message_pump import MessagePump

from ...logs.lines.background import Search
from ...logs.lines.failure import find_cause
from ...logs.lines.matches import Matches, Rule
from ...logs.lines.merge import LogLine, MergedLog
from ...logs.pattern.error_kinds import error_pattern
from ...logs.pattern.pattern import Pattern, PatternError, parse_pattern
from ...logs.text.sanitize import plain
from ...logs.text.shown import shown_text
from ..format import count
from ..ui.palette import STYLES

# How the words of the key hints go together: key, what it does.
_HINTS = (("logs.match", "next"), ("logs.match_back", "previous"))


@dataclass
class SearchTold(Message, bubble=False):
    """A search is further than it was."""

    search: Search


@dataclass
class LineFound(Message, bubble=False):
    """A line was found, or none in that direction.

    Attributes:
        line: its number, None if there is none.
        forward: whether it was looked for downwards.
        what: what was looked for, in a word.
    """

    search: Search
    line: int | None
    forward: bool
    what: str


@dataclass
class MatchRanked(Message, bubble=False):
    """Which of the matches a line is: ``rank`` matches come before it; None if it is none."""

    search: Search
    line: int
    rank: int | None


@dataclass
class CauseFound(Message, bubble=False):
    """A log was looked through for the error that it ended of; ``line`` is its number, None if there is none."""

    log: MergedLog | Matches
    line: int | None


class LogFinder:
    """Keeps a search, the search for errors, and the filters of one log pane.

    Args:
        target: who is told; messages are posted from the searching threads, which never wait.
    """

    def __init__(self, target: MessagePump) -> None:
        self._target = target
        self.error_patterns: tuple[str, ...] = ()
        """Regular expressions that are errors besides those of the table."""
        self._log: MergedLog | Matches | None = None
        self.pattern: Pattern | None = None
        self.rules: tuple[Rule, ...] = ()
        self.search: Search | None = None
        self._errors: Search | None = None
        self.current: int | None = None
        """The line that the last search stopped at, or that was gone to."""
        self._ranked: MatchRanked | None = None

    @property
    def is_active(self) -> bool:
        """Whether something is searched for or filtered."""
        return self.pattern is not None or bool(self.rules)

    def attach(self, log: MergedLog | Matches | None) -> None:
        """Look in this log from now on."""
        self.close()
        self._log = log
        self.current = self._ranked = None
        if log is not None and self.pattern is not None:
            self.search = self._started(self.pattern)

    def close(self) -> None:
        """End the searching threads; none is waited for."""
        for search in (self.search, self._errors):
            if search is not None:
                search.close()
        self.search = self._errors = None

    def set_pattern(self, text: str, *, regex: bool) -> None:
        """Search for a pattern.

        Raises:
            PatternError: it is none; what was searched for goes on.
        """
        self.pattern = parse_pattern(text, regex=regex)
        self.attach(self._log)

    def add_rule(self, text: str, *, regex: bool) -> None:
        """Keep lines with a pattern; drop them where the text begins with ``!``.

        Raises:
            PatternError: it is none.
        """
        drop = text.startswith("!") and len(text) > 1
        self.rules = (*self.rules, Rule(parse_pattern(text[1:] if drop else text, regex=regex), keep=not drop))

    def clear(self) -> None:
        """Search for nothing, let every line through."""
        self.pattern, self.rules, self.current = None, (), None
        self.close()

    def grew(self) -> None:
        """Say that the log has more lines."""
        for search in (self.search, self._errors):
            if search is not None:
                search.poll_now()

    def find(self, start: int, *, forward: bool, errors: bool = False) -> bool:
        """Look for the nearest match, or error, from a line on; the answer is a `LineFound`.

        Returns:
            whether there is anything to look for: else no answer comes.
        """
        if errors and self._errors is None and self._log is not None:
            self._errors = self._started(error_pattern(self.error_patterns), quiet=True)
        search = self._errors if errors else self.search
        if search is None or search.state.failure:
            return False
        what = "error" if errors else "match"
        search.find(start, forward, lambda line: self._post(LineFound(search, line, forward, what)))
        return True

    def find_cause(self) -> None:
        """Look for the error that the log ended of; the answer is a `CauseFound`."""
        shown = self._log
        if shown is None:
            return

        def work() -> None:
            log = shown.log if isinstance(shown, Matches) else shown
            line = find_cause(log, extra_patterns=self.error_patterns, stopped=lambda: self._log is not shown)
            if line is not None and isinstance(shown, Matches):
                line = shown.position(line)
            self._post(CauseFound(shown, line))

        threading.Thread(target=work, name="find-cause", daemon=True).start()

    def owns(self, search: Search) -> bool:
        """Whether a search goes on; answers of others are late."""
        return search in (self.search, self._errors)

    def rank(self) -> None:
        """Ask which of the matches the current line is; the answer is a `MatchRanked`."""
        search, line = self.search, self.current
        if search is not None and line is not None:
            search.rank(line, lambda rank: self._post(MatchRanked(search, line, rank)))

    def take_rank(self, message: MatchRanked) -> bool:
        """Take an answer over; return whether it is another than was known."""
        if message.search is not self.search or message == self._ranked:
            return False
        self._ranked = message
        return True

    def spans(self, line: LogLine) -> list[tuple[int, int]]:
        """Return where the pattern is in a line as it is shown."""
        return self.pattern.spans(shown_text(line.data)) if self.pattern is not None else []

    def words(self, key: Callable[[str], str]) -> Text:
        """Return how far the search is, and which filters are on.

        Args:
            key: returns the key of a binding by its name.
        """
        text = Text(end="")
        search = self.search
        if search is not None and search.state.failure:
            text.append(search.state.failure, STYLES.removed)
        elif search is not None:
            text.append(self._figures(search), f"bold {STYLES.text}")
            for name, word in _HINTS if search.state.found else ():
                text.append(f"   {key(name)}", f"bold {STYLES.accent}")
                text.append(f" {word}", STYLES.muted)
        if self.rules:
            text.append("   " if text else "")
            text.append(self.rule_words, STYLES.pending)
        if text:
            text.append(f"   {key('logs.leave')}", f"bold {STYLES.accent}")
            text.append(" clear", STYLES.muted)
        return text

    @property
    def rule_words(self) -> str:
        """The filters, as they were typed; empty where there are none."""
        kept = " ".join(f"&{'' if rule.keep else '!'}{rule.pattern.text}" for rule in self.rules)
        return f"{count(len(self.rules), 'filter')}: {plain(kept)}" if kept else ""

    def _figures(self, search: Search) -> str:
        state, ranked = search.state, self._ranked
        if not state.found:
            return "no match" if state.complete else "searching"
        total = f"{state.found:,}{'' if state.complete else '+'}"
        if ranked is None or ranked.search is not search or ranked.line != self.current or ranked.rank is None:
            return f"{total} found"
        return f"{ranked.rank + 1:,} of {total}"

    def _started(self, pattern: Pattern, *, quiet: bool = False) -> Search:
        assert self._log is not None
        told: list[Callable[[], object]] = []
        search = Search(self._log, pattern, lambda: [tell() for tell in told])
        if not quiet:
            told.append(lambda: self._post(SearchTold(search)))
        search.start()
        return search

    def _post(self, message: Message) -> None:
        # The loop may be gone already when the app ends.
        with suppress(RuntimeError):
            self._target.post_message(message)


__all__ = ["CauseFound", "LineFound", "LogFinder", "MatchRanked", "PatternError", "SearchTold"]
