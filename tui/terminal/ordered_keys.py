"""Keys one after the other: each is carried out before the next is looked at.

Textual hands a key to the widget with the focus, lets it pass through every widget above that, and looks for its
binding then. Keys that come at once, over a slow link or typed fast, overtake each other on that way: what is typed
behind ``/`` is taken for commands, a letter before ctrl+u comes after it, and enter carries out half of what was typed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from textual import events
from textual.app import App, ReturnType
from textual.message_pump import MessagePump
from textual.widget import Widget
from textual.widgets import Input

from .paste import one_line
from .textual_internals import EndedParents, HiddenScreens

# A field, or a screen that is opened, takes milliseconds; one that hangs holds up no key for longer (s).
_LIMIT = 1.0
# A wait is made in so many parts, of which time while the program was stopped takes one at the most.
_PARTS = 20


class OrderedKeysApp(EndedParents, HiddenScreens, App[ReturnType]):
    """An application whose keys act in the order in which they come."""

    async def on_event(self, event: events.Event) -> None:
        """Carry out a key whose binding is known; hand any other event on."""
        if isinstance(event, events.Key) and not self.screen_stack:
            # The app ends: Textual would look for the screen.
            return
        if isinstance(event, events.Key) and not event.is_forwarded:
            if (focused := self.focused) is not None and _takes_text(focused):
                await _has_caught_up(focused)
            if await self._carry_out(event):
                return
        if isinstance(event, events.Paste):
            event.text = self.fit_paste(event.text)
        await super().on_event(event)

    def fit_paste(self, text: str) -> str:
        """Return what of a text can be pasted where the focus is; show how much of it cannot."""
        if not isinstance(self.focused, Input):
            return text
        line, left_out = one_line(text)
        if left_out:
            words = f"Pasted the first of {left_out + 1:,} lines. A line that ends with \\ is joined with the next one."
            self.notify(words, severity="warning", markup=False)
        return line

    async def _carry_out(self, event: events.Key) -> bool:
        """Run the action of a key's binding; return whether there is one, and nobody types."""
        focused = self.focused
        if focused is not None and _takes_text(focused) and (event.is_printable or not isinstance(focused, Input)):
            return False
        active = self.screen.active_bindings.get(event.key)
        if active is None or not active.enabled:
            return False
        self.app_focus = True
        before = self.screen
        await self.run_action(active.binding.action, active.node)
        # A worker that the action started opens its dialog.
        await asyncio.sleep(0)
        if self.screen is not before:
            await _has_caught_up(self.screen)
        return True


def _takes_text(widget: Widget) -> bool:
    """Return whether letters are text for a widget: a field, or an editor, which takes enter as well."""
    return widget.check_consume_key("a", "a")


async def _has_caught_up(pump: MessagePump) -> None:
    """Wait until a widget or a screen has handled what it was sent."""
    handled = asyncio.Event()

    async def note(*_: Any) -> None:
        handled.set()

    if pump.call_later(note):
        await done_within(asyncio.ensure_future(handled.wait()), _LIMIT)


async def done_within(waited_for: asyncio.Future[Any], seconds: float) -> bool:
    """Wait for at most so many seconds in which this program runs; return whether it is done, and cancel it if not.

    Where the program was stopped for as long, or threads are late on a busy machine, nothing has hung.
    """
    for _ in range(_PARTS):
        if (await asyncio.wait([waited_for], timeout=seconds / _PARTS))[0]:
            return True
    waited_for.cancel()
    return False
