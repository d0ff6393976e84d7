"""What is searched for in a log, and which lines are let through: the log pane's side of the search engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rich.text import Text
from textual.message import Message
from textual.message_pump import MessagePump

from ...backends.logs.engine import PatternError
from ...backends.logs.filtering import FilteredLog, Rule
from ...backends.logs.merge import LogLine, MergedLog
from ...backends.logs.pattern import Pattern, parse_pattern
from ...backends.logs.search import Search
from ..palette import Palette
from ..words import count

# What `e` and `E` go to: a level word, the start of a traceback, and what training jobs die of.
ERRORS = r"\b(?:ERROR|FATAL|CRITICAL)\b|Traceback \(most recent call last\)|\bNCCL\b.*\b(?:error|timeout)|out of memory"


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


class LogFinder:
    """Keeps a search, the search for errors, and the filters of one log pane.

    Args:
        target: who is told; messages are posted from the searching threads, which never wait.
    """

    def __init__(self, target: MessagePump) -> None:
        self._target = target
        self._log: MergedLog | FilteredLog | None = None
        self.pattern: Pattern | None = None
        self.rules: tuple[Rule, ...] = ()
        self.search: Search | None = None
        self._errors: Search | None = None
        self.current: int | None = None
        """The line that the last search stopped at."""

    @property
    def is_active(self) -> bool:
        """Whether something is searched for or filtered."""
        return self.pattern is not None or bool(self.rules)

    def attach(self, log: MergedLog | FilteredLog | None) -> None:
        """Look in this log from now on."""
        self.close()
        self._log = log
        self.current = None
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
                search.look()

    def find(self, start: int, *, forward: bool, errors: bool = False) -> None:
        """Look for the nearest match, or error, from a line on; the answer is a `LineFound`."""
        if errors and self._errors is None and self._log is not None:
            self._errors = self._started(parse_pattern(ERRORS, regex=True, ignore_case=False), quiet=True)
        search = self._errors if errors else self.search
        if search is None:
            return
        what = "error" if errors else "match"
        search.find(start, forward, lambda line: self._post(LineFound(search, line, forward, what)))

    def spans(self, line: LogLine) -> list[tuple[int, int]]:
        """Return where the pattern is in a line as it is shown."""
        return self.search.spans(line) if self.search is not None else []

    def words(self, colors: Palette) -> Text:
        """Return how far the search is, and which filters are on."""
        text = Text(end="")
        search = self.search
        if search is not None and search.state.failure:
            text.append(search.state.failure, colors.removed)
        elif search is not None:
            state = search.state
            text.append(f"{state.found:,}{'' if state.complete else '+'} found", f"bold {colors.text}")
            for key, word in (("n", "next"), ("N", "previous")):
                text.append(f"   {key}", f"bold {colors.accent}")
                text.append(f" {word}", colors.text2)
        if self.rules:
            text.append("   " if text else "")
            kept = " ".join(f"&{'' if rule.keep else '!'}{rule.pattern.text}" for rule in self.rules)
            text.append(f"{count(len(self.rules), 'filter')}: {kept}", colors.pending)
        if text:
            text.append("   esc", f"bold {colors.accent}")
            text.append(" clear", colors.text2)
        return text

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


__all__ = ["ERRORS", "LineFound", "LogFinder", "PatternError", "SearchTold"]
