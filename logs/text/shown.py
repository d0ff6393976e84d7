"""The shown text of a block of a log, as bytes: of all lines at once where possible, else by `sanitize`.

Searches match what is shown (see `sanitize`), not what was printed: ``\\x1b[32mERR\\x1b[0mOR`` is found as ``ERROR``,
and text that a ``\\r`` overwrote is not found.
"""

from __future__ import annotations

import re

from .sanitize import sanitize

# Bytes of one line that are read, shown and searched.
LINE_CAP = 16384

_ESCAPE, _RETURN, _BACKSPACE, _TAB = 0x1B, 0x0D, 0x08, 0x09
_VISIBLE = bytes(range(0x20, 0x7F)) + b"\n"
_DROPPED = bytes(set(range(0x20)) - {_ESCAPE, _RETURN, _BACKSPACE, _TAB, 0x0A} | {0x7F})

# CSI sequences that change no text: all but `K`, which changes none if nothing is right of the cursor.
_CSI = re.compile(rb"\x1b\[(?:[0-?]*[ -/]*[@-JL-~]|0?K)")


def is_plain(data: bytes) -> bool:
    """Return whether lines are shown as they were printed: printable UTF-8, none longer than the cap."""
    if data.isascii():
        # Takes a fifth of the time of the rest, which each byte takes once in the first search of a log.
        return not data.translate(None, _VISIBLE) and not has_long_line(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return text.replace("\n", "").isprintable() and not has_long_line(data)


def has_long_line(data: bytes) -> bool:
    """Return whether a line has more bytes than are shown."""
    start, size = 0, len(data)
    while size - start > LINE_CAP:
        feed = data.rfind(b"\n", start, start + LINE_CAP + 1)
        if feed < 0:
            return True
        start = feed + 1
    return False


def shown_block(data: bytes) -> bytes:
    """Return the lines of a block as they are shown, in UTF-8, each as long as the cap allows.

    Args:
        data: whole lines; the last one may lack its line feed.
    """
    if _RETURN in data:
        data = data.replace(b"\r\n", b"\n")
    if data.isascii() and not has_long_line(data):
        bulk = _bulk(data)
        if bulk is not None:
            return bulk
    return b"\n".join([_shown_line(line) for line in data.split(b"\n")])


def shown_text(line: bytes) -> str:
    """Return a line as it is shown, without the mark for bytes left out at its end.

    Args:
        line: the line's bytes as printed, without the line feed.
    """
    return sanitize(cap_line(line)[0]).text


def cap_line(line: bytes, cap: int = LINE_CAP) -> tuple[bytes, int]:
    """Cut a longer line to its first ``cap`` bytes, or to its last state if it overwrites itself as progress bars do.

    Returns:
        its bytes, and the number of bytes left out at the end.
    """
    line = line.rstrip(b"\r")
    if len(line) <= cap:
        return line, 0
    tail = line[-cap:]
    if b"\r" in tail:
        return tail[tail.index(b"\r") + 1 :], 0
    return line[:cap], len(line) - cap


def _bulk(data: bytes) -> bytes | None:
    """Return ASCII text as it is shown; None if it moves the cursor back or hides text."""
    if _ESCAPE in data:
        data = _CSI.sub(b"", data)
    if _ESCAPE in data or _RETURN in data or _BACKSPACE in data:
        return None
    data = data.translate(None, _DROPPED)
    return data.expandtabs(8) if _TAB in data else data


def _shown_line(line: bytes) -> bytes:
    if len(line) <= LINE_CAP and line.isascii():
        bulk = _bulk(line)
        if bulk is not None:
            return bulk
    return shown_text(line).encode()
