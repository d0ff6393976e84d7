"""What a search is held against: every line sanitised on its own, and Python's own `in` and `re`."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.text.sanitize import sanitize

_SGR = (b"\x1b[32m", b"\x1b[0m", b"\x1b[1;31m", b"\x1b[K", b"\x1b[38;5;9m")
_CONTROLS = (
    b"\r",
    b"\x08",
    b"\t",
    b"\x00",
    b"\x07",
    b"\x7f",
    b"\x1b]0;t\x07",
    b"\x1b[2K",
    b"\x1b[1K",
    b"\x1b",
    b"\xc2\x9b",
)
_WORDS = (
    b"ERROR",
    b"error",
    b"Er",
    b"ROR",
    b"E",
    b"R",
    b"OR",
    b" ",
    b"  ",
    b"ab",
    b"12",
    b"x",
    b"loss=",
    b"kiss",
    b"KISS",
)
_OTHER = ("é", "É", "größe", "GRÖSSE", "\u212a", "\u017f", "\u200b", "\u00a0", "世", "\ufffd", "ς", "Σ")

_PIECES = st.one_of(
    st.sampled_from(_WORDS),
    st.sampled_from(_WORDS),
    st.sampled_from(_SGR + _CONTROLS),
    st.sampled_from([text.encode() for text in _OTHER]),
    st.sampled_from((b"\xff", b"\xe4\xb8", b"\xc3")),
)
_PLAIN_LINES = st.lists(st.sampled_from(_WORDS), max_size=6).map(b"".join)
_LINES = st.one_of(_PLAIN_LINES, st.lists(_PIECES, max_size=8).map(b"".join))
# Logs of plain lines alone, and of all kinds; with both ends of a line; the last one unfinished or not.
LOGS = st.tuples(
    st.one_of(st.lists(_PLAIN_LINES, max_size=30), st.lists(_LINES, max_size=12)),
    st.sampled_from((b"\n", b"\n", b"\r\n")),
    st.booleans(),
).map(lambda log: log[1].join(log[0]) + (log[1] if log[2] else b""))

TEXTS = (
    "ERROR",
    "error",
    "Er",
    "R",
    "é",
    "größe",
    "k",
    "kiss",
    "Kiss",
    "  ",
    " x",
    "\ufffd",
    "σ",
    "ab1",
    "世",
    "loss=1",
)
REGEXES = (
    "ERR.R", "err?or", "^E", "R$", "^$", "ab|12", "(?i)error", "[A-Z]R", r"\d+", "E.*x", "x*", "loss=[0-9]",
    "(?:ab)+12", r"\AE", r"R\Z", "kiss|error", "größe?", r"\bab", r"\w\d", "é", "s{2}", "[^ ]x", "E R",
    r"\sx", "(?i:k)iss", "[^a]$", r"\s*E", "(?s)R.*x",
)  # fmt: skip


def shown_lines(log: MergedLog) -> list[str]:
    """Return every known line of a log as it is shown."""
    first, end, *_ = log.bounds()
    return [sanitize(line.data).text for line in log.lines(first, end - first)]


def oracle(text: str, *, regex: bool, ignore_case: bool) -> re.Pattern[str]:
    """Return Python's pattern for the same."""
    # These classes know ASCII only.
    expression = re.sub(r"\\[bBdDsSwW]", lambda found: f"(?a:{found[0]})", text) if regex else re.escape(text)
    return re.compile(expression, re.IGNORECASE if ignore_case else 0)
