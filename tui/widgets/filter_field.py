"""The field of the table's filter."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input


class FilterField(Input):
    """A field that is left with enter at once: over a slow link the next key comes in the same burst.

    Textual lets a key pass through every widget before its binding acts, so a letter after enter would still be typed
    into the field.

    Args:
        back_to: what has the focus then.
        placeholder: shown while the field is empty.
        id: of the widget.
    """

    class Kept(Message):
        """The filter was typed to its end."""

    def __init__(self, back_to: Widget, *, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False)
        self._back_to = back_to

    async def _on_key(self, event: events.Key) -> None:
        if self.screen.focused is not self:
            # Handed to the field before it was left.
            event.stop()
            event.prevent_default()
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.screen.set_focus(self._back_to)
            self.post_message(self.Kept())
