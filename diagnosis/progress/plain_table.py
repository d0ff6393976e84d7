"""Tables without rules: a header that names the columns, then rows.

fastai, spaCy, skorch and scikit-learn print them so, and Ultralytics, whose rows end with a progress bar.
"""

from __future__ import annotations

import re

_HEADER = re.compile(rb"(?i)\s*(?:epoch|step|iter(?:ation)?|it|e)\s{2,}\S")
_ROW = re.compile(rb"\s*\d+(?:/\d+)?(?:\s+\S+){2,}\s*$")
_BAR = re.compile(rb":\s+\d+%\s.*")
# The header of an evaluation, which is a bar as well, and the row that sums up all classes.
_CLASSES = re.compile(rb"\s*Class\s+Images\s+Instances\s+(\S.*?\)):\s+\d+%")
_ALL_CLASSES = re.compile(rb"\s+all(?:\s+[\d.]+){3,}\s*$")
_COUNTS_OF_CLASSES = 2
_ANSI = re.compile(rb"\x1b\[[\d;]*[mK]")
_METRIC = re.compile(r"(?i)loss|acc|score|error|auc|f1\b|reward|perplexity")
_CELL = re.compile(r"(-?[\d.]+(?:[eE][-+]?\d+)?|nan|-?inf)s?%?")
_NO_NUMBER = re.compile(r"\d+(?::\d\d)+|[\d.]+(?:[smh]|[KMGT]B?)")
_PLACES = {
    "epoch": "epoch",
    "e": "epoch",
    "#": "step",
    "step": "step",
    "iter": "step",
    "iteration": "step",
    "it": "step",
}
_NO_VALUES = re.compile(r"(?i)time|remaining time|eta|elapsed|dur|instances|size")
_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 40


class PlainTable:
    """The table that one replica prints at present, if any."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._first = -1.0
        self._cells: list[str] = []
        self._names_of_classes: list[str] = []

    def read(self, line: bytes) -> dict[str, str] | None:
        """Return the cells of a row by name, with ``step`` and ``epoch``; None for any other line.

        What is read and has no values is empty: a row that only repeats the one before, since its bar is drawn again.
        """
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        if _HEADER.match(line):
            self._begin(line)
            return None
        if (classes := _CLASSES.match(line)) is not None:
            self._names_of_classes = _columns_of_classes(classes[1])
            return {}
        if self._names_of_classes and _ALL_CLASSES.match(line):
            return self._read_classes(line.decode().split()[1 + _COUNTS_OF_CLASSES :])
        if not self._names:
            return None
        row, bars = _BAR.subn(b"", line)
        if not _ROW.match(row):
            return None
        cells = row.decode("utf-8", "replace").split()
        first, _, total = cells[0].partition("/")
        numbers = [_CELL.fullmatch(cell) for cell in (first, *cells[1:])]
        is_row = len(cells) == len(self._names) and all(
            number is not None or _NO_NUMBER.fullmatch(cell) for number, cell in zip(numbers, cells, strict=True)
        )
        # Another table of as many columns would begin anew.
        if not is_row or not first.isdecimal() or float(first) < self._first:
            self._names = []
            return None
        self._first = float(first)
        if bars and cells == self._cells:
            return {}
        self._cells = cells
        values = {
            _PLACES.get(name.lower(), name): number[1]
            for name, number in zip(self._names, numbers, strict=True)
            if number is not None and not _NO_VALUES.fullmatch(name)
        }
        return {**values, "epochs": total} if total and "epoch" in values else values

    def _read_classes(self, cells: list[str]) -> dict[str, str] | None:
        if len(cells) != len(self._names_of_classes):
            return None
        return dict(zip(self._names_of_classes, cells, strict=True))

    def _begin(self, line: bytes) -> None:
        names = [name for name in re.split(r"\s{2,}", line.decode("utf-8", "replace").strip()) if name]
        fits = _FEWEST_COLUMNS <= len(names) <= _MOST_COLUMNS and len(set(names)) == len(names)
        is_header = fits and any(map(_METRIC.search, names)) and not any(re.search(r"[:=]|^\d", name) for name in names)
        self._names, self._first, self._cells = names if is_header else [], -1.0, []


def _columns_of_classes(header: bytes) -> list[str]:
    """Return the names of `Box(P  R  mAP50  mAP50-95)  Mask(P  R ...)`: P, R, ..., Mask P, and so on."""
    names = []
    for place, (group, columns) in enumerate(re.findall(r"(\w+)\(([^)]*)\)", header.decode("utf-8", "replace"))):
        names += [f"eval/{f'{group} ' if place else ''}{column}" for column in columns.split()]
    return names if len(names) <= _MOST_COLUMNS else []
