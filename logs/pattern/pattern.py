"""Search patterns: a text or a regular expression, with or without regard to case.

RE2 searches whole blocks of lines: it takes time linear in the text, and releases the interpreter lock.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...base.errors import TorchXTuiError
from ..text.sanitize import plain

# A longer expression, in characters, was pasted by mistake.
_MAX_PATTERN_LENGTH = 2000
# RE2's cost per byte grows with its program once that outgrows its tables.
_MAX_PROGRAM_SIZE = 4000
# Marks in one line on the screen: finding them must not hold up its keys.
_MAX_SPANS = 1000
# Two lines with a text that are so near each other (bytes) are of a block where it is dense. There one pass of Python's
# engine takes a tenth of the time of a call of RE2 for each line.
_DENSE_GAP = 512
_NO_THIRD_FORM = re.compile("[^kKsS]*")
# Texts of an alternation that are searched for one by one.
_MAX_TEXTS = 5
_TEXT = re.compile(r"[\w ,:;=/@#%&'\"<>~-]+", re.ASCII)
# The start and the end of a text are those of a line here.
_TEXT_ANCHOR = re.compile(r"\\(?:([AZz])|.)", re.DOTALL)
# Parts of an expression whose upper-case letters are no letters to search for.
_SYNTAX = re.compile(r"\\.|\(\?P?<\w+>", re.DOTALL)
# What RE2 names in its refusal of look-around and of back-references.
_NOT_REGULAR = re.compile(r"\(\?(?:[=!]|<[=!]|P)|\\[1-9]")


class PatternError(TorchXTuiError, ValueError):
    """A pattern that cannot be searched for.

    Args:
        reason: what is wrong, as a sentence.
        position: the faulty character of the pattern, counted from 0; None where that is not known.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position


@dataclass(frozen=True)
class Pattern:
    """A compiled search pattern; `parse_pattern` makes it.

    Attributes:
        text: the pattern as typed.
        ignore_case: whether case is ignored.
        literal: the text to find in bytes, in lower case if case is ignored; None for anything else.
        compiled: the pattern as an expression of RE2.
        parts: faster expressions; a line matches if one of them does.
        ascii_parts: whether the parts are for ASCII lines only.
    """

    text: str
    ignore_case: bool
    literal: bytes | None
    compiled: Any
    parts: Sequence[Any]
    ascii_parts: bool

    def matches(self, line: bytes) -> bool:
        """Return whether a shown line matches, in UTF-8."""
        return self.compiled.search(line) is not None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """List the matches in the shown text of a line: starts and ends, in order, none empty."""
        found = (match.span() for match in islice(self.compiled.finditer(text), _MAX_SPANS))
        return [(start, end) for start, end in found if start < end]

    def starts(self, block: bytes) -> list[int]:
        """Return the offsets of the matching lines of a block, in order.

        Args:
            block: shown lines in UTF-8, each with a line feed.
        """
        if self.ascii_parts and not block.isascii():
            return self._starts(block, self.compiled, None)
        if len(self.parts) == 1:
            return self._starts(block, self.parts[0], self.literal)
        return sorted({start for part in self.parts for start in self._starts(block, part, None)})

    def _starts(self, block: bytes, expression: Any, literal: bytes | None) -> list[int]:
        starts: list[int] = []
        position = gap = 0
        while position < len(block):
            if literal and 0 < gap < _DENSE_GAP:
                text = block.lower() if self.ignore_case else block
                found = re.compile(re.escape(literal) + b".*").finditer(text, position)
                return starts + [block.rfind(b"\n", 0, match.start()) + 1 for match in found]
            match = expression.search(block, position)
            if match is None or (at := match.start()) == len(block):
                break
            gap = at - position + 1
            starts.append(block.rfind(b"\n", 0, at) + 1)
            position = block.find(b"\n", at) + 1 or len(block)
        return starts


def parse_pattern(
    text: str, *, regex: bool = False, ignore_case: bool | None = None, longest: int = _MAX_PATTERN_LENGTH
) -> Pattern:
    """Parse a search pattern.

    Args:
        text: a text, or a regular expression.
        regex: whether it is a regular expression.
        ignore_case: whether case is ignored; if None, it is unless the pattern has an upper-case letter.
        longest: the most characters that it may have.

    Raises:
        PatternError: it is empty, too long, or not a regular expression that RE2 supports.
    """
    if not text:
        raise PatternError("there is nothing to search for: type a text")
    if len(text) > longest:
        raise PatternError(f"the pattern has {len(text):,} characters; at most {longest:,} can be searched for")
    # Shown lines have no control characters either.
    wanted = text if regex else plain(text)
    if not wanted:
        raise PatternError("there is nothing to search for: the text has only characters that are never shown")
    if ignore_case is None:
        ignore_case = not any(map(str.isupper, _SYNTAX.sub("", wanted) if regex else wanted))
    if not regex:
        ignore_case = ignore_case and wanted.lower() != wanted.upper()
        literal = None if ignore_case and not wanted.isascii() else (wanted.lower() if ignore_case else wanted).encode()
        return _compiled(text, ignore_case, literal, re.escape(wanted), (re.escape(wanted),))
    expression = _TEXT_ANCHOR.sub(lambda match: {"A": "^", "Z": "$", "z": "$"}.get(match[1], match[0]), text)
    alternatives = text.split("|")
    # RE2 finds a text five times as fast as several at once.
    is_texts = len(alternatives) <= _MAX_TEXTS and all(map(_TEXT.fullmatch, alternatives))
    pattern = _compiled(text, ignore_case, None, expression, alternatives if is_texts else (expression,))
    if pattern.compiled.programsize > _MAX_PROGRAM_SIZE:
        raise PatternError(f"{text} is too large to be searched for: repeat less, or search for a part of it")
    return pattern


def _compiled(text: str, ignore_case: bool, literal: bytes | None, expression: str, parts: Sequence[str]) -> Pattern:
    import re2

    options = re2.Options()
    # No class such as `\s` or `[^x]` matches a line feed, so no match goes beyond its line.
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    # In UTF-8 `k` and `s` have a third form (U+212A, U+017F), which is slower to look for.
    ascii_parts = ignore_case and expression.isascii() and not _NO_THIRD_FORM.fullmatch(expression)
    try:
        compiled = re2.compile(f"(?m){expression}", options)
        if ascii_parts:
            options.encoding = options.Encoding.LATIN1
        found = [re2.compile(f"(?m){part}".encode(), options) for part in parts]
    except re2.error as error:
        raise _refusal(text, error.args[0]) from None
    return Pattern(text, ignore_case, literal, compiled, found, ascii_parts)


def _refusal(text: str, reason: str | bytes) -> PatternError:
    """Return the error for an expression that RE2 refuses, in Python's words where Python refuses it too."""
    try:
        with warnings.catch_warnings():
            # Python warns of a nested set at a POSIX class such as [[:alpha:]].
            warnings.simplefilter("ignore")
            re.compile(text)
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        return PatternError(f"{text} is not a regular expression: {error.msg}{where}", error.pos)
    except (RecursionError, OverflowError):
        return PatternError(f"{text} is nested too deeply to be searched for")
    words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
    refused = words.partition(": ")[2]
    if _NOT_REGULAR.match(refused):
        words = f"look-around and back-references are not supported: {refused}"
    at = text.find(refused) if refused else -1
    if at < 0:
        return PatternError(f"{text} cannot be searched for: {words}")
    return PatternError(f"{text} cannot be searched for: {words} at character {at + 1}", at)
