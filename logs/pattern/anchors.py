"""Finds the lines that may hold a text by the text's rarest byte: one memchr for most of a log.

GNU grep does the same; `bytes.find` of a whole text goes three to five times slower through a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..text.shown import LINE_CAP, shown_text
from .required import OneOf

# More than one candidate in so many bytes, and the whole text is looked for instead.
_SPARSE = 600
_VISIBLE = bytes(range(0x20, 0x7F)) + b"\n"
# `K` and `S` have a third form that is not ASCII: U+212A and U+017F.
_NO_FOLDING_ANCHOR = frozenset("kKsS")


class Anchor(NamedTuple):
    """A byte to look for, and what stands around it where the text is.

    Attributes:
        byte: the byte.
        before: bytes of the text before it.
        text: the text, in lower case where case does not count; empty where each line with the byte is looked at.
        fold: case does not count.
        visible: bytes that hide nothing between the characters of the text.
    """

    byte: int
    before: int
    text: bytes
    fold: bool
    visible: bytes


class Choice(NamedTuple):
    """Anchors that find every line with one of some texts, and how many bytes of the sample they hit."""

    anchors: tuple[Anchor, ...]
    cost: int


def choose_anchors(requirements: Iterable[OneOf], fold: bool, sample: bytes) -> tuple[Anchor, ...] | None:
    """Return the anchors that hit least often, None if all hit too often or there are none.

    Args:
        requirements: texts; of each entry one is in every line that is wanted.
        fold: case does not count.
        sample: bytes from all over the log.
    """
    choices = (choice for one_of in requirements if (choice := _choose(one_of, fold, sample)) is not None)
    best = min(choices, key=lambda choice: choice.cost, default=None)
    return best.anchors if best is not None and best.cost * _SPARSE <= len(sample) else None


def candidate_lines(
    data: bytes, anchors: Iterable[Anchor], is_wanted: Callable[[bytes], bool], exact: bool
) -> list[int] | None:
    """Return where the wanted lines of a block start, in no order; None if there are too many candidates.

    Args:
        data: a block that is not edited (`shown.is_edited`).
        anchors: what finds all candidates.
        is_wanted: tells of a line's shown text, in UTF-8, whether it is wanted.
        exact: a line is wanted if the text is in it.
    """
    starts: set[int] = set()
    left = 2 * len(data) // _SPARSE + 16
    for anchor in anchors:
        at = data.find(anchor.byte)
        while at >= 0:
            left -= 1
            if left < 0:
                return None
            found = _compare(data, at, anchor)
            if found is None:
                at = data.find(anchor.byte, at + 1)
                continue
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            line = data[start:] if end < 0 else data[start:end]
            if (found and exact and len(line) <= LINE_CAP and line.isascii()) or is_wanted(shown_text(line).encode()):
                starts.add(start)
            at = -1 if end < 0 else data.find(anchor.byte, end)
    return list(starts)


def _compare(data: bytes, at: int, anchor: Anchor) -> bool | None:
    """Whether the text is around an anchor; False if that is to be seen from the line as it is shown, None if not.

    Where the shown text has it and the data has not, the first byte that differs, seen from the anchor, is one that is
    not shown as it is; it stands where a byte of the text would.
    """
    low = at - anchor.before
    window = data[low if low > 0 else 0 : low + len(anchor.text)]
    if not anchor.text:
        return False
    if (window.lower() if anchor.fold else window) == anchor.text:
        return True
    return False if window.translate(None, anchor.visible) else None


def _choose(one_of: OneOf, fold: bool, sample: bytes) -> Choice | None:
    """Return the anchors for texts of which one must be there; None if one of the texts has none."""
    anchors: list[Anchor] = []
    cost = 0
    for text in one_of:
        choice = _choose_for_text(text, fold and text.lower() != text.upper(), sample)
        if choice is None:
            return None
        anchors += choice.anchors
        cost += choice.cost
    return Choice(tuple(anchors), cost)


def _choose_for_text(text: str, fold: bool, sample: bytes) -> Choice | None:
    choices = (_anchors_at(text, position, fold, sample) for position in range(len(text)))
    return min((choice for choice in choices if choice is not None), key=lambda choice: choice.cost, default=None)


def _anchors_at(text: str, position: int, fold: bool, sample: bytes) -> Choice | None:
    """Return the anchors for one character of a text, None if it can be shown without being there."""
    char = text[position]
    # A space may come from a tab or another space, the replacement character from any faulty byte.
    if char.isspace() or char == "\ufffd" or not char.isprintable() or (fold and not _folds_within_ascii(char)):
        return None
    visible = _VISIBLE if " " in text else _VISIBLE + b"\t"
    whole = (text.lower() if fold else text).encode() if not fold or text.isascii() else b""
    before = len(text[:position].encode())
    if fold and char.lower() != char.upper():
        both = [ord(char.lower()), ord(char.upper())]
        anchors = tuple(Anchor(byte, before, whole, True, visible) for byte in both)
        return Choice(anchors, sum(map(sample.count, both)))
    encoded = char.encode()
    rarest = min(range(len(encoded)), key=lambda offset: sample.count(encoded[offset]))
    anchor = Anchor(encoded[rarest], before + rarest, whole, fold, visible)
    return Choice((anchor,), sample.count(anchor.byte))


def _folds_within_ascii(char: str) -> bool:
    return char.isascii() and char not in _NO_FOLDING_ANCHOR
