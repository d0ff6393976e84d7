"""A field of one line that is left with enter, such as that of a filter or of a search."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Input


class PromptInput(Input):
    """A field where enter acts at once: over a slow link the next key comes in the same burst.

    Textual lets a key pass through every widget before its binding acts, so a letter after enter would still be typed
    into the field.

    Args:
        accept: called with enter; it moves the focus, by `Screen.set_focus`, unless more is to be typed.
        placeholder: shown while the field is empty.
        id: of the widget.
    """

    def __init__(self, accept: Callable[[], object], *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._accept = accept

    async def _on_key(self, event: events.Key) -> None:
        if self.screen.focused is not self:
            # Handed to the field before it was left.
            event.stop()
            event.prevent_default()
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self._accept()
