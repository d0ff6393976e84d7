"""The private names of Textual that the dashboard depends on, each behind a public name.

No other file of tui uses such a name, and the test of this module fails when Textual renames one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events, work
from textual._parser import ParseError, Peek1, Read1, TokenCallback
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.command import CommandList, CommandPalette, Hit
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

if TYPE_CHECKING:
    from .output import TerminalOutput

__all__ = [
    "DrawnInput",
    "EndedParents",
    "GatedUpdates",
    "HiddenScreens",
    "KeyParser",
    "ParseError",
    "Peek1",
    "Read1",
    "SearchedPalette",
    "TokenCallback",
    "terminal_output",
    "write_to_terminal",
]


def write_to_terminal(app: App[Any], sequence: str) -> bool:
    """Send an escape sequence to the terminal of an app; return whether the app has a terminal now."""
    driver = app._driver
    if driver is None:
        return False
    driver.write(sequence)
    return True


def terminal_output(app: App[Any]) -> TerminalOutput | None:
    """Return the output of the app's driver, which is another one after the app has left the terminal."""
    return getattr(app._driver, "output", None)


class EndedParents:
    """An app that starts no widget below a widget that is closing. Named before `App` among the bases.

    Textual makes scrollbars when they are first needed, also by a layout after their owner has begun to close. Nobody
    would end such a scrollbar, which keeps its screen in memory.
    """

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        if parent._closing or parent._closed:
            widget._attach(parent)
        else:
            super()._start_widget(parent, widget)  # type: ignore[misc]


class HiddenScreens:
    """An app that draws nothing for screens that are hidden. Named before `App` among the bases.

    Textual takes the screen below the top one for visible, also where the top one hides it: whatever changes there is
    laid out, and the top screen is drawn again in its place. Over a slow link a key waits for that.
    """

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        top = self._screen_stack[-1:]  # type: ignore[attr-defined]
        hides = bool(top) and top[0].styles.background.a == 1
        return [] if hides else super()._background_screens  # type: ignore[misc]


class KeyParser(XTermParser):
    """A parser of terminal input whose reading of key sequences can be overridden."""

    def read_keys(self, sequence: str, alt: bool) -> Iterable[events.Key]:
        """Return the keys that an escape sequence stands for, none for an unknown sequence."""
        return super()._sequence_to_key_events(sequence, alt)

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        return self.read_keys(sequence, alt)


class GatedUpdates:
    """A screen whose changes are drawn only while `may_draw` says so. Named before `Screen` among the bases."""

    def may_draw(self) -> bool:
        """Return whether a frame may be drawn now."""
        return True

    def _on_timer_update(self) -> None:
        # Textual's method draws and stops the timer that calls it. Without that call the timer comes again.
        if self.may_draw():
            super()._on_timer_update()  # type: ignore[misc]


class DrawnInput(Input):
    """An input that may show another text than it holds."""

    def shown_text(self) -> Text | None:
        """Return the text to show instead of the value, or None to show the value."""
        return None

    @property
    def _value(self) -> Text:
        shown = self.shown_text()
        return super()._value if shown is None else shown


class SearchedPalette(CommandPalette):
    """A command palette that tells what its list was searched for."""

    listed_for: str | None = None
    """The text that the commands in the list match; None while a search is under way."""

    @property
    def placeholder(self) -> str:
        """What the empty input shows."""
        return self._placeholder

    async def search_all(self, text: str) -> AsyncIterator[Hit]:
        """Yield what each provider finds."""
        for provider in self._providers:
            async for hit in provider._search(text):
                if isinstance(hit, Hit):
                    yield hit

    def search_again(self) -> None:
        """Search for what is typed among what is offered by now, unless somebody has moved in the list."""
        if self.is_attached and not any(commands.highlighted for commands in self.query(CommandList)):
            self._stop_no_matches_countdown()
            self._gather_commands(self.query_one(Input).value.strip())

    def end_search(self) -> None:
        """End the search that is under way."""
        self._cancel_gather_commands()

    def _start_busy_countdown(self) -> None:
        """Show no "Loading...": its timer may end after the search, and then that would stay."""

    # A search that goes on while the palette is removed finds its list gone: that ends the search, not the program.
    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        self.listed_for = None
        await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]
        if not get_current_worker().is_cancelled:
            self.listed_for = search_value
