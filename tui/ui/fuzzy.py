"""Fuzzy search: letters in their order, the nearer together and the more of them at words' beginnings the better.

Names of files are not ours: the time of a search grows with their length only, which Textual's own search, that tries
every way to match, does not promise.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_WORD_START = re.compile(r"(?<![^\W_])[^\W_]")
# So many places of the first letter are tried.
_MOST_STARTS = 16


def fuzzy_match(query: str, text: str) -> tuple[float, tuple[int, ...]]:
    """Return how well a text matches, and the places of the letters that do; 0 and none where it does not.

    Args:
        query: words parted by spaces, each of which must match; case counts for nothing.
        text: what is searched.
    """
    lower, starts = _prepared(text)
    total, places = 0.0, set[int]()
    for word in query.lower().split():
        score, found = _match_word(word, lower, starts)
        if not found:
            return 0.0, ()
        total += score
        places.update(found)
    return total, tuple(sorted(places))


@lru_cache(maxsize=1 << 14)
def _prepared(text: str) -> tuple[str, frozenset[int]]:
    """Return a text in lower case, and where its words begin: the same names are searched with every letter."""
    # Letters whose lower case is longer would shift the places.
    lower = text.lower() if len(text.lower()) == len(text) else text
    return lower, frozenset(found.start() for found in _WORD_START.finditer(text))


def _match_word(word: str, text: str, starts: frozenset[int]) -> tuple[float, tuple[int, ...]]:
    whole = text.find(word)
    if whole >= 0:
        # One at a word's beginning is better than the first one.
        at = whole if whole in starts else next((at for at in _places(word, text) if at in starts), whole)
        found = tuple(range(at, at + len(word)))
        return _score(found, starts) * (2.0 if word == text else 1.5), found
    tried = (_from(word, text, place) for place in _places(word[0], text))
    scored = [(_score(found, starts), found) for found in tried if found]
    return max(scored, key=lambda item: item[0], default=(0.0, ()))


def _places(part: str, text: str) -> list[int]:
    """Return where a part begins in a text, at most `_MOST_STARTS` places."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0 and len(found) < _MOST_STARTS:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _from(word: str, text: str, start: int) -> tuple[int, ...]:
    """Return the places of a word's letters from a place on, the last ones as late as the first allow; none if not."""
    found, at = [start], start
    for letter in word[1:]:
        at = text.find(letter, at + 1)
        if at < 0:
            return ()
        found.append(at)
    # Backwards from the end the letters lie as near together as they can.
    for number in range(len(word) - 2, -1, -1):
        found[number] = text.rfind(word[number], 0, found[number + 1])
    return tuple(found)


def _score(found: tuple[int, ...], starts: frozenset[int]) -> float:
    if found[-1] - found[0] == len(found) - 1:
        joined = 1.0
    else:
        groups = 1 + sum(later != earlier + 1 for earlier, later in pairwise(found))
        joined = (len(found) - groups + 1) / len(found)
    return (len(found) + len(starts.intersection(found))) * (1 + joined * joined)
