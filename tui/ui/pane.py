"""A pane: a title rule over a body, lit while the focus is inside."""

from __future__ import annotations

from textual.containers import Vertical
from textual.widget import Widget

from .title_rule import TitleRule


class Pane(Vertical):
    """A `TitleRule` over what stands below it.

    Args:
        title: the pane's name.
        body: the widgets below the rule.
        id: of the widget.
    """

    DEFAULT_CSS = "Pane { width: 1fr; height: 1fr; }"

    def __init__(self, title: str, *body: Widget, id: str | None = None) -> None:
        self.rule = TitleRule(title)
        super().__init__(self.rule, *body, id=id)

    def on_descendant_focus(self) -> None:
        """Light the rule, or dim it."""
        self.rule.active = self.has_focus_within

    on_descendant_blur = on_descendant_focus


class Divider(Vertical):
    """The thin vertical line between two panes."""

    DEFAULT_CSS = "Divider { width: 1; height: 1fr; margin: 1 1 0 1; border-left: solid $line; }"
