"""The keys of the view that was open: read from its bindings, so that it cannot lie."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from .bars import acting_bindings, key_of, key_words
from .base import BaseScreen
from .frames import PacedScreen
from .palette import Text

# Textual's own descriptions, in the words of the other screens.
_DESCRIPTIONS = {"app.focus_next": "Next pane or field", "app.focus_previous": "Previous pane or field"}
# Actions that move a cursor or scroll; they come last.
_MOTIONS = {
    "move",
    "edge",
    "page",
    "scroll",
    "side",
    "start",
    "cursor_down",
    "cursor_up",
    "focus_next",
    "focus_previous",
}


@dataclass(frozen=True)
class KeyRow:
    """A row of the list.

    Attributes:
        keys: as a person reads them.
        what: what they do.
        enabled: whether they do it now.
    """

    keys: str
    what: str
    enabled: bool = True


def bindings_of(screen: Screen[object]) -> dict[str, list[KeyRow]]:
    """Return keys and what they do on a screen, the most used first, in groups by where they act.

    Keys without a name, such as Textual's own for scrolling, are left out.
    """
    hints = screen.all_hints() if isinstance(screen, BaseScreen) else ()
    hinted = [name for hint in hints for name in hint.bindings.split()]

    def place(active: ActiveBinding) -> tuple[bool, bool, int]:
        binding = active.binding
        is_motion = parse(binding.action)[1] in _MOTIONS
        return active.node is screen.app, is_motion, hinted.index(binding.id) if binding.id in hinted else len(hinted)

    groups: dict[str, dict[str, KeyRow]] = {}
    shown: set[str] = set()
    for active in sorted(acting_bindings(screen).values(), key=place):
        owner, binding = active.node, active.binding
        if binding.system or not (binding.id or binding.action in _DESCRIPTIONS) or "super+" in binding.key:
            continue
        # The keys of numbers, such as those of replicas, are one row.
        description = _DESCRIPTIONS.get(binding.action, binding.description)
        what = re.sub(r" \d+$", " by its number", description)
        action = binding.action if what == description else what
        title = "Everywhere" if owner is screen.app else getattr(owner, "HELP_TITLE", "") or _title_of(owner)
        rows, keys = groups.setdefault(title, {}), key_words(binding.key)
        known = rows.get(action)
        if known is None and what in shown:
            continue
        shown.add(what)
        rows[action] = replace(known, keys=f"{known.keys} {keys}") if known else KeyRow(keys, what, active.enabled)
    return {title: list(rows.values()) for title, rows in groups.items() if rows}


def _title_of(owner: object) -> str:
    name = type(owner).__name__
    return "".join(
        f" {letter.lower()}" if letter.isupper() and number else letter for number, letter in enumerate(name)
    )


class KeysScreen(PacedScreen, ModalScreen[None]):
    """Lists the keys that act on a screen.

    Args:
        screen: the screen whose keys are meant.
    """

    BINDINGS = [
        Binding("escape,q,question_mark,f1", "dismiss", "Back", id="keys.back"),
        Binding("j,down", "scroll(1)", "Down", id="dialog.down"),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up"),
    ]

    CSS_PATH = "../styles/dialogs.tcss"

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self._groups = bindings_of(screen)

    def compose(self) -> ComposeResult:
        """Yield the list."""
        with VerticalScroll(id="keys") as box:
            box.border_title = "Keys of this view"
            read_only = self.app.runner.read_only
            box.border_subtitle = (
                f"dimmed: not {'with --read-only' if read_only else 'now'}   {key_of(self, 'keys.back')} back"
            )
            yield Static(self._text(), markup=False)

    def _text(self) -> Text:
        text = Text()
        for title in self._groups:
            text.append(f"{title}\n", "bold $style-text")
            for row in self._groups[title]:
                styles = ("bold $style-accent", "$style-muted") if row.enabled else ("$style-faint", "$style-faint")
                text.append(f"  {row.keys:<21} ", styles[0]).append(f"{row.what}\n", styles[1])
            text.append("\n")
        return text

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#keys").scroll_relative(y=rows, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close the list."""
        self.dismiss(result)
