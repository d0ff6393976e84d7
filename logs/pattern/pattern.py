"""What a person searches for: a text or a regular expression, with or without regard to case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text.sanitize import plain
from .engine import Engine, PatternError, make_engine
from .required import OneOf, parse_regex

# An expression longer than this is a paste by mistake.
_LONGEST = 2000


@dataclass(frozen=True)
class Pattern:
    """A pattern that can be searched for; `parse_pattern` makes it.

    Attributes:
        text: as it was typed.
        is_regex: a regular expression; else the text itself is looked for.
        ignore_case: upper-case and lower-case letters are the same.
        literal: the text to find, where the pattern is nothing more; in lower case where case does not count.
        requirements: of each entry one text is in every line that matches.
        fold_texts: the texts of the requirements are to be found without regard to case.
        engine: finds it in shown lines.
    """

    text: str
    is_regex: bool
    ignore_case: bool
    literal: str | None
    requirements: tuple[OneOf, ...]
    fold_texts: bool
    engine: Engine

    def matches(self, line: bytes) -> bool:
        """Whether the pattern is in a line, as it is shown, in UTF-8.

        Raises:
            CostlyPatternError: it takes too long.
        """
        return self.engine.matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the pattern is in the shown text of a line: starts and ends, in order, none empty.

        Raises:
            CostlyPatternError: it takes too long.
        """
        return self.engine.spans(text)


def parse_pattern(
    text: str, *, regex: bool = False, ignore_case: bool | None = None, longest: int = _LONGEST
) -> Pattern:
    """Read what was typed.

    Args:
        text: a text, or a regular expression in Python's syntax.
        regex: whether it is a regular expression.
        ignore_case: whether case counts; without it, it counts if there is an upper-case letter in the pattern.
        longest: how many characters it may have.

    Raises:
        PatternError: there is nothing to search for, or it is no regular expression.
    """
    if not text:
        raise PatternError("there is nothing to search for: type a text")
    if len(text) > longest:
        raise PatternError(f"the pattern has {len(text):,} characters; at most {longest:,} can be searched for")
    return _regex_pattern(text, ignore_case) if regex else _text_pattern(text, ignore_case)


def _text_pattern(text: str, ignore_case: bool | None) -> Pattern:
    # Lines hold no controls either once they are shown.
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
        raise PatternError(f"{text} is no regular expression: {error.msg}{where}", error.pos) from None
    except (RecursionError, OverflowError):
        raise PatternError(f"{text} is nested too deeply to be searched for") from None
    fold = not parsed.has_upper if ignore_case is None else ignore_case
    engine = make_engine(text, ignore_case=fold)
    return Pattern(text, True, fold, None, tuple(parsed.requirements), fold or parsed.ignores_case, engine)


class _TextEngine:
    """Finds a text; where case does not count, by an expression for what is not ASCII."""

    def __init__(self, text: str, folding: Engine | None) -> None:
        self._text = text
        self._bytes = text.encode()
        self._lower = self._bytes.lower()
        self._folding = folding
        self.linear = folding is None or folding.linear

    def matches(self, line: bytes) -> bool:
        if self._folding is None:
            return self._bytes in line
        return self._lower in line.lower() if line.isascii() else self._folding.matches(line)

    def spans(self, text: str) -> list[tuple[int, int]]:
        if self._folding is not None:
            return self._folding.spans(text)
        found, at, size = [], text.find(self._text), len(self._text)
        while at >= 0:
            found.append((at, at + size))
            at = text.find(self._text, at + size)
        return found

    def starts(self, block: bytes) -> Iterator[int]:
        if self._folding is not None:
            return self._folding.starts(block)
        return _text_starts(block, self._bytes)


def _text_starts(block: bytes, text: bytes) -> Iterator[int]:
    at = block.find(text)
    while at >= 0:
        yield block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        at = block.find(text, end) if end >= 0 else -1
