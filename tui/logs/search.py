"""The search row of a log: it searches, filters and goes to places in the log, and says how far it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text
from textual.message import Message

from ...logs.lines.matches import Rule
from ..ui.bars import key_of
from ..ui.palette import STYLES
from .finder import CauseFound, LineFound, LogFinder, MatchRanked, PatternError, SearchTold
from .jump import JumpError
from .reading import AnyLog, LogReading
from .rows import Marks
from .search_row import SearchRow
from .travel import LogTravel
from .view import LogView

# Keys that are waited for while a search is slow; those of a key that is held are no more than that.
_MOST_STEPS = 8


class LogSearch(SearchRow):
    """Carries out what is typed in its row.

    Args:
        view: the lines on screen, which it moves and lights up.
        reading: the log.
    """

    @dataclass
    class Filtered(Message):
        """Other lines are let through."""

        rules: tuple[Rule, ...]

    @dataclass
    class Missed(Message):
        """The search found nothing, or continued from the other end of the log; ``words`` say so."""

        words: str

    def __init__(self, view: LogView, reading: LogReading) -> None:
        super().__init__()
        self._view = view
        self._finder = LogFinder(self)
        # Whether an answer is waited for, and the steps from there that were asked for meanwhile.
        self._is_asked = False
        self._steps: deque[tuple[bool, bool]] = deque()
        # Whether it continues from the other end of the log.
        self._has_wrapped = False
        self.travel = LogTravel(view, reading, self._finder)

    @property
    def is_searching(self) -> bool:
        """Whether something is searched for."""
        return self._finder.search is not None

    @property
    def current(self) -> int | None:
        """The number of the line that was found or gone to last, while it is on screen."""
        current = self._finder.current
        return current if current is not None and self._view.shows(current) else None

    @property
    def rule_words(self) -> str:
        """The filters, as they were typed."""
        return self._finder.rule_words

    def set_error_patterns(self, patterns: Sequence[str]) -> None:
        """Take regular expressions that are errors besides those of the table."""
        self._finder.error_patterns = tuple(patterns)

    def on_unmount(self) -> None:
        """End the searching threads."""
        self._finder.close()

    def clear(self) -> None:
        """Search for nothing, filter nothing, go nowhere."""
        self._forget_steps()
        self._finder.clear()
        self.travel.forget()
        self.close()

    def attach(self, log: AnyLog | None) -> None:
        """Search in this log from now on."""
        self._forget_steps()
        self._finder.attach(log)
        self._mark()

    def grew(self) -> None:
        """Say that more of the log is known."""
        self._finder.grew()
        self.travel.grew()

    def leave(self) -> None:
        """Give up what is typed; a search and filters end too, but not for a place that was typed."""
        asked_place = self.mode == "jump"
        self.screen.set_focus(self._view)
        if asked_place and self._finder.is_active:
            self._rest()
            return
        filtered = bool(self._finder.rules)
        self._forget_steps()
        self._finder.clear()
        self.close()
        if filtered:
            self.travel.forget()
            self.post_message(self.Filtered(()))
        self._mark()
        self.refresh_bindings()

    def find(self, *, forward: bool, errors: bool = False, from_here: bool = False) -> None:
        """Go to a match or an error.

        Args:
            forward: to the next one, else to the one before.
            errors: to an error, else to a match.
            from_here: from what is on screen, else from the current line where there is one.
        """
        view, current = self._view, self._finder.current
        self.travel.cancel()
        edge = view.first_line if forward else view.last_line
        if current is not None and not from_here:
            start = current + (1 if forward else -1)
        elif edge is not None:
            start = edge.number
        else:
            return
        self._has_wrapped = False
        self._is_asked = self._finder.find(start, forward=forward, errors=errors)

    def step(self, *, forward: bool, errors: bool = False) -> None:
        """Go on from the match or the error that is looked for just now, once it is found; see `find`."""
        if not self._is_asked:
            self.find(forward=forward, errors=errors)
        elif len(self._steps) < _MOST_STEPS:
            self._steps.append((forward, errors))

    def _forget_steps(self) -> None:
        self._is_asked = False
        self._steps.clear()

    def _take_step(self) -> None:
        """Say that what was looked for is known, and do what was asked for meanwhile."""
        self._is_asked = False
        if self._steps:
            forward, errors = self._steps.popleft()
            self.find(forward=forward, errors=errors)

    def accept(self) -> None:
        """Search or filter by what was typed, or go there."""
        if not self.input.value:
            self.leave()
            return
        try:
            self._carry_out(self.input.value)
        except (PatternError, JumpError) as error:
            self.say(Text(str(error), STYLES.removed))
            return
        self.screen.set_focus(self._view)
        self._rest()
        self._mark()
        self.refresh_bindings()

    def _carry_out(self, text: str) -> None:
        if self.mode == "jump":
            self.travel.jump(text)
        elif self.mode == "filter":
            self._finder.add_rule(text, regex=self.regex)
            self.travel.forget()
            self.post_message(self.Filtered(self._finder.rules))
        else:
            self._finder.set_pattern(text, regex=self.regex)
            self._forget_steps()
            self.find(forward=not self._view.following, from_here=True)

    def on_descendant_blur(self) -> None:
        """Say how far the search is: what was half typed is left."""
        # The field may have the focus again: this is told later than the next keys are carried out.
        if self.typing and self.screen.focused is not self.input:
            self._rest()

    def on_search_row_cleared(self, message: SearchRow.Cleared) -> None:
        """Leave the row where something was typed."""
        message.stop()
        self.leave()

    def on_search_told(self, message: SearchTold) -> None:
        """Say how far the search is."""
        if message.search is self._finder.search:
            message.search.acknowledge()
            if message.search.state.failure:
                self._forget_steps()
            self._finder.rank()
            self._say()

    def on_match_ranked(self, message: MatchRanked) -> None:
        """Say which of the matches the current line is."""
        if self._finder.take_rank(message):
            self._say()

    def on_cause_found(self, message: CauseFound) -> None:
        """Show the error that the log ended of."""
        if self.travel.take_cause(message):
            self._mark()

    def on_line_found(self, message: LineFound) -> None:
        """Show the line that was found."""
        if not self._finder.owns(message.search):
            return
        bounds, finder = self._view.bounds, self._finder
        if message.line is None and not self._has_wrapped:
            self._has_wrapped = True
            start = bounds.first if message.forward else bounds.end - 1
            finder.find(start, forward=message.forward, errors=message.what == "error")
            return
        if message.line is None:
            self.post_message(self.Missed(f"no {message.what} in this log"))
        else:
            if message.line == finder.current:
                number = message.line - bounds.first + bounds.gone + 1
                self.post_message(self.Missed(f"the only {message.what}: line {number:,}"))
            elif self._has_wrapped:
                end = "bottom; continued from the top" if message.forward else "top; continued from the bottom"
                self.post_message(self.Missed(f"no {message.what} up to the {end}"))
            finder.current = message.line
            self._mark()
            self._view.reveal(message.line)
            finder.rank()
        self._take_step()

    def _mark(self) -> None:
        finder = self._finder
        self._view.mark(Marks(finder.spans, finder.current) if finder.search or finder.current is not None else None)

    def _rest(self) -> None:
        """Show what is searched for: nobody types any more."""
        pattern = self._finder.pattern
        self.show_pattern(pattern.text if pattern is not None else "")
        self._say()

    def _say(self) -> None:
        if self.typing:
            return
        self.display = self._finder.is_active
        self.say(self._finder.words(partial(key_of, self)))
