"""Copying over SSH: OSC 52, wrapped for tmux and screen, within what terminals take; else to a file."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from ...specs.files import private_folder, state_folder, write_private

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
