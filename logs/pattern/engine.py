"""Runs untrusted regular expressions: none can take for ever, and none blocks other threads.

RE2 runs in time linear in the text and supports most expressions. The others (backreferences, look-around, possessive
repeats) are run by the `regex` module, which gives up at a time limit. Both release the interpreter lock while they
search.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Protocol

from ...base.errors import TorchXTuiError

# Time limits (s) for one line, and for the lines of one block, after which an expression is too costly.
LINE_LIMIT_S = 0.2
BLOCK_LIMIT_S = 1.0
# Time limit (s) for the matches in one line, which are needed while the line is drawn.
MARK_LIMIT_S = 0.02
# RE2's cost per byte grows with its program once that outgrows its tables.
_MAX_PROGRAM_SIZE = 4000
# In RE2 these classes, and word boundaries, know ASCII only.
_ASCII_CLASS = re.compile(r"\\[bBdDsSwW]")


class PatternError(TorchXTuiError, ValueError):
    """A pattern that cannot be searched for.

    Args:
        reason: what is wrong, as a sentence.
        position: the faulty character of the pattern, counted from 0; None where that is not known.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position


class CostlyPatternError(PatternError):
    """A regular expression takes too long on a line of the log."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the search for {pattern} was stopped: it takes too long on some line. "
            "Remove a nested repeat, such as (a+)+, or a backreference"
        )


class PatternEngine(Protocol):
    """Finds an expression in shown lines, in UTF-8.

    Attributes:
        linear: it takes little time, linear in the text.
    """

    linear: bool

    def matches(self, line: bytes) -> bool:
        """Tell whether a line matches."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """List the matches in a line's text."""
        ...

    def starts(self, block: bytes) -> Iterator[int]:
        """Yield the starts of the matching lines of a block."""
        ...


def make_engine(expression: str, *, ignore_case: bool) -> PatternEngine:
    """Make the engine for a regular expression.

    Raises:
        PatternError: no engine supports it.
    """
    linear = _make_re2_engine(expression, ignore_case)
    if linear is None:
        return _TimeLimitedEngine(expression, ignore_case)
    return (
        _AsciiOrUnicodeEngine(linear, _TimeLimitedEngine(expression, ignore_case))
        if _ASCII_CLASS.search(expression)
        else linear
    )


def _make_re2_engine(expression: str, ignore_case: bool) -> PatternEngine | None:
    try:
        import re2
    except ImportError:
        # There is no wheel for some systems; there the other engine does all of it, more slowly.
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
    return _Re2Engine(compiled) if compiled.programsize <= _MAX_PROGRAM_SIZE else None


class _Re2Engine:
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


class _AsciiOrUnicodeEngine:
    """Uses RE2 for ASCII lines, and the other engine for lines with letters that RE2's classes do not know."""

    linear = True

    def __init__(self, linear: PatternEngine, timed: PatternEngine) -> None:
        self._re2 = linear
        self._time_limited = timed

    def matches(self, line: bytes) -> bool:
        return (self._re2 if line.isascii() else self._time_limited).matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        return (self._re2 if text.isascii() else self._time_limited).spans(text)

    def starts(self, block: bytes) -> Iterator[int]:
        return (self._re2 if block.isascii() else self._time_limited).starts(block)


class _TimeLimitedEngine:
    linear = False

    def __init__(self, expression: str, ignore_case: bool) -> None:
        import regex

        compiling: Any = regex
        self._expression = expression
        try:
            self._compiled = compiling.compile(expression, compiling.IGNORECASE if ignore_case else 0)
        except compiling.error as error:
            raise PatternError(f"{expression} is not a regular expression: {error.msg}", error.pos) from None

    def matches(self, line: bytes) -> bool:
        return self._search(line.decode())

    def spans(self, text: str) -> list[tuple[int, int]]:
        spans = []
        try:
            for match in self._compiled.finditer(text, timeout=MARK_LIMIT_S, concurrent=True):
                if match.end() > match.start():
                    spans.append(match.span())
        except TimeoutError:
            raise CostlyPatternError(self._expression) from None
        return spans

    def starts(self, block: bytes) -> Iterator[int]:
        deadline = time.monotonic() + BLOCK_LIMIT_S
        start = 0
        for line in block.removesuffix(b"\n").split(b"\n") if block else ():
            if self._search(line.decode()):
                yield start
            if time.monotonic() > deadline:
                raise CostlyPatternError(self._expression)
            start += len(line) + 1

    def _search(self, text: str) -> bool:
        try:
            return self._compiled.search(text, timeout=LINE_LIMIT_S, concurrent=True) is not None
        except TimeoutError:
            raise CostlyPatternError(self._expression) from None
