"""The top bar, the status line and the key bar: one row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.binding import ActiveBinding, Binding
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from ..format import cut
from .drawing import guard_render
from .glyphs import ASCII, Glyphs
from .palette import Text
from .theme import glyphs_of

if TYPE_CHECKING:
    from ...settings.config import Settings

_KEY_WORDS = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "number_sign": "#",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "ampersand": "&",
    "exclamation_mark": "!",
    "escape": "esc",
    "pagedown": "page down",
    "pageup": "page up",
    "f1": "F1",
}
_ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}


def key_words(keys: str) -> str:
    """Return a binding's keys as a person reads them."""
    return " ".join(_KEY_WORDS.get(key, key) for key in keys.split(","))


def key_of(node: DOMNode, name: str) -> str:
    """Return the first key of a binding, as a person reads it; ``[keys]`` of config.toml may have changed it.

    Args:
        node: a screen, a widget or the app that has the binding, or a widget inside it.
        name: the binding's name, such as ``jobs.cancel``.
    """
    # The log pane works in other apps too.
    settings: Settings | None = getattr(node.app, "settings", None)
    chosen = settings.keys.get(name) if settings is not None else ""
    bindings = (
        binding.key
        for owner in node.ancestors_with_self
        for kind in type(owner).__mro__
        for binding in kind.__dict__.get("BINDINGS", ())
        if isinstance(binding, Binding) and binding.id == name
    )
    # A widget that is being removed has no ancestors.
    keys = chosen or next(bindings, "")
    return key_words(keys.split(",")[0].strip())


def key_text(node: DOMNode, name: str, word: str) -> Text:
    """Return the key of a binding and what it does, as in a hint."""
    return Text.assemble((key_of(node, name), "bold $style-accent"), (f" {word}", "$style-muted"), end="")


@dataclass(frozen=True)
class Hint:
    """A hint that a screen wants in the key bar.

    Attributes:
        bindings: the names of the bindings whose keys are shown, parted by blanks, such as ``jobs.cancel``.
        word: what they do, in one or two words.
        enabled: a key that does nothing now is dimmed in its place; so is the key of a binding that is not enabled.
        key: the key of what has no binding with a name.
    """

    bindings: str
    word: str
    enabled: bool = True
    key: str = ""


@dataclass(frozen=True)
class ShownHint:
    """A hint of the key bar.

    Attributes:
        keys: each as a person reads it, with the binding that a click runs.
        word: what they do.
        enabled: whether they do it now.
    """

    keys: tuple[tuple[str, ActiveBinding | None], ...]
    word: str
    enabled: bool

    @property
    def key(self) -> str:
        """All keys, as they are shown."""
        return " ".join(key for key, _ in self.keys)


def acting_bindings(screen: Screen[object]) -> dict[str, ActiveBinding]:
    """Return a screen's active bindings, by key.

    While somebody types, a letter is text. Textual leaves out the keys that are, but for `slash`, `plus` and `minus`.
    """
    types = screen.focused is not None and screen.focused.check_consume_key("a", "a")
    active = screen.active_bindings.items()
    return {key: binding for key, binding in active if not (types and len(key_words(key)) == 1)}


def shown_hints(hints: Iterable[Hint], active: Mapping[str, ActiveBinding], glyphs: Glyphs) -> tuple[ShownHint, ...]:
    """Return hints with the first key of each binding; hints of bindings that are not active are left out.

    Args:
        hints: of a screen.
        active: the screen's active bindings by key.
        glyphs: those in use: arrow keys are shown as arrows or as words.
    """
    arrows = {} if glyphs is ASCII else _ARROWS
    named: dict[str, tuple[str, ActiveBinding]] = {}
    for key, binding in active.items():
        if binding.binding.id:
            named.setdefault(binding.binding.id, (arrows.get(key) or key_words(key), binding))
    shown = []
    for hint in hints:
        found = [named[name] for name in hint.bindings.split() if name in named]
        enabled = hint.enabled and all(binding.enabled for _, binding in found)
        if found or hint.key:
            shown.append(ShownHint(tuple(found) or ((hint.key, None),), hint.word, enabled))
    return tuple(shown)


