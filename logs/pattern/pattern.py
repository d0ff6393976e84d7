"""Search patterns: a text or a regular expression, with or without regard to case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text.sanitize import plain
from .engine import PatternEngine, PatternError, make_engine
from .required import Alternatives, parse_regex

# A longer expression, in characters, was pasted by mistake.
_MAX_PATTERN_LENGTH = 2000


@dataclass(frozen=True)
class Pattern:
    """A compiled search pattern; `parse_pattern` makes it.

    Attributes:
        text: the pattern as typed.
        is_regex: whether it is a regular expression, not a literal text.
        ignore_case: whether case is ignored.
        literal: the literal text, if the pattern is one; in lower case if case is ignored.
        requirements: every matching line has at least one text of each entry.
        fold_texts: whether the texts of the requirements are found without regard to case.
        engine: finds it in shown lines.
    """

    text: str
    is_regex: bool
    ignore_case: bool
    literal: str | None
    requirements: tuple[Alternatives, ...]
    fold_texts: bool
    engine: PatternEngine

    def matches(self, line: bytes) -> bool:
        """Tell whether a line matches, as it is shown, in UTF-8.

        Raises:
            CostlyPatternError: it takes too long.
        """
        return self.engine.matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """List the matches in the shown text of a line: starts and ends, in order, none empty.

        Raises:
            CostlyPatternError: it takes too long.
        """
        return self.engine.spans(text)


def parse_pattern(
    text: str, *, regex: bool = False, ignore_case: bool | None = None, longest: int = _MAX_PATTERN_LENGTH
) -> Pattern:
    """Parse a search pattern.

    Args:
        text: a text, or a regular expression in Python's syntax.
        regex: whether it is a regular expression.
        ignore_case: whether case is ignored; if None, it is unless the pattern has an upper-case letter.
        longest: the most characters that it may have.

    Raises:
        PatternError: it is empty, too long, or not a regular expression.
    """
    if not text:
        raise PatternError("there is nothing to search for: type a text")
    if len(text) > longest:
        raise PatternError(f"the pattern has {len(text):,} characters; at most {longest:,} can be searched for")
    return _regex_pattern(text, ignore_case) if regex else _text_pattern(text, ignore_case)


def _text_pattern(text: str, ignore_case: bool | None) -> Pattern:
    # Shown lines have no control characters either.
    wanted = plain(text)
    if not wanted:
        raise PatternError("there is nothing to search for: the text has only characters that are never shown")
    fold = not any(map(str.isupper, wanted)) if ignore_case is None else ignore_case
    fold = fold and wanted.lower() != wanted.upper()
    engine = make_engine(re.escape(wanted), ignore_case=True) if fold else None
    literal = wanted.lower() if fold and wanted.isascii() else None if fold else wanted
    return Pattern(text, False, fold, literal, ((wanted,),), fold, _TextEngine(wanted, engine))


def _regex_pattern(text: str, ignore_case: bool | None) -> Pattern:
    try:
        parsed = parse_regex(text)
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise PatternError(f"{text} is not a regular expression: {error.msg}{where}", error.pos) from None
    except (RecursionError, OverflowError):
        raise PatternError(f"{text} is nested too deeply to be searched for") from None
    fold = not parsed.has_upper if ignore_case is None else ignore_case
    engine = make_engine(text, ignore_case=fold)
    return Pattern(text, True, fold, None, tuple(parsed.requirements), fold or parsed.ignores_case, engine)


class _TextEngine:
    """Finds a text; if case is ignored, lines that are not ASCII are searched by a regular expression."""

    def __init__(self, text: str, case_engine: PatternEngine | None) -> None:
        self._text = text
        self._bytes = text.encode()
        self._lower = self._bytes.lower()
        self._case_engine = case_engine
        self.linear = case_engine is None or case_engine.linear

    def matches(self, line: bytes) -> bool:
        if self._case_engine is None:
            return self._bytes in line
        return self._lower in line.lower() if line.isascii() else self._case_engine.matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        if self._case_engine is not None:
            return self._case_engine.spans(text)
        spans, at, size = [], text.find(self._text), len(self._text)
        while at >= 0:
            spans.append((at, at + size))
            at = text.find(self._text, at + size)
        return spans

    def starts(self, block: bytes) -> Iterator[int]:
        if self._case_engine is not None:
            return self._case_engine.starts(block)
        return _text_starts(block, self._bytes)


def _text_starts(block: bytes, text: bytes) -> Iterator[int]:
    at = block.find(text)
    while at >= 0:
        yield block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        at = block.find(text, end) if end >= 0 else -1
