"""The title of the terminal's window: how many jobs run and failed, for whoever has it in the background."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from textual.app import App

from ...specs.status import AppState
from .textual_internals import write_to_terminal

# xterm keeps a stack of titles: ours is put on it at the start and taken away at the end.
PUSH = "\x1b[22;2t"
POP = "\x1b[23;2t"
_TITLED = ("xterm", "rxvt", "screen", "tmux", "alacritty", "foot", "kitty", "wezterm", "vte", "konsole")


def title_text(counts: Mapping[AppState, int]) -> str:
    """Return the title, such as ``torchx-tui 3 running 1 failed``."""
    words = ["torchx-tui"]
    for state, word in ((AppState.RUNNING, "running"), (AppState.PENDING, "pending"), (AppState.FAILED, "failed")):
        if counts.get(state):
            words.append(f"{counts[state]} {word}")
    return " ".join(words)


def has_title(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal has a title that can be set: a console or an unknown terminal has none."""
    term = (os.environ if environ is None else environ).get("TERM", "dumb")
    return term.startswith(_TITLED)


def title_sequence(text: str) -> str:
    """Return what sets the title (OSC 2) to a text of ours."""
    return f"\x1b]2;{text}\x07"


class TerminalTitle:
    """The title of an app's terminal window.

    Args:
        app: the app.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._title = ""

    def show(self, counts: Mapping[AppState, int]) -> None:
        """Set the title to the counts of jobs; nothing is written while they stay the same."""
        title = title_text(counts)
        if title == self._title or self._app.is_headless or not has_title():
            return
        if write_to_terminal(self._app, (PUSH if not self._title else "") + title_sequence(title)):
            self._title = title

    def restore(self) -> None:
        """Give the terminal the title that it had before."""
        if self._title:
            write_to_terminal(self._app, POP)
