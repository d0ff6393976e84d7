"""The filter of the job table: words and ``column:value`` terms, several together, ``!`` inverts."""

from __future__ import annotations

from collections.abc import Callable

from .job_rows import JobRow, backend_word
from .words import state_word

_COLUMNS: dict[str, Callable[[JobRow], str]] = {
    "state": lambda row: state_word(row.state),
    "name": lambda row: row.name,
    "backend": lambda row: f"{row.scheduler} {backend_word(row.scheduler)}",
    "component": lambda row: row.component,
    "user": lambda row: row.user,
    "image": lambda row: row.image,
    "why": lambda row: row.why,
}


def _everything(row: JobRow) -> str:
    return " ".join(read(row) for read in _COLUMNS.values())


def parse_filter(text: str) -> Callable[[JobRow], bool]:
    """Return the test that a filter text stands for.

    Terms are parted by spaces and must all hold. ``state:failed`` looks at one column, several values parted by
    commas; a bare word looks at all columns; ``!`` before a term inverts it. Case does not matter.
    """
    tests = [_term(term) for term in text.split()]
    return lambda row: all(test(row) for test in tests)


def _term(term: str) -> Callable[[JobRow], bool]:
    inverted = term.startswith("!") and len(term) > 1
    word = term[1:] if inverted else term
    column, colon, value = word.partition(":")
    read = _COLUMNS.get(column.lower()) if colon else None
    values = [part for part in (value if read else word).lower().split(",") if part] or [""]

    def holds(row: JobRow) -> bool:
        shown = (read or _everything)(row).lower()
        return any(part in shown for part in values) != inverted

    return holds
