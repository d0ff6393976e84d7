"""A Static for text that is set again and again."""

from __future__ import annotations

from textual.widgets import Static

from .palette import Text


class SteadyStatic(Static):
    """A Static that is laid out only for a text of another size: a form sets all of its texts at each letter."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(markup=False, id=id, classes=classes)
        self._shown = Text()
        # Whether the text changed since the last layout: it may need another height in another width.
        self._has_skipped = False

    def show(self, text: Text) -> None:
        if (text, text.style) != (self._shown, self._shown.style):
            self._shown = text
            before = self._needed()
            self.update(text, layout=False)
            self._has_skipped = before is not None and self._needed() == before
            if not self._has_skipped:
                self.refresh(layout=True)

    def _needed(self) -> tuple[int, int] | None:
        """Return the width, if it depends on the text, and the height; None before the first layout."""
        if not self.content_size.width:
            return None
        rules = self.styles.get_rules()
        width = self.visual.get_optimal_width(rules, self.app.size.width) if self.styles.is_auto_width else 0
        return width, self.visual.get_height(rules, self.content_size.width)

    def on_resize(self) -> None:
        if self._has_skipped:
            self._has_skipped = False
            self.refresh(layout=True)
