"""Finds the lines that may have a text by the text's rarest byte: one memchr for most of a log.

GNU grep does the same; `bytes.find` of the whole text is three to five times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..text.shown import LINE_CAP, shown_text
from .required import Alternatives

# With more than one candidate in so many bytes, the whole text is searched instead.
_MIN_BYTES_PER_CANDIDATE = 600
_VISIBLE = bytes(range(0x20, 0x7F)) + b"\n"
# `K` and `S` have a third form that is not ASCII: U+212A and U+017F.
_NO_FOLDING_ANCHOR = frozenset("kKsS")


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
    return best.anchors if best is not None and best.cost * _MIN_BYTES_PER_CANDIDATE <= len(sample) else None


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
    left = 2 * len(data) // _MIN_BYTES_PER_CANDIDATE + 16
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
