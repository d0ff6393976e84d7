"""Tables without rules, as fastai, spaCy, skorch and scikit-learn print them: a header that names the columns, then rows."""

from __future__ import annotations

import re

_HEADER = re.compile(rb"(?i)\s*(?:epoch|step|iter(?:ation)?|it|e)\s{2,}\S")
_ROW = re.compile(rb"\s*\d+(?:\s+\S+){2,}\s*$")
_ANSI = re.compile(rb"\x1b\[[\d;]*[mK]")
_METRIC = re.compile(r"(?i)loss|acc|score|error|auc|f1\b|reward|perplexity")
_CELL = re.compile(r"(-?[\d.]+(?:[eE][-+]?\d+)?|nan|-?inf)s?%?")
_CLOCK = re.compile(r"\d+(?::\d\d)+|[\d.]+[smh]")
_PLACES = {
    "epoch": "epoch",
    "e": "epoch",
    "#": "step",
    "step": "step",
    "iter": "step",
    "iteration": "step",
    "it": "step",
}
_NO_VALUES = re.compile(r"(?i)time|remaining time|eta|elapsed|dur")
_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 40


class PlainTable:
    """The table that one replica prints at present, if any."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._first = -1.0

    def read(self, line: bytes) -> dict[str, str] | None:
        """Return the cells of a row by name, with ``step`` and ``epoch``; None for any other line."""
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        if _HEADER.match(line):
            self._begin(line)
            return None
        if not self._names or not _ROW.match(line):
            return None
        cells = line.decode("utf-8", "replace").split()
        numbers = [_CELL.fullmatch(cell) for cell in cells]
        is_row = len(cells) == len(self._names) and all(
            number is not None or _CLOCK.fullmatch(cell) for number, cell in zip(numbers, cells, strict=True)
        )
        # Another table of as many columns would begin anew.
        if not is_row or not cells[0].isdecimal() or float(cells[0]) < self._first:
            self._names = []
            return None
        self._first = float(cells[0])
        return {
            _PLACES.get(name.lower(), name): number[1]
            for name, number in zip(self._names, numbers, strict=True)
            if number is not None and not _NO_VALUES.fullmatch(name)
        }

    def _begin(self, line: bytes) -> None:
        names = [name for name in re.split(r"\s{2,}", line.decode("utf-8", "replace").strip()) if name]
        fits = _FEWEST_COLUMNS <= len(names) <= _MOST_COLUMNS and len(set(names)) == len(names)
        is_header = fits and any(map(_METRIC.search, names)) and not any(re.search(r"[:=]|^\d", name) for name in names)
        self._names, self._first = names if is_header else [], -1.0
