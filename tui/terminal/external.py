"""Leaving the terminal to another program, and coming back at its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from ...logs.text.sanitize import plain

if TYPE_CHECKING:
    from ..app import TorchXTuiApp


def run_outside(app: TorchXTuiApp, command: Sequence[str], what: str, words: str = "") -> tuple[int, str]:
    """Leave the terminal to a program until it ends.

    Args:
        app: the app that leaves it.
        command: the argument list.
        what: the program, in words.
        words: printed before the program starts.

    Returns:
        its exit code, and why it could not be started, empty where it was.
    """
    try:
        with app.suspend():
            if words:
                assert sys.__stdout__ is not None
                sys.__stdout__.write(f"\r\n{plain(words)}\r\n")
                sys.__stdout__.flush()
            try:
                return subprocess.call(command), ""
            except OSError as error:
                return 127, f"{command[0]} cannot be started: {error.strerror}"
            except ValueError as error:
                return 127, f"{command[0]} cannot be started: {error}"
    except SuspendNotSupported:
        return 127, f"this terminal cannot be suspended for {what}"