def _two_ends(left: Text, right: Text, width: int, glyph: str) -> Text:
    """Return a row with ``left`` and ``right`` at its ends; the left one is cut if they meet."""
    room = width - right.cell_len - (2 if right else 0)
    if left.cell_len > room:
        left = left.copy()
        left.truncate(max(0, room - 1), overflow="crop")
        left.append(glyph if room > 0 else "")
    return Text.assemble(left, " " * max(0, width - left.cell_len - right.cell_len), right)


class TopBar(Widget):
    """The program's name, then the tabs or the path of the screen, and who is where at the right."""

    DEFAULT_CSS = "TopBar { height: 1; width: 1fr; background: $bar; padding: 0 1; }"

    # Parts that answer to clicks keep their own style.
    auto_links = reactive(False)
    middle: reactive[Text] = reactive(Text)
    right: reactive[str] = reactive("")

    @guard_render
    def render(self) -> Text:
        """Draw the bar."""
        left = Text("torchx-tui", "bold $style-text")
        left.append("   ")
        left.append_text(self.middle)
        right = Text(self.right, "$style-faint")
        if left.cell_len + right.cell_len + 2 > self.size.width:
            right = Text()
        return _two_ends(left, right, self.size.width, glyphs_of(self.app).cut)


def path_text(parts: Sequence[str], glyph: str) -> Text:
    """Return ``Jobs › New launch``, the last part standing out."""
    text = Text()
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        text.append(part, "bold $style-text" if last else "$style-faint")
        if not last:
            text.apply_meta({"@click": f"screen.up({number})"}, len(text) - len(part))
            text.append(f"  {glyph}  ", "$style-faint")
    return text


class StatusLine(Widget):
    """A message at the left, figures at the right."""

    DEFAULT_CSS = "StatusLine { height: 1; width: 1fr; padding: 0 1; }"

    left: reactive[Text] = reactive(Text)
    right: reactive[Text] = reactive(Text)

    @guard_render
    def render(self) -> Text:
        """Draw the line."""
        return _two_ends(self.left, self.right, self.size.width, glyphs_of(self.app).cut)


class KeyBar(Widget):
    """The keys that act now: the most used first, help last, none cut. A click does what the key does.

    Textual's Footer makes widgets anew whenever the bindings change, which is with each key that moves the cursor.
    """

    DEFAULT_CSS = "KeyBar { height: 1; width: 1fr; background: $bar; padding: 0 1; }"

    hints: reactive[tuple[ShownHint, ...]] = reactive(())
    message: reactive[Text] = reactive(Text)

    def __init__(self) -> None:
        super().__init__()
        # The columns of each key and its word, and what a click there runs.
        self._spots: list[tuple[range, ActiveBinding]] = []

    @guard_render
    def render(self) -> Text:
        """Draw as many hints as fit, always with the last one; a message takes the right end."""
        width = self.size.width
        message = self.message.copy()
        if message.cell_len > width // 2:
            message = Text(cut(message.plain, width // 2, glyphs_of(self.app).cut), message.style)
        room = width - (message.cell_len + 2 if message else 0)
        most = 10 if width >= 100 else 7
        row = Text()
        self._spots = []
        *others, last = self.hints or (ShownHint((), "", enabled=False),)
        end = self._hint(last).cell_len
        for hint in others[: most - 1]:
            if row.cell_len + self._hint(hint).cell_len + 3 + end > room:
                break
            self._append(row, hint)
            row.append("   ")
        self._append(row, last)
        return _two_ends(row, message, width, "")

    async def on_click(self, event: events.Click) -> None:
        """Do what the key does."""
        offset = event.get_content_offset(self)
        for columns, active in reversed(self._spots):
            if offset is not None and offset.x in columns and active.enabled:
                await self.app.run_action(active.binding.action, active.node)
                return

    def _append(self, row: Text, hint: ShownHint) -> None:
        drawn, at = self._hint(hint), row.cell_len
        for key, binding in hint.keys:
            if binding is not None:
                self._spots.append((range(at, row.cell_len + drawn.cell_len), binding))
            at += len(key) + 1
        row.append_text(drawn)

    @staticmethod
    def _hint(hint: ShownHint) -> Text:
        styles = ("bold $style-accent", "$style-muted") if hint.enabled else ("$style-faint", "$style-faint")
        return Text.assemble((hint.key, styles[0]), (f" {hint.word}", styles[1]))
