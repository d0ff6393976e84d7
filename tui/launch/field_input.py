"""The input of a form's field: masks secrets, completes paths and known values."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from textual.geometry import Size
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widgets import Input

from ...backends.shared.secrets import is_secret, mask_text
from ...components.finder import SUFFIXES
from ...components.python_script import MODULE
from ..terminal.textual_internals import DrawnInput
from ..ui.palette import Text

# Entries of a folder that are read to complete a path.
_MOST_ENTRIES = 5_000


class FieldInput(DrawnInput):
    """One line. Texts of secret fields are never shown, and pairs such as ``HF_TOKEN=x`` only with the focus."""

    # Its width is the column's: another text needs no layout, which takes 0.1 ms for each widget of the screen.
    virtual_size = reactive(Size(0, 0))

    def __init__(self, name: str, text: str, placeholder: str = "") -> None:
        # Before the constructor of Input, which draws.
        self._field_name = name
        self._instead = ""
        # Each class that the constructor adds would style it once more: `-valid` by its validation, and this one.
        super().__init__(text, placeholder, password=is_secret(name), validate_on=())
        self.set_reactive(Input.compact, True)
        self.update_classes({"-textual-compact": True}, update=False)
        self.cursor_blink = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave scrolling keys to the container: one line has nothing to scroll."""
        return not action.startswith(("scroll_", "page_")) and super().check_action(action, parameters)

    def shown_text(self) -> Text | None:
        """Return the mask of a secret or the text of `show_instead`; None with the focus."""
        # The cursor needs the text itself: a mask has another length.
        if not self.has_focus and not self.password:
            shown = self._instead or mask_text(self._field_name, self.value)
            if shown != self.value:
                return Text(shown, no_wrap=True, overflow="ignore", end="")
        return None

    def show_instead(self, text: str) -> None:
        """Show another text while the focus is elsewhere; the own text again if it is empty."""
        if text != self._instead:
            self._instead = text
            self.refresh()

    def on_blur(self) -> None:
        # Show the beginning of a text that is longer than the field.
        self.scroll_to(0, animate=False, force=True)


class PathSuggester(Suggester):
    """Suggests what a function finds among files, in a thread.

    Args:
        complete: returns the whole of a text, or None.
    """

    def __init__(self, complete: Callable[[str], str | None]) -> None:
        # Folders change.
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(self._complete, value)


def complete_path(text: str) -> str | None:
    """Complete a path that is typed."""
    return first_path(text) if text.strip() and not text.endswith(" ") else None


def complete_script(text: str) -> str | None:
    """Complete a script's path, or a module after `-m`."""
    if text.startswith(MODULE):
        path = first_path(text.removeprefix(MODULE).replace(".", "/"), (".py",))
        return path and f"{MODULE}{path.removesuffix('.py').replace('/', '.')}"
    return first_path(text, SUFFIXES) if "/" in text else None


def first_path(text: str, suffixes: tuple[str, ...] = ("",)) -> str | None:
    """Return the first path by name that starts with a text; hidden ones only after a dot.

    Args:
        text: the beginning of a path.
        suffixes: the ends of the names of files.
    """
    folder, slash, start = text.rpartition("/")
    try:
        where = Path(folder + slash).expanduser() if slash else Path()
        with os.scandir(where) as entries:
            found = [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
    except (OSError, RuntimeError, ValueError):
        return None
    for entry in sorted(found, key=lambda item: item.name):
        is_shown = entry.name.startswith(start) and (start or not entry.name.startswith("."))
        if is_shown and ((is_folder := _is_folder(entry)) or entry.name.endswith(suffixes)):
            return f"{folder}{slash}{entry.name}{'/' if is_folder else ''}"
    return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
