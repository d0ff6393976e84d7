"""A Static for text that is set again and again."""

from __future__ import annotations

from textual.widgets import Static

from .palette import Text


class SteadyStatic(Static):
    """A Static that is laid out only for another text: a form sets all of its texts at each letter."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(markup=False, id=id, classes=classes)
        self._shown = Text()

    def show(self, text: Text) -> None:
        if (text, text.style) != (self._shown, self._shown.style):
            self._shown = text
            self.update(text)
