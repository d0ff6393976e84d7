"""A field of one line that is left with enter, such as that of a filter or of a search."""

from __future__ import annotations

from collections.abc import Callable

from textual.widgets import Input


class PromptInput(Input):
    """A field where enter acts at once.

    Args:
        accept: called with enter; it moves the focus, by `Screen.set_focus`, unless more is to be typed.
        placeholder: shown while the field is empty.
        id: of the widget.
    """

    def __init__(self, accept: Callable[[], object], *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._accept = accept

    async def action_submit(self) -> None:
        """Take what is typed."""
        self._accept()
