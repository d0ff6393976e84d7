"""Finds the matching lines of a block, by the method that is fastest for the pattern and the log."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress, islice, repeat
from operator import contains
from typing import Any, Protocol

from ..pattern.pattern import Pattern
from ..pattern.required import candidate_lines, choose_anchors
from ..text.shown import Block, Rendering

# After so many lines with the text in a block, the rest of the block is searched line by line.
_DENSE_MATCHES = 48
# So many further blocks are then searched line by line before the faster way is tried again.
_BLOCKS_LINE_BY_LINE = 15


def finder(data: bytes, text: bytes) -> Callable[[int], int]:
    """Make a function that finds the next occurrence of ``text`` in ``data`` from an offset on; -1 if there is none.

    It releases the interpreter lock while it searches.
    """
    memmem = _memmem()
    if memmem is None:
        return lambda start: data.find(text, start)
    held = ctypes.c_char_p(data)
    base = ctypes.cast(held, ctypes.c_void_p).value or 0
    end, size = base + len(data), len(text)

    def find(start: int, held: ctypes.c_char_p = held) -> int:
        found = memmem(base + start, end - base - start, text, size)
        return -1 if found is None else found - base

    return find


@lru_cache(maxsize=1)
def _memmem() -> Any:
    try:
        function = ctypes.CDLL(None).memmem
    except (OSError, AttributeError, TypeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return function


class Scanner(Protocol):
    """Finds the wanted lines of a block."""

    def count(self, block: Block) -> int:
        """Count the wanted lines of a block."""
        ...

    def numbers(self, block: Block) -> Sequence[int]:
        """List the wanted lines of a block by their numbers in it, from 0, in order."""
        ...

    def starts(self, block: Block) -> list[int] | None:
        """List the offsets of a block's wanted lines, in no order; None if that takes more than one scan."""
        ...


class PatternScanner:
    """Finds the lines that match a pattern.

    Args:
        pattern: the pattern.
        sample: bytes from all over the log, from which its rarest bytes are estimated.
    """

    def __init__(self, pattern: Pattern, sample: bytes) -> None:
        self._pattern = pattern
        self._anchors = choose_anchors(pattern.requirements, pattern.fold_texts, sample)
        self._exact = pattern.literal is not None
        self._dense_left = 0
        self._text, self._fold = _plain_text(pattern)
        # The empty group keeps findall from copying the rest of each line.
        self._each_line = re.compile(re.escape(self._text) + b".*()")

    def count(self, block: Block) -> int:
        """See `Scanner`."""
        data, starts, rest = self._scan(block)
        return len(starts) if rest < 0 else len(starts) + len(self._each_line.findall(data, rest))

    def numbers(self, block: Block) -> Sequence[int]:
        """See `Scanner`."""
        data, starts, rest = self._scan(block)
        numbers: list[int] = []
        line = position = 0
        for start in sorted(starts):
            line += data.count(b"\n", position, start)
            position = start
            numbers.append(line)
        if rest >= 0:
            line += data.count(b"\n", position, rest)
            numbers += compress(range(line, block.lines), map(contains, data[rest:].split(b"\n"), repeat(self._text)))
        return numbers

    def starts(self, block: Block) -> list[int] | None:
        """See `Scanner`."""
        if self._anchors is None or block.rendering == Rendering.EDITED:
            return None
        return candidate_lines(block.data, self._anchors, self._pattern.matches, self._exact)

    def _scan(self, block: Block) -> tuple[bytes, list[int], int]:
        """Return lines, the starts of wanted ones, and the offset from which lines must be searched one by one."""
        starts = self.starts(block)
        if starts is not None:
            return block.data, starts, -1
        shown = block.shown()
        if not self._text or (self._fold and not shown.isascii()):
            return shown, list(self._pattern.engine.starts(shown)), -1
        starts, rest = [], 0
        if self._dense_left > 0:
            self._dense_left -= 1
        else:
            starts, rest = self._by_text(shown)
            self._dense_left = _BLOCKS_LINE_BY_LINE if rest >= 0 else 0
        if rest < 0:
            return shown, starts, rest
        if self._exact:
            return shown.lower() if self._fold else shown, starts, rest
        return shown, list(self._pattern.engine.starts(shown)), -1

    def _by_text(self, shown: bytes) -> tuple[list[int], int]:
        """Find the text that the pattern requires; stop where it becomes dense."""
        engine = self._pattern.engine
        if self._exact and self._fold and engine.linear:
            # RE2 needs no copy in lower case.
            starts = list(islice(engine.starts(shown), _DENSE_MATCHES))
            return starts, shown.find(b"\n", starts[-1]) + 1 or -1 if len(starts) == _DENSE_MATCHES else -1
        find = finder(shown.lower() if self._fold else shown, self._text)
        starts = []
        tries = 0
        at = find(0)
        while at >= 0:
            start, end = shown.rfind(b"\n", 0, at) + 1, shown.find(b"\n", at)
            if self._exact or engine.matches(shown[start:] if end < 0 else shown[start:end]):
                starts.append(start)
            if end < 0:
                break
            tries += 1
            if tries >= _DENSE_MATCHES:
                return starts, end + 1
            at = find(end)
        return starts, -1


def _plain_text(pattern: Pattern) -> tuple[bytes, bool]:
    """Return the longest text that the pattern requires, and whether it is lowered to match any case."""
    texts = [alternatives[0] for alternatives in pattern.requirements if len(alternatives) == 1]
    text = max(texts, key=len, default="")
    fold = pattern.fold_texts and text.lower() != text.upper()
    if fold and not text.isascii():
        return b"", False
    return (text.lower() if fold else text).encode(), fold
