"""Pasted text in fields of one line."""

from __future__ import annotations

import re

_CONTINUED = re.compile(r"([ \t]*)\\(?:\r\n|\r|\n)([ \t]*)")


def one_line(text: str) -> tuple[str, int]:
    r"""Return the first line of a text that has more than blanks, and how many such lines follow it.

    Lines that end with a backslash are joined with the next one, as a shell does.
    """
    joined = _CONTINUED.sub(lambda found: " " if found[1] or found[2] else "", text)
    lines = [line for line in joined.splitlines() if line.strip()]
    return (lines[0], len(lines) - 1) if len(lines) > 1 else ("".join(lines or joined.splitlines()[:1]), 0)
