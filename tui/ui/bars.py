"""The top bar, the status line and the key bar: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from ..format import cut
from .palette import STYLES
from .theme import glyphs_of


@dataclass(frozen=True)
class Hint:
    """One hint of the key bar.

    Attributes:
        key: the key as a person reads it, such as ``ctrl+s``.
        word: what it does, in one or two words.
        enabled: a key that does nothing now is dimmed in its place.
    """

    key: str
    word: str
    enabled: bool = True


def _two_ends(left: Text, right: Text, width: int, glyph: str) -> Text:
    """Return a row with ``left`` and ``right`` at its ends; the left one is cut if they meet."""
    room = width - right.cell_len - (2 if right else 0)
    if left.cell_len > room:
        left = left.copy()
        left.truncate(max(0, room - 1), overflow="crop")
        left.append(glyph if room > 0 else "")
    row = Text(no_wrap=True, end="")
    row.append_text(left)
    row.append(" " * max(0, width - left.cell_len - right.cell_len))
    row.append_text(right)
    return row


class TopBar(Widget):
    """The program's name, then the tabs or the path of the screen, and who is where at the right."""

    DEFAULT_CSS = "TopBar { height: 1; width: 1fr; background: $bar; padding: 0 1; }"

    middle: reactive[Text] = reactive(Text)
    right: reactive[str] = reactive("")

    def render(self) -> Text:
        """Draw the bar."""
        left = Text("torchx-tui", f"bold {STYLES.text}", end="")
        left.append("   ")
        left.append_text(self.middle)
        right = Text(self.right, STYLES.faint)
        if left.cell_len + right.cell_len + 2 > self.size.width:
            right = Text()
        return _two_ends(left, right, self.size.width, glyphs_of(self.app).cut)


def path_text(parts: Sequence[str], glyph: str) -> Text:
    """Return ``Jobs › New launch``, the last part standing out."""
    text = Text(end="")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        text.append(part, f"bold {STYLES.text}" if last else STYLES.faint)
        if not last:
            text.append(f"  {glyph}  ", STYLES.faint)
    return text


class StatusLine(Widget):
    """A message at the left, figures at the right."""

    DEFAULT_CSS = "StatusLine { height: 1; width: 1fr; padding: 0 1; }"

    left: reactive[Text] = reactive(Text)
    right: reactive[Text] = reactive(Text)

    def render(self) -> Text:
        """Draw the line."""
        return _two_ends(self.left, self.right, self.size.width, glyphs_of(self.app).cut)


class KeyBar(Widget):
    """The keys that act now: the most used first, help last, none cut."""

    DEFAULT_CSS = "KeyBar { height: 1; width: 1fr; background: $bar; padding: 0 1; }"

    hints: reactive[tuple[Hint, ...]] = reactive(())
    message: reactive[Text] = reactive(Text)

    def render(self) -> Text:
        """Draw as many hints as fit, always with the last one; a message takes the right end."""
        width = self.size.width
        message = self.message.copy()
        if message.cell_len > width // 2:
            message = Text(cut(message.plain, width // 2, glyphs_of(self.app).cut), message.style)
        room = width - (message.cell_len + 2 if message else 0)
        most = 10 if width >= 100 else 7
        row = Text(no_wrap=True, end="")
        *others, last = self.hints or (Hint("?", "Keys"),)
        end = self._hint(last)
        for hint in others[: most - 1]:
            drawn = self._hint(hint)
            if row.cell_len + drawn.cell_len + 3 + end.cell_len > room:
                break
            row.append_text(drawn)
            row.append("   ")
        row.append_text(end)
        return _two_ends(row, message, width, "")

    @staticmethod
    def _hint(hint: Hint) -> Text:
        text = Text(end="")
        text.append(hint.key, f"bold {STYLES.accent}" if hint.enabled else STYLES.faint)
        text.append(f" {hint.word}", STYLES.muted if hint.enabled else STYLES.faint)
        return text
