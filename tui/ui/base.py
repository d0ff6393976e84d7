"""What all full screens share: the top bar, the status line, the key bar, and messages in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.signal import Signal

from .bars import Hint, KeyBar, StatusLine, TopBar, acting_bindings, path_text, shown_hints
from .drawing import guard_update
from .frames import PacedScreen
from .palette import Text
from .theme import glyphs_of, now_of

if TYPE_CHECKING:
    from .glyphs import Glyphs

# Rows from which the status line has a row of its own.
TALL = 30

News = TypeVar("News")


class BaseScreen(PacedScreen, Screen[Any]):
    """A screen between a top bar and a key bar."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-stacked"), (120, "-wide"), (160, "-extra-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall"), (34, "-taller")]

    # What the help screen is headed with, and the path in the top bar.
    HELP_TITLE = ""

    _keys_are_due = False

    def __init__(self) -> None:
        super().__init__()
        self._signals: list[Signal[Any]] = []

    @property
    def glyphs(self) -> Glyphs:
        """The glyphs in use."""
        return glyphs_of(self.app)

    def compose(self) -> ComposeResult:
        """Yield the bars around `compose_body`."""
        yield TopBar()
        yield from self.compose_body()
        yield StatusLine()
        yield KeyBar()

    def compose_body(self) -> ComposeResult:
        """Yield what stands between the bars."""
        yield from ()

    def hints(self) -> list[Hint]:
        """Return the key bar's hints but help, the most used first."""
        return []

    def all_hints(self) -> list[Hint]:
        """Return the key bar's hints."""
        return [*self.hints(), Hint("app.keys", "Keys")]

    def path(self) -> list[str]:
        """Return the path of the top bar."""
        return []

    def counts(self) -> Text:
        """Return the figures at the right end of the status line."""
        return Text()

    def summary(self) -> Text:
        """Return what the status line says while there is no message, where it has a row of its own."""
        return Text()

    def unsaved(self) -> str:
        """Return a sentence about what is lost when the program ends now; empty for nothing."""
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Do nothing yet for a key that comes before the screen is there."""
        del action, parameters
        return True if self.is_mounted else None

    def on_mount(self) -> None:
        """Fill the bars."""
        self.refresh_bars()

    def listen(self, signal: Signal[News], show: Callable[[News], object]) -> None:
        """Call a method with what a signal publishes, while the screen is mounted; report its failures."""

        def guarded(news: News) -> None:
            with guard_update(self.dashboard.status, "a job"):
                show(news)

        signal.subscribe(self, guarded, immediate=True)
        self._signals.append(signal)

    def on_unmount(self) -> None:
        # A subscription keeps the screen in memory until the signal is next published.
        for signal in self._signals:
            signal.unsubscribe(self)

    def on_screen_resume(self) -> None:
        """Fill the bars anew: the message may be another by now."""
        self.refresh_bars()

    def on_resize(self, event: events.Resize) -> None:
        """Move the message to where there is room for it."""
        self.call_after_refresh(self.refresh_bars)

    def top_middle(self) -> Text:
        """Return what the top bar shows after the program's name."""
        return path_text(self.path(), self.glyphs.path)

    def shows_job(self, handle: str) -> bool:
        """Return whether the screen shows a job."""
        row = getattr(self, "row", None)
        return row is not None and row.handle == handle

    def action_up(self, level: int) -> None:
        """Go back to the screen of a part of the path that was clicked."""
        keep = 1 if level == 0 else len(self.app.screen_stack) - 1
        while len(self.app.screen_stack) > keep:
            self.app.pop_screen()

    def refresh_bindings(self) -> None:
        """Show the keys that act now; Textual calls this as well whenever the focus moves."""
        super().refresh_bindings()
        # Once for all that one key changes: each binding is asked, and some look at every marked row.
        if self.is_mounted and not self._keys_are_due:
            self._keys_are_due = True
            self.call_next(self._refresh_keys)

    def _refresh_keys(self) -> None:
        self._keys_are_due = False
        if bars := self.query_children(KeyBar):
            bars.first().hints = shown_hints(self.all_hints(), acting_bindings(self), self.glyphs)

    def refresh_bars(self) -> None:
        """Draw the three bars as things stand now."""
        # A screen that is leaving has no bars any more.
        if not self.is_mounted or not (bars := self.query_children(TopBar)):
            return
        top = bars.first()
        top.middle = self.top_middle()
        top.right = self.dashboard.who
        message = self._message()
        counts = self.counts()
        tall = self.app.size.height >= TALL
        line = self.query_children(StatusLine).first()
        line.left, line.right = message or self.summary(), counts
        self.query_children(KeyBar).first().message = Text() if tall else message
        self.refresh_bindings()

    def _message(self) -> Text:
        status = self.dashboard.status
        if not status.message:
            return Text()
        glyph, sign, style = (
            (self.glyphs.bad, "$style-failed", "$style-failed")
            if status.failed
            else (self.glyphs.ok, "$style-running", "$style-muted")
        )
        return Text.assemble((f"{glyph} ", sign), (status.message, style))

    def clock(self) -> float:
        """Return the time that the screen shows; frozen in pictures."""
        return now_of(self.app)
