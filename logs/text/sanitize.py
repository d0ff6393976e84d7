"""Conversion of a job's bytes to text that is safe to show.

A terminal obeys what it is sent: a log may have sequences that set the window's title, clear the screen, send answers
as if typed, or reorder text. Only SGR (colours and attributes) is kept, as spans beside the text, and controls that
edit the line itself are applied: carriage return, backspace, tab and erase in line. Everything else is dropped, also
unfinished sequences.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from .cells import CellLine, Span
from .sgr import PLAIN, apply_sgr

# Bytes of one line that are read; a mark at its end gives the size of the rest.
LINE_LIMIT = 65536

# Each alternative ends at the latest with the line, so that an unfinished sequence is dropped with its content.
# C1 controls are accepted in their UTF-8 form (U+0080 to U+009F), which terminals obey as well.
_CONTROL = re.compile(
    r"""
      (?:\x1b\[|\x9b) (?P<parameters>[0-?]*) (?P<between>[ -/]*) (?P<final>[@-~]?)  # CSI
    | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])  # OSC, DCS, SOS, PM, APC: up to their end
      [^\x07\x18\x1a\x1b\x9c]* (?:\x07|\x18|\x1a|\x9c|\x1b\\)?
    | \x1b [ -/]* [0-Z\\^-~]?  # other escapes
    | (?P<edit>[\r\b\t])
    | (?P<other>[\x00-\x1f\x7f-\x9f])
    """,
    re.VERBOSE,
)

_REPLACEMENT = "\ufffd"

# The first character that `_with_known_width` may change: a combining mark.
_FIRST_DISPUTED = "\u0903"
# Variation selectors, skin tones, fillers of Hangul.
_DROPPED = frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400), *range(0xE0100, 0xE01F0), 0x3164, 0xFFA0))
)
# Wide since Unicode 16; narrow, or wider, in tables before it.
_NEWLY_WIDE = re.compile("[\u2630-\u2637\u268a-\u268f\u3248-\u324f]")


@dataclass(frozen=True)
class SafeLine:
    """One line that is safe to show.

    Attributes:
        text: printable characters only: no control, no line break, nothing that reorders text.
        spans: the styles that the line gave to parts of ``text``, in order, not overlapping.
        omitted: bytes of the line that were left out at its end; ``text`` says so.
    """

    text: str
    spans: tuple[Span, ...] = ()
    omitted: int = 0


def sanitize(data: bytes, *, limit: int = LINE_LIMIT, omitted: int = 0) -> SafeLine:
    """Convert one line of a log to safe text.

    Args:
        data: the line's bytes, without its line feed.
        limit: the most bytes to read; the cost is linear in it.
        omitted: bytes that the caller has left out already, for the mark at the end.
    """
    if len(data) > limit:
        cut = _cut_at_character(data, limit)
        omitted += len(data) - cut
        data = data[:cut]
    text = data.decode("utf-8", "replace")
    if text.isprintable():
        return _with_omission_mark(text, (), omitted)
    line = CellLine(widest=limit * 2)
    style = PLAIN
    position = 0
    for match in _CONTROL.finditer(text):
        if match.start() > position:
            line.write(_printable(text[position : match.start()]), style)
        position = match.end()
        if match["edit"]:
            _edit(line, match["edit"])
        elif match["final"] == "m" and not match["between"] and match["parameters"][:1] not in ("<", "=", ">", "?"):
            style = apply_sgr(style, match["parameters"])
        elif match["final"] == "K" and match["parameters"] in ("", "0", "1", "2"):
            line.erase(int(match["parameters"] or 0))
    if position < len(text):
        line.write(_printable(text[position:]), style)
    return _with_omission_mark(*line.text_and_spans(), omitted)


def plain(text: str) -> str:
    """Return a name or a message as one line of printable text, without styles.

    Sequences are dropped whole; line breaks and tabs become spaces. Characters that terminals draw in different numbers
    of cells are replaced or dropped, so that the text after them stays in its column.
    """
    if not text.isprintable():
        text = _printable(_CONTROL.sub(_plain_control, text.replace("\r\n", "\n")))
    if text.isascii() or max(text) < _FIRST_DISPUTED:
        return text
    return "".join(_with_known_width(char) for char in text)


def format_size(count: int) -> str:
    """Format a number of bytes with one unit, such as ``512 B`` or ``9.9 MB``."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        # A little less rounds up to 1000.0 of the unit below.
        if count >= 0.99995 * size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _with_omission_mark(text: str, spans: tuple[Span, ...], omitted: int) -> SafeLine:
    if omitted:
        text += f" [+{format_size(omitted)}]"
    return SafeLine(text, spans, omitted)


def _edit(line: CellLine, control: str) -> None:
    if control == "\r":
        line.carriage_return()
    elif control == "\t":
        line.tab()
    else:
        line.backspace()


def _plain_control(match: re.Match[str]) -> str:
    return " " if (match["edit"] or match["other"] or "") in ("\t", "\r", "\n", "\v", "\f") and match.group() else ""


def _printable(text: str) -> str:
    """Return ``text``, which has no C0 and C1 controls, without unprintable characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _substitute(char) for char in text)


def _substitute(char: str) -> str:
    """Return the replacement of an unprintable character."""
    category = unicodedata.category(char)
    if category in ("Zs", "Zl", "Zp"):
        # The ideographic space is two cells wide.
        return "  " if char == "\u3000" else " "
    # Format characters reorder or hide text (bidi controls, zero-width ones); the width of the others is unknown.
    return "" if category in ("Cf", "Cc") else _REPLACEMENT


def _with_known_width(char: str) -> str:
    """Return the replacement of a character for which terminals have different widths.

    Measured with tmux 3.3a and Rich: all other characters of Unicode have the same width in both.
    """
    if char < _FIRST_DISPUTED:
        return char
    if char in _DROPPED or unicodedata.category(char) == "Mc":
        return ""
    if "\U0001f1e6" <= char <= "\U0001f1ff":
        # Two of them are a flag in some terminals.
        return chr(ord(char) - 0x1F1E6 + ord("A"))
    return _REPLACEMENT if _NEWLY_WIDE.match(char) else char


def _cut_at_character(data: bytes, limit: int) -> int:
    """Return the offset at or before ``limit`` where ``data`` can be cut without splitting a UTF-8 character."""
    nearest = range(limit, max(limit - 4, -1), -1)
    return next((at for at in nearest if data[at] & 0xC0 != 0x80), limit)
