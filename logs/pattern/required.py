"""The literal texts that every match of a regular expression contains, and finding the lines that have one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _constants as _ops
    from re import _parser as _parse
else:
    import sre_constants as _ops
    import sre_parse as _parse
from collections.abc import Callable

from ..text.shown import LINE_CAP, shown_text

# Every matching line has at least one of these texts.
Alternatives = tuple[str, ...]

_MAX_BRANCHES = 16


MIN_BYTES_PER_CANDIDATE = 600
"""With more than one candidate in so many bytes, the whole text is searched instead."""
_VISIBLE = bytes(range(0x20, 0x7F)) + b"\n"
# `K` and `S` have a third form that is not ASCII: U+212A and U+017F.
_NO_FOLDING_ANCHOR = frozenset("kKsS")


class ParsedRegex(NamedTuple):
    """The result of parsing a regular expression.

    Attributes:
        requirements: every matching line has at least one text of each entry.
        has_upper: whether it has an upper-case letter.
        ignores_case: whether a flag in it ignores case, in all or a part of it.
    """

    requirements: list[Alternatives]
    has_upper: bool
    ignores_case: bool


def parse_regex(text: str) -> ParsedRegex:
    """Parse a regular expression in Python's syntax.

    Raises:
        re.error: it is not valid.
    """
    with warnings.catch_warnings():
        # Python warns of a nested set at a POSIX class such as [[:alpha:]].
        warnings.simplefilter("ignore")
        tree: Any = _parse.parse(text)
    items = list(tree)
    # Python reads a POSIX class as a set and a bracket; the engines do not.
    requirements = [] if "[:" in text else _required(items)
    ignores = bool(tree.state.flags & _ops.SRE_FLAG_IGNORECASE) or _folds(items)
    return ParsedRegex(requirements, _has_upper(items), ignores)


def _required(items: Iterable[tuple[Any, Any]]) -> list[Alternatives]:
    requirements: list[Alternatives] = []
    run: list[str] = []

    def end_run() -> None:
        if run:
            requirements.append(("".join(run),))
            run.clear()

    for op, value in items:
        if op is _ops.LITERAL:
            run.append(chr(value))
            continue
        if op in (_ops.AT, _ops.ASSERT, _ops.ASSERT_NOT):
            continue
        if op is _ops.SUBPATTERN and all(inner is _ops.LITERAL for inner, _ in value[-1]):
            run += [chr(code) for _, code in value[-1]]
            continue
        end_run()
        requirements += _required_of(op, value)
    end_run()
    return requirements


def _required_of(op: Any, value: Any) -> list[Alternatives]:
    """List the requirements of one item that is not a literal."""
    if op is _ops.SUBPATTERN:
        return _required(value[-1])
    if op is getattr(_ops, "ATOMIC_GROUP", None):
        return _required(value)
    if op in _repeats():
        return _required(value[2]) if value[0] >= 1 else []
    if op is _ops.BRANCH and len(value[1]) <= _MAX_BRANCHES:
        texts: list[str] = []
        for branch in value[1]:
            best = max(_required(branch), key=lambda alternatives: min(map(len, alternatives)), default=None)
            if best is None:
                return []
            texts += best
        return [tuple(texts)] if len(texts) <= _MAX_BRANCHES else []
    return []


def _repeats() -> tuple[Any, ...]:
    return (_ops.MAX_REPEAT, _ops.MIN_REPEAT, getattr(_ops, "POSSESSIVE_REPEAT", None))


def _children(op: Any, value: Any) -> list[Iterable[tuple[Any, Any]]]:
    if op is _ops.SUBPATTERN:
        return [value[-1]]
    if op in (_ops.ASSERT, _ops.ASSERT_NOT):
        return [value[1]]
    if op is getattr(_ops, "ATOMIC_GROUP", None):
        return [value]
    if op is _ops.IN:
        return [value]
    if op in _repeats():
        return [value[2]]
    if op is _ops.BRANCH:
        return list(value[1])
    if op is _ops.GROUPREF_EXISTS:
        return [branch for branch in value[1:] if branch is not None]
    return []


def _has_upper(items: Iterable[tuple[Any, Any]]) -> bool:
    for op, value in items:
        if op in (_ops.LITERAL, _ops.NOT_LITERAL) and chr(value).isupper():
            return True
        if op is _ops.RANGE and (chr(value[0]).isupper() or chr(value[1]).isupper()):
            return True
        if any(_has_upper(child) for child in _children(op, value)):
            return True
    return False


def _folds(items: Iterable[tuple[Any, Any]]) -> bool:
    for op, value in items:
        if op is _ops.SUBPATTERN and len(value) == 4 and value[1] & _ops.SRE_FLAG_IGNORECASE:
            return True
        if any(_folds(child) for child in _children(op, value)):
            return True
    return False


class Anchor(NamedTuple):
    """A byte to search for, and the text around it.

    Attributes:
        byte: the byte.
        before: how many bytes of the text come before it.
        text: the text, in lower case if case is ignored; empty if each line with the byte must be examined.
        fold: whether case is ignored.
        visible: bytes that are shown as they are.
    """

    byte: int
    before: int
    text: bytes
    fold: bool
    visible: bytes


class AnchorSet(NamedTuple):
    """Anchors that find every line with one of some texts, and how often they occur in the sample."""

    anchors: tuple[Anchor, ...]
    cost: int


def choose_anchors(requirements: Iterable[Alternatives], fold: bool, sample: bytes) -> tuple[Anchor, ...] | None:
    """Choose the anchors that occur least often; None if all occur too often or there are none.

    Args:
        requirements: every wanted line has at least one text of each entry.
        fold: whether case is ignored.
        sample: bytes from all over the log.
    """
    choices = (
        choice for alternatives in requirements if (choice := _choose_for_any(alternatives, fold, sample)) is not None
    )
    best = min(choices, key=lambda choice: choice.cost, default=None)
    return best.anchors if best is not None and best.cost * MIN_BYTES_PER_CANDIDATE <= len(sample) else None


def candidate_lines(
    data: bytes, anchors: Iterable[Anchor], is_wanted: Callable[[bytes], bool], exact: bool
) -> list[int] | None:
    """List the starts of the wanted lines of a block, in no order; None if there are too many candidates.

    Args:
        data: a block that is not edited (`shown.is_edited`).
        anchors: anchors that find all candidates.
        is_wanted: tells whether a line is wanted, by its shown text in UTF-8.
        exact: whether every line with the text is wanted.
    """
    starts: set[int] = set()
    left = 2 * len(data) // MIN_BYTES_PER_CANDIDATE + 16
    for anchor in anchors:
        at = data.find(anchor.byte)
        while at >= 0:
            left -= 1
            if left < 0:
                return None
            has_text = _compare_around(data, at, anchor)
            if has_text is None:
                at = data.find(anchor.byte, at + 1)
                continue
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            line = data[start:] if end < 0 else data[start:end]
            certain = has_text and exact and len(line) <= LINE_CAP and line.isascii()
            if certain or is_wanted(shown_text(line).encode()):
                starts.add(start)
            at = -1 if end < 0 else data.find(anchor.byte, end)
    return list(starts)


def _compare_around(data: bytes, at: int, anchor: Anchor) -> bool | None:
    """Tell whether the text is around an anchor; False if only the shown line can tell, None if it is not there.

    If the shown text has it and the data has not, then the first byte that differs, seen from the anchor, is one that
    is not shown as it is, at the place of a byte of the text.
    """
    low = at - anchor.before
    window = data[low if low > 0 else 0 : low + len(anchor.text)]
    if not anchor.text:
        return False
    if (window.lower() if anchor.fold else window) == anchor.text:
        return True
    return False if window.translate(None, anchor.visible) else None


def _choose_for_any(alternatives: Alternatives, fold: bool, sample: bytes) -> AnchorSet | None:
    """Choose the anchors for alternative texts; None if one of the texts has none."""
    anchors: list[Anchor] = []
    cost = 0
    for text in alternatives:
        choice = _choose_for_text(text, fold and text.lower() != text.upper(), sample)
        if choice is None:
            return None
        anchors += choice.anchors
        cost += choice.cost
    return AnchorSet(tuple(anchors), cost)


def _choose_for_text(text: str, fold: bool, sample: bytes) -> AnchorSet | None:
    choices = (_anchors_at(text, position, fold, sample) for position in range(len(text)))
    return min((choice for choice in choices if choice is not None), key=lambda choice: choice.cost, default=None)


def _anchors_at(text: str, position: int, fold: bool, sample: bytes) -> AnchorSet | None:
    """Return the anchors for one character of a text; None if it can be shown without being in the data."""
    char = text[position]
    # A space may come from a tab or another space, the replacement character from any faulty byte.
    if char.isspace() or char == "\ufffd" or not char.isprintable():
        return None
    if fold and (not char.isascii() or char in _NO_FOLDING_ANCHOR):
        return None
    visible = _VISIBLE if " " in text else _VISIBLE + b"\t"
    whole = (text.lower() if fold else text).encode() if not fold or text.isascii() else b""
    before = len(text[:position].encode())
    if fold and char.lower() != char.upper():
        both = [ord(char.lower()), ord(char.upper())]
        anchors = tuple(Anchor(byte, before, whole, True, visible) for byte in both)
        return AnchorSet(anchors, sum(map(sample.count, both)))
    encoded = char.encode()
    rarest = min(range(len(encoded)), key=lambda offset: sample.count(encoded[offset]))
    anchor = Anchor(encoded[rarest], before + rarest, whole, fold, visible)
    return AnchorSet((anchor,), sample.count(anchor.byte))
