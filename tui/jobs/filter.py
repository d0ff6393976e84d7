"""Which jobs the table shows: one backend or all, mine or everybody's, those that a filter lets through."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ...base.errors import TorchXTuiError
from ..format import state_word
from ..rows import JobRow, backend_word

_COLUMNS: dict[str, Callable[[JobRow], str]] = {
    "state": lambda row: state_word(row.state),
    "name": lambda row: row.name,
    "backend": lambda row: f"{row.scheduler} {backend_word(row.scheduler)} {backend_word(row.scheduler, long=True)}",
    "component": lambda row: row.component,
    "arguments": lambda row: row.arguments,
    "user": lambda row: row.user,
    "image": lambda row: row.image,
    "kind": lambda row: row.kind,
    "why": lambda row: row.why,
    "group": lambda row: row.group,
}

Test = Callable[[JobRow], bool]
_AGE = re.compile(r"([<>])(\d{1,6})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class FilterError(TorchXTuiError, ValueError):
    """A term of a filter that cannot be understood."""


def parse_filter(text: str) -> Test:
    """Return the test that a filter text stands for.

    Terms are separated by spaces and must all hold. ``state:failed`` searches one column, several values separated
    by commas; ``age:>7d`` or ``age:<2h`` compares the age; ``name~^llama.*sft`` finds a regular expression in a
    column; ``~lmsft`` finds its letters in a name, in order, with any between them; a bare word searches all columns;
    ``!`` before a term inverts it. Case does not matter.

    Raises:
        FilterError: a term names no column, or holds no regular expression.
    """
    tests = [_term(term) for term in text.split()]
    return lambda row: all(test(row) for test in tests)


def _term(term: str) -> Test:
    if term.startswith("!") and len(term) > 1:
        test = _positive(term[1:])
        return lambda row: not test(row)
    return _positive(term)


def _positive(term: str) -> Test:
    column, glyph, value = _parted(term)
    if column == "age":
        return _age(value)
    if glyph == ":":
        return _any_of(_COLUMNS[column], value)
    if glyph == "~":
        return _pattern(_COLUMNS[column], value) if column else _letters(value)
    values = [part for part in term.lower().split(",") if part] or [""]
    return lambda row: any(value in row.searched for value in values)


def _parted(term: str) -> tuple[str, str, str]:
    """Return a term's column, glyph and value; no glyph where it is a word."""
    found = [at for at in (term.find(":"), term.find("~")) if at >= 0]
    at = min(found, default=-1)
    if at < 0 or (at == 0 and term[0] == ":"):
        return "", "", term
    column = term[:at].lower()
    if column in _COLUMNS or not column or (column == "age" and term[at] == ":"):
        return column, term[at], term[at + 1 :]
    if term[at] == "~":
        raise FilterError(f"{column} is not a column: {', '.join(_COLUMNS)}")
    return "", "", term


def _age(text: str) -> Test:
    if text in ("", "<", ">") or text[1:].isdigit():
        return lambda _: True  # it is being typed
    parsed = _AGE.fullmatch(text)
    if parsed is None:
        raise FilterError(f"age:{text} is not an age: use age:>7d or age:<2h, with s, m, h, d or w")
    is_past = operator.gt if parsed[1] == ">" else operator.lt
    limit = int(parsed[2]) * _UNITS[parsed[3]]

    def holds(row: JobRow) -> bool:
        seconds = row.age_seconds()
        return seconds is not None and is_past(seconds, limit)

    return holds


def _any_of(read: Callable[[JobRow], str], text: str) -> Test:
    values = [part for part in text.lower().split(",") if part] or [""]

    def holds(row: JobRow) -> bool:
        shown = read(row).lower()
        return any(value in shown for value in values)

    return holds


def _pattern(read: Callable[[JobRow], str], expression: str) -> Test:
    if not expression:
        return lambda _: True
    # Loaded only for the one filter that needs it: it takes part of the first paint.
    from ...logs.pattern.pattern import PatternError, parse_pattern

    try:
        pattern = parse_pattern(expression, regex=True, ignore_case=True)
    except PatternError as error:
        raise FilterError(str(error)) from None
    return lambda row: pattern.matches(read(row).encode())


def _letters(text: str) -> Test:
    letters = text.lower()

    def holds(row: JobRow) -> bool:
        left = iter(row.name.lower())
        return all(letter in left for letter in letters)

    return holds


@dataclass(frozen=True)
class JobView:
    """A choice of jobs.

    Attributes:
        backend: the scheduler whose jobs are shown, None for all.
        filter: the filter as typed; see `parse_filter`.
        user: whose jobs are shown, empty for all that are listed.
        everybody: whether backends list the jobs of other users, which they do not do by themselves.
        torchx_only: leave out what TorchX did not launch.
        history: show launches that no backend knows any more.
    """

    backend: str | None = None
    filter: str = ""
    user: str = ""
    everybody: bool = False
    torchx_only: bool = True
    history: bool = False
    _test: Callable[[JobRow], bool] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Parsed once: it is asked of every row.
        object.__setattr__(self, "_test", parse_filter(self.filter))

    def has(self, row: JobRow) -> bool:
        """Whether a job is shown."""
        return (
            self.backend in (None, row.scheduler)
            and (self.history or not row.history)
            and not (self.torchx_only and row.foreign and not self.everybody)
            and (not self.user or row.user == self.user)
            and self._test(row)
        )

    @property
    def words(self) -> list[str]:
        """What is left out or added beside the filter, in words."""
        found = [f"only {self.user}'s"] if self.user else ["everybody's"] if self.everybody else []
        if not self.torchx_only:
            found.append("not only TorchX's")
        return [*found, "with history"] if self.history else found
