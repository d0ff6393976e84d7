"""Searching, filtering and going to places in a log, by what is typed in the row under it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Static

from ...logs.lines.background import Search
from ...logs.lines.failure import find_cause
from ...logs.lines.matches import Matches, Rule
from ...logs.lines.merge import LogLine
from ...logs.pattern.error_kinds import error_pattern
from ...logs.pattern.pattern import Pattern, PatternError, parse_pattern
from ...logs.text.sanitize import plain
from ...logs.text.shown import shown_text
from ..dashboard import OnDashboard
from ..format import count
from ..ui.bars import key_of, key_text
from ..ui.palette import Text
from ..ui.prompt_input import PromptInput
from .jump import EXAMPLES, Jump, JumpError, Line, Times, parse_jump
from .rows import Marks
from .session import AnyLog, LogSession
from .view import LogView

# Keys that wait while a search is slow; more of a key that is held are dropped.
_MOST_STEPS = 8
_HINTS = (("logs.match", "next"), ("logs.match_back", "previous"))

Mode = Literal["search", "filter", "jump"]

_SIGNS: dict[Mode, str] = {"search": "/", "filter": "&", "jump": ":"}
_PLACEHOLDERS: dict[Mode, str] = {
    "search": "search",
    "filter": "keep matching lines, !text drops them",
    "jump": "line, percentage or time",
}
# From this width on the kind of the pattern is shown beside the progress of its search.
_ROOMY = 100


class LogSearch(OnDashboard, Horizontal):
    """``/ timeout     3 of 17   n next   N previous   esc clear        text, any case``.

    Threads search for what is typed; their answers are handled in the event loop.

    Args:
        view: the lines on screen, which it moves and highlights.
        session: the log, with its pattern, its filters and its current line.
        say: shows a message.
        show_log: shows the session's log after its filters changed.
    """

    HELP_TITLE = "Pattern"
    DEFAULT_CSS = """
    LogSearch { height: 1; width: 1fr; display: none; }
    LogSearch > #pattern-glyph { width: 3; height: 1; }
    LogSearch > Input { width: 34%; min-width: 16; height: 1; }
    LogSearch.-jump > Input { width: 18; }
    LogSearch > #pattern-words { width: 1fr; height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    LogSearch > #pattern-kind { width: auto; height: 1; padding: 0 1; }
    """
    BINDINGS = [
        Binding("ctrl+r", "regex", "Text or regular expression", id="search.regex"),
        Binding("escape", "leave", "Clear", id="search.leave"),
    ]

    def __init__(
        self, view: LogView, session: LogSession, say: Callable[[str], object], show_log: Callable[[], object]
    ) -> None:
        super().__init__()
        self.mode: Mode = "search"
        self.regex = self.typing = False
        self.input = PromptInput(self._accept)
        self._sign = Static(markup=False, id="pattern-glyph")
        self._words = Static(markup=False, id="pattern-words")
        self._kind = Static(markup=False, id="pattern-kind")
        self._view, self._session = view, session
        self._tell, self._show_log = say, show_log
        self.error_patterns: Sequence[str] = ()
        """Regular expressions that are errors besides those of the table."""
        self._search: Search | None = None
        self._errors: Search | None = None
        # The line whose rank among the matches was asked for last, and that rank.
        self._ranked: tuple[int, int | None] | None = None
        # One step at a time: each begins where the one before has ended.
        self._stepping = asyncio.Lock()
        # Where to go as soon as it is known, unless the user moves the view before; and how to arrive there.
        self._goal: Jump | Literal["cause"] | None = None
        self._moves = 0
        self._as_current = False
        self._asked_for_cause = False
        self._places: dict[tuple[int | None, str], Line] = {}

    def compose(self) -> ComposeResult:
        yield self._sign
        yield self.input
        yield self._words
        yield self._kind

    @property
    def is_searching(self) -> bool:
        """Whether something is searched for."""
        return self._search is not None

    @property
    def current(self) -> int | None:
        """The number of the line that was found or gone to last, while it is on screen."""
        current = self._session.current
        return current if current is not None and self._view.shows(current) else None

    @property
    def rule_words(self) -> str:
        """The filters, as they were typed; empty where there are none."""
        rules = self._session.rules
        kept = " ".join(f"&{'' if rule.keep else '!'}{rule.pattern.text}" for rule in rules)
        return f"{count(len(rules), 'filter')}: {plain(kept)}" if kept else ""

    def on_unmount(self) -> None:
        self._close_searches()

    def clear(self) -> None:
        """Search for nothing, filter nothing, go nowhere."""
        self._drop_pattern()
        self.forget_places()
        self._close()

    def attach(self) -> None:
        """Search in the session's log from now on."""
        self._close_searches()
        session = self._session
        session.current = self._ranked = None
        if session.log is not None and session.pattern is not None:
            self._search = self._started(session.log, session.pattern)
        self._mark()

    def grew(self) -> None:
        """Continue: the log has more lines."""
        for search in (self._search, self._errors):
            if search is not None:
                search.poll_now()
        self._travel()

    def action_leave(self) -> None:
        """Give up what is typed; a search and filters end too, but not for a place that was typed."""
        asked_place, session = self.mode == "jump", self._session
        self.screen.set_focus(self._view)
        if asked_place and (session.pattern or session.rules):
            self._rest()
            return
        filtered = bool(session.rules)
        self._drop_pattern()
        self._close()
        if filtered:
            self._filter(())
        self._mark()
        self.refresh_bindings()

    def _drop_pattern(self) -> None:
        self._close_searches()
        self._session.pattern, self._session.current = None, None

    def _close_searches(self) -> None:
        """End the searching threads without waiting for them."""
        self.workers.cancel_group(self, "find")
        for search in (self._search, self._errors):
            if search is not None:
                search.close()
        self._search = self._errors = None

    def _started(self, log: AnyLog, pattern: Pattern, *, shows_progress: bool = True) -> Search:
        search = Search(log, pattern, lambda: self._post(self._show_progress, search) if shows_progress else None)
        search.start()
        return search

    def _post(self, handle: Callable[..., object], *arguments: object) -> None:
        """Call a method in the event loop; from a searching thread, which does not wait."""
        # The loop may be closed when the app ends.
        with suppress(RuntimeError):
            self.call_later(handle, *arguments)

    # What is typed

    def ask(self, mode: Mode) -> None:
        """Let a person type a pattern or a place."""
        self._set(mode, "")
        self.typing = self.display = True
        hint = f"  {key_of(self, 'search.regex')} text or expression"
        self._say(Text(hint if mode != "jump" else EXAMPLES, "$style-faint"))
        # At once: the next key may be here already.
        self.screen.set_focus(self.input)

    def _say(self, words: Text) -> None:
        """Show how far the search is, or what can be typed."""
        self._words.update(Text("  ").append_text(words))
        self._say_kind()

    def _close(self) -> None:
        self._set("search", "")
        self.typing = self.display = False

    def _set(self, mode: Mode, value: str) -> None:
        self.mode = mode
        self.set_class(mode == "jump", "-jump")
        self.input.placeholder = _PLACEHOLDERS[mode]
        self._sign.update(Text(f" {_SIGNS[mode]}", "bold $style-accent"))
        self.input.value = value

    def _say_kind(self) -> None:
        # Afterwards only where there is room beside how far the search is.
        asked = self.mode != "jump" and (self.typing or (self.input.value and self.size.width >= _ROOMY))
        self._kind.update(Text(kind_words(self.input.value, regex=self.regex) if asked else "", "$style-faint"))

    def on_input_changed(self) -> None:
        self._say_kind()

    def action_regex(self) -> None:
        """Read the pattern the other way."""
        if self.mode != "jump":
            self.regex = not self.regex
            self._say_kind()

    def _accept(self) -> None:
        """Search or filter by what was typed, or go there."""
        if not self.input.value:
            self.action_leave()
            return
        try:
            self._carry_out(self.input.value)
        except (PatternError, JumpError) as error:
            self._say(Text(str(error), "$style-removed"))
            return
        self.screen.set_focus(self._view)
        self._rest()
        self._mark()
        self.refresh_bindings()

    def _carry_out(self, text: str) -> None:
        if self.mode == "jump":
            self._jump(text)
        elif self.mode == "filter":
            drop = text.startswith("!") and len(text) > 1
            pattern = parse_pattern(text[1:] if drop else text, regex=self.regex)
            self._filter((*self._session.rules, Rule(pattern, keep=not drop)))
        else:
            self._session.pattern = parse_pattern(text, regex=self.regex)
            self.attach()
            self._find(forward=not self._view.following, errors=False, from_here=True)

    def _filter(self, rules: tuple[Rule, ...]) -> None:
        self.forget_places()
        self._session.filter(rules)
        self._show_log()

    def on_descendant_blur(self) -> None:
        """Show how far the search is: what was half typed is left."""
        # The field may have the focus again: this event comes after the next keys.
        if self.typing and self.screen.focused is not self.input:
            self._rest()

    # Matches and errors

    def step(self, *, forward: bool, errors: bool = False) -> None:
        """Go to the next match or error, or the previous one, after the steps that were asked for before."""
        if sum(worker.node is self and worker.group == "find" for worker in self.workers) < _MOST_STEPS:
            self._find(forward=forward, errors=errors, from_here=False)

    @work(group="find")
    async def _find(self, *, forward: bool, errors: bool, from_here: bool) -> None:
        """Go to a match or an error.

        Args:
            forward: to the next one, else to the one before.
            errors: to an error, else to a match.
            from_here: from what is on screen, else from the current line where there is one.
        """
        async with self._stepping:
            self._goal = None
            view, session, what = self._view, self._session, "error" if errors else "match"
            if errors and self._errors is None and session.log is not None:
                pattern = error_pattern(tuple(self.error_patterns))
                self._errors = self._started(session.log, pattern, shows_progress=False)
            search = self._errors if errors else self._search
            edge = view.first_line if forward else view.last_line
            if search is None or search.state.failure or edge is None:
                return
            start = edge.number
            if session.current is not None and not from_here:
                start = session.current + (1 if forward else -1)
            line = await self._nearest(search, start, forward)
            if has_wrapped := line is None:
                line = await self._nearest(search, view.bounds.first if forward else view.bounds.end - 1, forward)
            if line is None:
                self._tell(f"no {what} in this log")
                return
            if line == session.current:
                self._tell(f"the only {what}: line {line - view.bounds.first + view.bounds.gone + 1:,}")
            elif has_wrapped:
                end = "bottom; continued from the top" if forward else "top; continued from the bottom"
                self._tell(f"no {what} up to the {end}")
            session.current = line
            self._mark()
            view.reveal(line)
            self._rank()

    async def _nearest(self, search: Search, start: int, forward: bool) -> int | None:
        """Return the nearest line from one on that matches, None if there is none."""
        found: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        search.find(start, forward, lambda line: self._post(lambda: found.done() or found.set_result(line)))
        return await found

    def _rank(self) -> None:
        """Ask which of the matches the current line is."""
        search, line = self._search, self._session.current
        if search is not None and line is not None:
            search.rank(line, lambda rank: self._post(self._take_rank, search, line, rank))

    def _take_rank(self, search: Search, line: int, rank: int | None) -> None:
        if search is self._search and (line, rank) != self._ranked:
            self._ranked = line, rank
            self._show_words()

    def _show_progress(self, search: Search) -> None:
        if search is self._search:
            search.acknowledge()
            if search.state.failure:
                self.workers.cancel_group(self, "find")
            self._rank()
            self._show_words()

    # Places

    @property
    def is_travelling(self) -> bool:
        """Whether the view goes to a place that is not known yet."""
        if self._moves != self._view.moves:
            self._goal = None
        return self._goal is not None

    def forget_places(self) -> None:
        """Go nowhere, and forget all places: lines are numbered in another way from now on."""
        self._goal = None
        self._places.clear()

    def go_to_cause(self) -> None:
        """Go to the error that the log ended of, once it has ended, if there is one."""
        self._set_goal("cause")
        self._asked_for_cause = False
        self._travel()

    @contextmanager
    def kept_places(self) -> Iterator[None]:
        """Remember where the view is; when another log is shown, go where it was in that one."""
        bounds, top, session = self._view.bounds, self._view.first_line, self._session
        place = (session.replica, session.stream)
        self._places.pop(place, None)
        # While older lines are counted, the number of a line is not known.
        if not self._view.following and top is not None and bounds.complete:
            self._places[place] = Line(top.number - bounds.first + bounds.gone + 1)
        yield
        self._goal = None
        before = self._places.get((session.replica, session.stream))
        if before is not None:
            self._view.pause()
            self._set_goal(before)
            self._as_current = False
            self._arrive(before)

    def _jump(self, text: str) -> None:
        session = self._session
        last = session.last_time()
        now = last if session.ended and last is not None else time.time()
        goal = parse_jump(text, Times(session.start_time(), last, now))
        self._set_goal(goal)
        self._as_current = True
        if self._arrive(goal) is False:
            raise JumpError("no line of this log has a time: type a line number or 50%")

    def _set_goal(self, goal: Jump | Literal["cause"]) -> None:
        self._goal, self._moves = goal, self._view.moves

    def _travel(self) -> None:
        """Go to the goal if it is known by now."""
        if not self.is_travelling or self._goal is None:
            return
        if self._goal != "cause":
            self._arrive(self._goal)
        elif self._session.ended and self._view.bounds.complete and not self._asked_for_cause:
            self._asked_for_cause = True
            self._reveal_cause(self._session.log)

    @work(group="cause", exclusive=True)
    async def _reveal_cause(self, shown: AnyLog) -> None:
        """Go to the error that the log ended of."""
        line = await asyncio.to_thread(self._find_cause, shown)
        if self.is_travelling and self._goal == "cause" and shown is self._session.log:
            self._goal = None
            if line is not None:
                self._session.current = line
                self._view.reveal(line)
                self._mark()

    def _find_cause(self, shown: AnyLog) -> int | None:
        log = shown.log if isinstance(shown, Matches) else shown
        patterns = tuple(self.error_patterns)
        line = find_cause(log, extra_patterns=patterns, stopped=lambda: self._session.log is not shown)
        return shown.position(line) if line is not None and isinstance(shown, Matches) else line

    def _arrive(self, goal: Jump) -> bool | None:
        """Go to a place if it is known; return False if there is no such place, None while that is open."""
        log = self._session.log
        if log is None:
            return None
        first, end, complete, _ = log.bounds()
        if first == end:
            return None
        number, sure = goal.find(log)
        if sure:
            self._goal = None
        if number is None:
            return False if complete else None
        if not sure:
            return None
        if self._as_current:
            self._session.current = number
        self._view.go_to(number)
        return True

    # What is shown

    def _spans(self, line: LogLine) -> list[tuple[int, int]]:
        pattern = self._session.pattern
        return pattern.spans(shown_text(line.data)) if pattern is not None else []

    def _mark(self) -> None:
        current = self._session.current
        self._view.mark(Marks(self._spans, current) if self._search or current is not None else None)

    def _rest(self) -> None:
        """Show what is searched for once nothing is typed."""
        pattern = self._session.pattern
        self.typing = False
        self._set("search", pattern.text if pattern is not None else "")
        self._show_words()

    def _show_words(self) -> None:
        if not self.typing:
            self.display = self._session.pattern is not None or bool(self._session.rules)
            self._say(self._words_now())

    def _words_now(self) -> Text:
        """Return how far the search is, and which filters are on."""
        text = Text()
        search = self._search
        if search is not None and search.state.failure:
            text.append(search.state.failure, "$style-removed")
        elif search is not None:
            text.append(self._figures(search), "bold $style-text")
            for name, word in _HINTS if search.state.found else ():
                text.append("   ").append_text(key_text(self, name, word))
        if self._session.rules:
            text.append("   " if text else "").append(self.rule_words, "$style-pending")
        if text:
            text.append("   ").append_text(key_text(self, "logs.leave", "clear"))
        return text

    def _figures(self, search: Search) -> str:
        state = search.state
        if not state.found:
            return "no match" if state.complete else "searching"
        total = f"{state.found:,}{'' if state.complete else '+'}"
        line, rank = self._ranked or (None, None)
        return f"{total} found" if rank is None or line != self._session.current else f"{rank + 1:,} of {total}"


def kind_words(text: str, *, regex: bool) -> str:
    """Return how a pattern is read, such as ``text, any case``."""
    kind = "regular expression" if regex else "text"
    try:
        ignore_case = parse_pattern(text, regex=regex).ignore_case if text else True
    except PatternError:
        # Half typed, most often.
        return kind
    return f"{kind}, {'any' if ignore_case else 'exact'} case"
