"""Runs regular expressions that anybody may type: none can take for ever, and none holds up other threads.

RE2 runs in time linear in the text and takes most expressions. What it does not take (references back to a group,
look-around, possessive repeats) the `regex` module runs, which gives up at a time limit. Both release the interpreter
lock while they search.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Protocol

from ...specs.errors import TorchXTuiError

# Seconds for one line, and for the lines of one block, before an expression is called too costly.
LINE_SECONDS = 0.2
BLOCK_SECONDS = 1.0
# Seconds for where it is in one line, which is asked while the line is drawn.
MARK_SECONDS = 0.02
# RE2's cost for a byte grows with its program once that outgrows its tables.
_MOST_PROGRAM = 4000
# RE2 knows letters, digits, spaces and the edges of words of ASCII alone.
_ASCII_CLASS = re.compile(r"\\[bBdDsSwW]")


class PatternError(TorchXTuiError, ValueError):
    """A pattern that cannot be searched for.

    Args:
        reason: what is wrong, as a sentence.
        position: which character of the pattern is at fault, counted from 0; None where that is not known.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position


class CostlyPatternError(PatternError):
    """A regular expression takes too long on a line of the log."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the search for {pattern} was stopped: it takes too long on some line. "
            "Take away a repeat within a repeat, such as (a+)+, or a reference back"
        )


class Engine(Protocol):
    """Finds an expression in lines that are as shown, in UTF-8.

    Attributes:
        linear: it takes time linear in the text, and little of it.
    """

    linear: bool

    def matches(self, line: bytes) -> bool:
        """Whether it is in a line."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where it is in a line's text."""
        ...

    def starts(self, block: bytes) -> Iterator[int]:
        """Yield where the lines with it start in a block."""
        ...


def make_engine(expression: str, *, ignore_case: bool) -> Engine:
    """Return what finds a regular expression.

    Raises:
        PatternError: neither engine takes it.
    """
    linear = _linear(expression, ignore_case)
    if linear is None:
        return _Timed(expression, ignore_case)
    return _Mixed(linear, _Timed(expression, ignore_case)) if _ASCII_CLASS.search(expression) else linear


def _linear(expression: str, ignore_case: bool) -> Engine | None:
    try:
        import re2
    except ImportError:
        # There is no wheel for some systems; the other engine does all of it, slower.
        return None
    options = re2.Options()
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        compiled = re2.compile(f"(?m:{expression})", options)
    except re2.error:
        return None
    return _Linear(compiled) if compiled.programsize <= _MOST_PROGRAM else None


class _Linear:
    linear = True

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, line: bytes) -> bool:
        return self._compiled.search(line) is not None

    def spans(self, text: str) -> list[tuple[int, int]]:
        if text.isascii():
            return [match.span() for match in self._compiled.finditer(text.encode()) if match.end() > match.start()]
        return [match.span() for match in self._compiled.finditer(text) if match.end() > match.start()]

    def starts(self, block: bytes) -> Iterator[int]:
        search = self._compiled.search
        position, size = 0, len(block)
        while position < size:
            match = search(block, position)
            if match is None or (match.start() >= size and block.endswith(b"\n")):
                return
            at = match.start()
            yield block.rfind(b"\n", 0, at) + 1
            position = block.find(b"\n", at) + 1 or size


class _Mixed:
    """RE2 for lines that are ASCII, the other engine for those with letters that RE2 takes for none."""

    linear = True

    def __init__(self, linear: Engine, timed: Engine) -> None:
        self._linear = linear
        self._timed = timed

    def matches(self, line: bytes) -> bool:
        return (self._linear if line.isascii() else self._timed).matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        return (self._linear if text.isascii() else self._timed).spans(text)

    def starts(self, block: bytes) -> Iterator[int]:
        return (self._linear if block.isascii() else self._timed).starts(block)


class _Timed:
    linear = False

    def __init__(self, expression: str, ignore_case: bool) -> None:
        import regex

        compiling: Any = regex
        self._expression = expression
        try:
            self._compiled = compiling.compile(expression, compiling.IGNORECASE if ignore_case else 0)
        except compiling.error as error:
            raise PatternError(f"{expression} is no regular expression: {error.msg}", error.pos) from None

    def matches(self, line: bytes) -> bool:
        return self._search(line.decode())

    def spans(self, text: str) -> list[tuple[int, int]]:
        found = []
        try:
            for match in self._compiled.finditer(text, timeout=MARK_SECONDS, concurrent=True):
                if match.end() > match.start():
                    found.append(match.span())
        except TimeoutError:
            raise CostlyPatternError(self._expression) from None
        return found

    def starts(self, block: bytes) -> Iterator[int]:
        deadline = time.monotonic() + BLOCK_SECONDS
        start = 0
        for line in block.removesuffix(b"\n").split(b"\n") if block else ():
            if self._search(line.decode()):
                yield start
            if time.monotonic() > deadline:
                raise CostlyPatternError(self._expression)
            start += len(line) + 1

    def _search(self, text: str) -> bool:
        try:
            return self._compiled.search(text, timeout=LINE_SECONDS, concurrent=True) is not None
        except TimeoutError:
            raise CostlyPatternError(self._expression) from None
