"""What can be chosen on the command line and in config.toml alike; it costs nothing to import."""

from __future__ import annotations

from typing import Literal, get_args

ThemeName = Literal[
    "auto",
    "torchx-dark",
    "torchx-light",
    "torchx-color-blind",
    "torchx-ansi-dark",
]
THEMES: tuple[str, ...] = get_args(ThemeName)

NotifyEvent = Literal["end", "failure", "stall", "first_step"]
EVENTS: tuple[NotifyEvent, ...] = get_args(NotifyEvent)

FRAMES_PER_SECOND = range(30, 241)
FRAMES_WORDS = "give a number from 30 to 240"
