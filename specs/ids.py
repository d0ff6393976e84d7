"""Names that are unique, and names that every scheduler accepts."""

from __future__ import annotations

import os

# No vowels, so that no word appears; no digit first, as Kubernetes wants.
_FIRST = "bcdfghjklmnpqrstvwxz"
_REST = _FIRST + "012345679"


def random_id(max_length: int | None = None) -> str:
    """Return 64 random bits as lower-case letters and digits, 11 to 14 characters in nearly all cases.

    Args:
        max_length: Cut after so many characters; None for all of them.
    """
    number = int.from_bytes(os.urandom(8), "big")
    number, place = divmod(number, len(_FIRST))
    text = _FIRST[place]
    while number:
        number, place = divmod(number, len(_REST))
        text += _REST[place]
    return text if max_length is None else text[: max(0, max_length)]


def make_unique(name: str, string_length: int = 0) -> str:
    """Return `name-` followed by a random id.

    Args:
        name: What the id begins with.
        string_length: The random part's longest length in characters; 0 for all of it.
    """
    return f"{name}-{random_id(string_length or None)}"


def normalize_str(data: str) -> str:
    """Return a Kubernetes name: lower case, only `a-z`, `0-9` and `-`, not begun by `-`.

    The form of https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ as TorchX makes it.
    """
    kept = (letter for letter in data.lower() if letter == "-" or (letter.isascii() and letter.isalnum()))
    return "".join(kept).lstrip("-")
