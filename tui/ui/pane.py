"""A pane: a title rule over a body, lit while the focus is inside."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from .title_rule import TitleRule


class Pane(Vertical):
    """A container whose first row is a `TitleRule`.

    Subclasses yield their body from `compose_body`.
    """

    DEFAULT_CSS = "Pane { width: 1fr; height: 1fr; }"

    def __init__(self, title: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rule = TitleRule(title)

    def compose(self) -> ComposeResult:
        """Yield the rule, then the body."""
        yield self.rule
        yield from self.compose_body()

    def compose_body(self) -> ComposeResult:
        """Yield what stands under the rule."""
        yield from ()

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """Light the rule."""
        self.rule.active = self.has_focus_within

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Dim the rule."""
        self.rule.active = self.has_focus_within


class Divider(Vertical):
    """The thin vertical line between two panes."""

    DEFAULT_CSS = "Divider { width: 1; height: 1fr; margin: 1 1 0 1; border-left: solid $line; }"
