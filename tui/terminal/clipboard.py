"""Copying over SSH: OSC 52, wrapped for tmux and screen, within what terminals take; else to a file."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App

from ...base.files import private_folder, state_folder, write_private
from ..status import Status
from .textual_internals import write_to_terminal

# What common terminals take of an OSC 52 sequence, in base64 characters.
MOST_ENCODED = 74_994


def osc52(text: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the sequence that hands ``text`` to the terminal's clipboard.

    Returns:
        The sequence, wrapped for the multiplexer that runs; None where the terminal is dumb or the text too long.
    """
    environ = os.environ if environ is None else environ
    if len(text) > MOST_ENCODED:
        return None
    encoded = base64.b64encode(text.encode()).decode("ascii")
    if environ.get("TERM", "dumb") == "dumb" or len(encoded) > MOST_ENCODED:
        return None
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX"):
        # Which of the two tmux obeys is a setting each: set-clipboard, and allow-passthrough.
        return sequence + "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environ.get("TERM", "").startswith("screen"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence


def copy_to_file(text: str) -> Path:
    """Write ``text`` to the one file of the state folder that copies go to, for this user only; return its path.

    Raises:
        OSError: it cannot be written.
    """
    path = private_folder(state_folder()) / "copied.txt"
    write_private(path, text.encode())
    return path


class Clipboard:
    """Copies texts through the terminal of an app, or to a file where the terminal takes no copy.

    Args:
        app: the app.
        status: shows what happened.
    """

    def __init__(self, app: App[Any], status: Status) -> None:
        self._app, self._status = app, status
        self.text = ""
        """The last text that was copied; what `paste` inserts."""

    def copy(self, text: str, what: str, *, is_command: bool = False) -> None:
        """Copy a text and say what happened.

        Args:
            text: the text.
            what: its name in the message.
            is_command: the text is a command that will be run: the message says whether a value in it is masked.
        """
        from ...backends.shared.secrets import MASK, MASKED_NOTE

        note = f"; {MASKED_NOTE}" if is_command and MASK in text else ""
        self.text = text
        sequence = osc52(text)
        if sequence is not None and write_to_terminal(self._app, sequence):
            self._status.say(f"Sent {what} to the terminal's clipboard{note}")
            return

        async def write() -> None:
            try:
                path = await asyncio.to_thread(copy_to_file, text)
            except OSError as error:
                reason = f"Could not copy {what}: the terminal does not accept this copy, and {error}"
                self._status.say(reason, failed=True)
            else:
                self._status.say(f"Wrote {what} to {path}: the terminal does not accept this copy{note}")

        self._app.run_worker(write(), group="copy")
