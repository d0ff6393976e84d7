"""Copying over SSH: OSC 52, wrapped for tmux and screen, within what terminals take."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping

# What common terminals take of an OSC 52 sequence, in base64 characters.
MOST_ENCODED = 74_994


def osc52(text: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the sequence that hands ``text`` to the terminal's clipboard.

    Returns:
        The sequence, wrapped for the multiplexer that runs; None where the terminal is dumb or the text too long.
    """
    environ = os.environ if environ is None else environ
    encoded = base64.b64encode(text.encode()).decode("ascii")
    if environ.get("TERM", "dumb") == "dumb" or len(encoded) > MOST_ENCODED:
        return None
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environ.get("TERM", "").startswith("screen"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence
