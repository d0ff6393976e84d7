"""One line of a terminal: cells that later text may overwrite, as ``\\r``, backspace and tabs do."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from .sgr import PLAIN, SgrStyle

TAB = 8
# The second cell of a wide character.
_TAIL = ""


class Span(NamedTuple):
    """A style that holds for ``text[start:end]``; spans do not overlap and none is plain."""

    start: int
    end: int
    style: SgrStyle


@lru_cache(maxsize=4096)
def char_width(char: str) -> int:
    """Return the width of a printable character in cells: 0, 1 or 2."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


class CellLine:
    """The cells of one line and the cursor that writes them.

    Args:
        widest: the most cells; text beyond them is dropped.
    """

    def __init__(self, widest: int) -> None:
        self._widest = widest
        self._chars: list[str] = []
        self._styles: list[SgrStyle] = []
        self._column = 0

    def write(self, text: str, style: SgrStyle) -> None:
        """Write printable text at the cursor, over existing cells."""
        if text.isascii():
            text = text[: max(0, self._widest - self._column)]
            self._put(list(text), style)
            return
        cells: list[str] = []
        for char in text:
            width = char_width(char)
            if width == 0:
                self._combine(cells, char)
            else:
                cells.append(char)
                cells.extend([_TAIL] * (width - 1))
        if self._column + len(cells) > self._widest:
            del cells[max(0, self._widest - self._column) :]
            if cells and char_width(cells[-1][:1] or " ") == 2:
                cells[-1] = " "
        self._put(cells, style)

    def carriage_return(self) -> None:
        """Move the cursor to the first cell."""
        self._column = 0

    def backspace(self) -> None:
        """Move the cursor one cell to the left."""
        self._column = max(0, self._column - 1)

    def tab(self) -> None:
        """Move the cursor to the next tab stop; the cells in between stay."""
        self._column = min(self._widest, (self._column // TAB + 1) * TAB)
        self._pad()

    def erase(self, mode: int) -> None:
        """Erase to the end (0), from the start up to the cursor (1), or the whole line (2); the cursor stays."""
        if mode in (0, 2):
            self._mend(self._column)
            del self._chars[self._column :]
            del self._styles[self._column :]
        if mode in (1, 2):
            count = min(self._column + 1, len(self._chars))
            self._mend(count)
            self._chars[:count] = [" "] * count
            self._styles[:count] = [PLAIN] * count

    def text_and_spans(self) -> tuple[str, tuple[Span, ...]]:
        """Return the line's text and the styles of its parts, in order."""
        chars, styles = self._chars, self._styles
        spans: list[Span] = []
        position = run_start = 0
        run_style = styles[0] if styles else PLAIN
        for char, style in zip(chars, styles, strict=True):
            if style is not run_style and style != run_style:
                if run_style != PLAIN:
                    spans.append(Span(run_start, position, run_style))
                run_start, run_style = position, style
            position += len(char)
        if run_style != PLAIN and position > run_start:
            spans.append(Span(run_start, position, run_style))
        return "".join(chars), tuple(spans)

    def _put(self, cells: list[str], style: SgrStyle) -> None:
        if not cells:
            return
        self._pad()
        start, end = self._column, self._column + len(cells)
        self._mend(start)
        self._mend(end)
        self._chars[start:end] = cells
        self._styles[start:end] = [style] * len(cells)
        self._column = end

    def _pad(self) -> None:
        missing = self._column - len(self._chars)
        if missing > 0:
            self._chars.extend([" "] * missing)
            self._styles.extend([PLAIN] * missing)

    def _mend(self, column: int) -> None:
        """Replace a wide character that an edge at ``column`` would split by spaces."""
        if 0 < column < len(self._chars) and self._chars[column] == _TAIL:
            self._chars[column - 1 : column + 1] = [" ", " "]

    def _combine(self, cells: list[str], mark: str) -> None:
        """Add a combining mark to the character before it; a cell takes a few, since a pile of them is not text."""
        target, index = cells, len(cells) - 1
        if not cells:
            target, index = self._chars, min(self._column, len(self._chars)) - 1
        while index > 0 and target[index] == _TAIL:
            index -= 1
        if index >= 0 and target[index] and len(target[index]) < 5:
            target[index] += mark
