"""Tables without rules: a header line of names, then lines of as many numbers.

fastai, spaCy, skorch, scikit-learn, DEAP, vowpal wabbit and nerfstudio print them, CSV on the standard output is one,
and so is Ultralytics', whose rows end with a progress bar.
"""

from __future__ import annotations

import math
import re

_ANSI = re.compile(r"\x1b\[[\d;]*[mK]")
_HEADER = re.compile(r"(?i)\s*(?:epoch|step|iter(?:ation)?|it|e)\s{2,}\S")
_BAR = re.compile(r":\s+\d+%[\s|].*")
_ROW = re.compile(r"\s*[\d.]+(?:/\d+)?[,\s]")
_RULE = re.compile(r"[-=+\s]*")
_CELL = re.compile(r"(-?[\d.]+(?:[eE][-+]?\d+)?|nan|-?inf)(?:\s?s|%|\s\([\d.]+%\))?")
_NO_NUMBER = re.compile(r"\d+(?::\d\d)+(?:\.\d+)?|[\d.]+\s?(?:[smh]|ms|[KMG]B?)(?:, .*)?|-|n/a")
_SEPARATORS = (re.compile(r"\s{2,}|\t"), re.compile(r"\s+"), re.compile(r"\s*,\s*"))
_POSITION = {"epoch": "epoch", "e": "epoch", "#": "step", "gen": "step", "generation": "step", "episode": "step",
             "step": "step", "iter": "step", "iteration": "step", "it": "step", "step (% done)": "step"}  # fmt: skip
_NO_METRIC = re.compile(
    r"(?i)time|(?:remaining|iter(?:ation)?) time|eta.*|elapsed|dur|instances|size|nevals|.*\(time\)"
)
# Spares most lines the rest.
may_be_row = re.compile(
    rb"(?:\s|\x1b\[[\d;]*[mK])*(?:[\d.]|all\s|Class\s|(?i:epoch|step|iter(?:ation)?|it|e)\s{2})"
).match
_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 40
# The header of Ultralytics' evaluation, which is a bar as well, and its row for all classes.
_CLASSES = re.compile(r"\s*Class\s+Images\s+Instances\s+(\S.*?\)):\s+\d+%")
_ALL_CLASSES = re.compile(r"\s+all(?:\s+[\d.]+){3,}\s*$")
# Lines and bytes before a row in which its header may be.
_HEADER_LINES, HEADER_BYTES = 3, 1024


class Table:
    """The table that one replica prints at present, if any."""

    def __init__(self) -> None:
        self._header = ""
        self._names: list[str] = []
        self._separator = _SEPARATORS[0]
        self._first = 0.0
        self._cells: list[str] = []
        self._class_names: list[str] = []

    def read(self, line: bytes, before: bytes) -> dict[str, str] | None:
        """Return the cells of a row by name, with ``step`` and ``epoch``; None for any other line.

        A row that repeats the one before, because its progress bar is drawn again, has no cells.

        Args:
            line: the line.
            before: what was printed before it, up to `HEADER_BYTES`.
        """
        text = line.decode("utf-8", "replace")
        text = _ANSI.sub("", text) if "\x1b" in text else text
        if _HEADER.match(text):
            self._header, self._names = text, []
            return None
        if (classes := _CLASSES.match(text)) is not None:
            self._class_names = _class_columns(classes[1])
            return {}
        if self._class_names and _ALL_CLASSES.match(text):
            cells = text.split()[3:]
            return dict(zip(self._class_names, cells, strict=True)) if len(cells) == len(self._class_names) else None
        if not _ROW.match(text):
            return None
        row, bars = _BAR.subn("", text)
        cells = self._split(row)
        if len(cells) != len(self._names) or (_number(cells[0]) < self._first and self._names[0].lower() in _POSITION):
            cells = self._find_header(row, before)
        if not cells:
            return None
        self._first = _number(cells[0])
        if bars and cells == self._cells:
            return {}
        self._cells = cells
        first, _, total = cells[0].partition("/")
        values = {}
        for name, cell in zip(self._names, (first, *cells[1:]), strict=True):
            if (number := _CELL.fullmatch(cell)) is not None and not _NO_METRIC.fullmatch(name):
                values[_POSITION.get(name.lower(), name)] = number[1]
        return {**values, "epochs": total} if total and "epoch" in values else values

    def _split(self, text: str) -> list[str]:
        return [cell for cell in self._separator.split(text.strip()) if cell]

    def _find_header(self, row: str, before: bytes) -> list[str]:
        """Find the header of a first row; return the row's cells, none if it is no row."""
        self._names = []
        lines = before.decode("utf-8", "replace").splitlines()[-_HEADER_LINES:]
        near = next((line for line in reversed(lines) if not _RULE.fullmatch(line)), "")
        for header in (self._header, _ANSI.sub("", near)):
            for self._separator in _SEPARATORS:
                names, cells = self._split(header), self._split(row)
                if len(names) == len(cells) and _is_header(names) and all(map(_is_cell, cells)):
                    self._names, self._cells = names, []
                    return cells
        return []


def _number(cell: str) -> float:
    number = _CELL.fullmatch(cell.partition("/")[0])
    return float(number[1]) if number else math.nan


def _is_cell(cell: str) -> bool:
    return _CELL.fullmatch(cell.partition("/")[0]) is not None or _NO_NUMBER.fullmatch(cell) is not None


def _is_header(names: list[str]) -> bool:
    fits = _FEWEST_COLUMNS <= len(names) <= _MOST_COLUMNS and len(set(names)) == len(names)
    return fits and all(re.search(r"[^\W\d]|#", name) and not re.search(r"[:=]|^\d", name) for name in names)


def _class_columns(header: str) -> list[str]:
    """Return the names of `Box(P  R  mAP50  mAP50-95)  Mask(P  R ...)`: P, R, ..., Mask P, and so on."""
    names = []
    for place, (group, columns) in enumerate(re.findall(r"(\w+)\(([^)]*)\)", header)):
        names += [f"eval/{f'{group} ' if place else ''}{column}" for column in columns.split()]
    return names if len(names) <= _MOST_COLUMNS else []
