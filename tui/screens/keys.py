"""The keys of the view that was open: read from its bindings, so that it cannot lie."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from ..governor import PacedScreen
from ..leaving import LeavesOnce
from ..theme import palette_of

_KEY_WORDS = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "asterisk": "*",
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


# Textual's own descriptions, in the words of the other screens.
_DESCRIPTIONS = {"app.focus_next": "Next pane or field", "app.focus_previous": "Previous pane or field"}


def key_words(keys: str) -> str:
    """Return a binding's keys as a person reads them."""
    return " ".join(_KEY_WORDS.get(key, key) for key in keys.split(","))


def bindings_of(screen: Screen[object]) -> dict[str, list[tuple[str, str]]]:
    """Return keys and what they do on a screen, in groups: the focused widget's, the screen's, everywhere's."""
    groups: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for active in screen.active_bindings.values():
        owner, binding = active.node, active.binding
        if binding.system or not binding.description or "super+" in binding.key:
            continue
        title = "Everywhere" if owner is screen.app else getattr(owner, "HELP_TITLE", "") or _title_of(owner)
        rows = groups.setdefault(title, [])
        description = _DESCRIPTIONS.get(binding.action, binding.description)
        if f"{title} {binding.action}" in seen:
            rows[:] = [
                (f"{keys} {key_words(binding.key)}" if what == description else keys, what) for keys, what in rows
            ]
            continue
        seen.add(f"{title} {binding.action}")
        rows.append((key_words(binding.key), description))
    return groups


def _title_of(owner: object) -> str:
    name = type(owner).__name__
    return "".join(
        f" {letter.lower()}" if letter.isupper() and number else letter for number, letter in enumerate(name)
    )


class KeysScreen(PacedScreen, LeavesOnce, ModalScreen[None]):
    """Lists the keys that act on a screen.

    Args:
        screen: the screen whose keys are meant.
    """

    BINDINGS = [
        Binding("escape,q,question_mark,f1", "dismiss", "Back", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
    ]

    CSS_PATH = "../styles/dialogs.tcss"

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self._groups = bindings_of(screen)

    def compose(self) -> ComposeResult:
        """Yield the list."""
        with VerticalScroll(id="keys") as box:
            box.border_title = "Keys of this view"
            box.border_subtitle = "esc back"
            yield Static(self._text(), markup=False)

    def _text(self) -> Text:
        colors = palette_of(self.app)
        text = Text(end="")
        order = sorted(self._groups, key=lambda title: title == "Everywhere")
        for title in order:
            text.append(f"{title}\n", f"bold {colors.text}")
            for keys, what in self._groups[title]:
                text.append(f"  {keys:<22}", f"bold {colors.accent}")
                text.append(f"{what}\n", colors.text2)
            text.append("\n")
        return text

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#keys").scroll_relative(y=rows, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close the list."""
        self.dismiss(result)
