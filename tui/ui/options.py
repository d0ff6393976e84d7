"""Lists of options that change while somebody clicks and presses keys."""

from __future__ import annotations

from dataclasses import replace

from textual import events
from textual.style import Style
from textual.widgets import OptionList


class ChangingOptions:
    """Ignores clicks on options that are gone, and pages while nothing is drawn; to be named before `OptionList`."""

    def on_click(self: OptionList, event: events.Click) -> None:  # type: ignore[misc]
        """Take only a click on an option that is still there: the one that was drawn may be gone."""
        if (option := event.style.meta.get("option")) is not None and option >= self.option_count:
            event.prevent_default()

    def get_visual_style(self: OptionList, *names: str, partial: bool = False) -> Style:  # type: ignore[misc]
        """Return a style with its `reverse`, which Textual drops: without colours it is the cursor."""
        style = super().get_visual_style(*names, partial=partial)  # type: ignore[misc]
        return replace(style, reverse=any(self.get_component_styles(name).text_style.reverse for name in names) or None)

    def action_page_up(self) -> None:
        """Go up a page."""
        if self.scrollable_content_region:  # type: ignore[attr-defined]
            super().action_page_up()  # type: ignore[misc]

    def action_page_down(self) -> None:
        """Go down a page."""
        if self.scrollable_content_region:  # type: ignore[attr-defined]
            super().action_page_down()  # type: ignore[misc]


class Options(ChangingOptions, OptionList):
    """A list of options that may change at any time."""
