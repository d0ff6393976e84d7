"""The keys of the view that was open: read from its bindings, so that it cannot lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from .bars import acting_bindings, key_of, key_words
from .governor import PacedScreen
from .palette import STYLES

# Textual's own descriptions, in the words of the other screens.
_DESCRIPTIONS = {"app.focus_next": "Next pane or field", "app.focus_previous": "Previous pane or field"}


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
    """Return keys and what they do on a screen, in groups: the focused widget's, the screen's, everywhere's."""
    groups: dict[str, dict[str, KeyRow]] = {}
    for active in acting_bindings(screen).values():
        owner, binding = active.node, active.binding
        if binding.system or not binding.description or "super+" in binding.key:
            continue
        title = "Everywhere" if owner is screen.app else getattr(owner, "HELP_TITLE", "") or _title_of(owner)
        rows, keys = groups.setdefault(title, {}), key_words(binding.key)
        known = rows.get(binding.action)
        description = _DESCRIPTIONS.get(binding.action, binding.description)
        rows[binding.action] = (
            replace(known, keys=f"{known.keys} {keys}") if known else KeyRow(keys, description, active.enabled)
        )
    return {title: list(rows.values()) for title, rows in groups.items()}


def _title_of(owner: object) -> str:
    name = type(owner).__name__
    return "".join(
        f" {letter.lower()}" if letter.isupper() and number else letter for number, letter in enumerate(name)
    )


class KeysScreen(PacedScreen, ModalScreen[None]):
    """Lists the keys that act on a screen.

    Args:
        screen: the screen whose keys are meant.
        read_only: why some of them do nothing.
    """

    BINDINGS = [
        Binding("escape,q,question_mark,f1", "dismiss", "Back", id="keys.back", show=False),
        Binding("j,down", "scroll(1)", "Down", id="dialog.down", show=False),
        Binding("k,up", "scroll(-1)", "Up", id="dialog.up", show=False),
    ]

    CSS_PATH = "../styles/dialogs.tcss"

    def __init__(self, screen: Screen[object], *, read_only: bool = False) -> None:
        super().__init__()
        self._read_only = read_only
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
        text = Text(end="")
        order = sorted(self._groups, key=lambda title: title == "Everywhere")
        for title in order:
            text.append(f"{title}\n", f"bold {STYLES.text}")
            for row in self._groups[title]:
                text.append(f"  {row.keys:<21} ", f"bold {STYLES.accent}" if row.enabled else STYLES.faint)
                text.append(f"{row.what}\n", STYLES.muted if row.enabled else STYLES.faint)
            text.append("\n")
        return text

    def action_scroll(self, rows: int) -> None:
        """Scroll the list."""
        self.query_one("#keys").scroll_relative(y=rows, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close the list."""
        self.dismiss(result)
