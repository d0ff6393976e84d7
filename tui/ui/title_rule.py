"""The one-row rule with a title that stands over each pane."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from textual.reactive import reactive
from textual.widget import Widget

from .drawing import guard_render
from .palette import Text
from .theme import glyphs_of


class TitleRule(Widget):
    """``━ Title  info ━━━━━━ right ━``: heavy and in the accent while its pane has the focus.

    Args:
        title: the pane's name.
        info: what qualifies it, after the title.
    """

    DEFAULT_CSS = "TitleRule { height: 1; width: 1fr; }"

    # Tabs keep their own style.
    auto_links = reactive(False)
    title: reactive[Text] = reactive(Text)
    info: reactive[Text] = reactive(Text)
    right: reactive[Text] = reactive(Text)
    active: reactive[bool] = reactive(False)

    def __init__(self, title: str | Text = "", info: str | Text = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.set_reactive(TitleRule.title, title if isinstance(title, Text) else Text(title))
        self.set_reactive(TitleRule.info, info if isinstance(info, Text) else Text(info))

    @guard_render
    def render(self) -> Text:
        """Draw the rule in the widget's width; the right-hand text goes first when there is no room."""
        glyphs = glyphs_of(self.app)
        rule_style = "$style-accent" if self.active else "$style-line"
        rule = glyphs.focused_rule if self.active else glyphs.rule
        width = self.size.width
        title_style = "bold $style-accent" if self.active else "bold $style-text"
        line = Text(rule, rule_style)
        for text, style in ((self.title, title_style), (self.info, "$style-faint")):
            if text:
                line = Text.assemble(line, " ", _styled(text, style), " ")
        right = _styled(self.right, "$style-faint") if self.right else Text()
        rest = width - line.cell_len - (right.cell_len + 4 if right else 0)
        if rest < 0:
            right, rest = Text(), width - line.cell_len
        if right:
            line = Text.assemble(line, (rule * (rest + 1), rule_style), " ", right, " ", (rule, rule_style))
        elif rest > 0:
            line.append(rule * rest, rule_style)
        if cell_len(line.plain) > width:
            line.truncate(width, overflow="crop")
        return line


def _styled(text: Text, style: str) -> Text:
    """Return ``text`` with ``style`` under the styles of its own."""
    copy = text.copy()
    copy.style = style
    return Text.assemble(copy)


def tabs_text(words: Mapping[str, str], chosen: str, action: str, notes: Mapping[str, str] | None = None) -> Text:
    """Return tabs; a click on one runs an action of the screen.

    Args:
        words: the words of each tab, by its name.
        chosen: the name of the tab that is shown.
        action: the action, which takes the name.
        notes: what stands behind some of the tabs.
    """
    text = Text()
    for name, word in words.items():
        text.append("   " if text else "", "not bold")
        style = "bold underline $style-accent" if name == chosen else "not bold $style-muted"
        text.append(word, style)
        text.apply_meta({"@click": f"screen.{action}('{name}')"}, len(text) - len(word))
        text.append(f" {note}" if (note := (notes or {}).get(name)) else "", "not bold $style-faint")
    return text
