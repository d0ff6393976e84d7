"""Values that nobody expects, and documents that hold them; the same ones in every run."""

from __future__ import annotations

import json
import random
from typing import Any

_TEXTS = (
    "",
    "\n",
    "a\nb",
    "\0",
    "\x1b]0;x\x07",
    "\ud800",
    "\u202e",
    "..",
    "/",
    "a/b",
    "nan",
    "inf",
    "-1",
    "9" * 5000,
    " ",
)
_NUMBERS = (0, -1, 2**31, 2**63, -(2**70), 10**39, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), 0.1)


def odd_value(chance: random.Random) -> Any:
    """Return a value of any type."""
    kind = chance.randrange(8)
    if kind < 3:
        return chance.choice(_TEXTS)
    if kind < 6:
        return chance.choice(_NUMBERS)
    return chance.choice((None, True, [], {}, [[]], [None], [0, "x"], {"": None}, {"$items": 5}, {"$items": [[[], 1]]}))


def odd_document(chance: random.Random, document: Any) -> Any:
    """Return a copy of plain data in which one to three values are others, missing or too many."""
    made = json.loads(json.dumps(document))
    for _ in range(chance.randint(1, 3)):
        place = made
        while True:
            inner = [item for item in (place.values() if isinstance(place, dict) else place) if item and _holds(item)]
            if not inner or chance.random() < 0.3:
                break
            place = chance.choice(inner)
        if isinstance(place, list):
            place.append(odd_value(chance))
        elif place and chance.random() < 0.2:
            del place[chance.choice(list(place))]
        else:
            place[chance.choice([*place, "other"])] = odd_value(chance)
    return made


def _holds(value: Any) -> bool:
    return isinstance(value, (dict, list))


def odd_text(chance: random.Random, document: Any) -> bytes:
    """Return a damaged JSON text: of another document, cut, with other bytes, or nested without end."""
    kind = chance.randrange(8)
    if kind == 0:
        return chance.choice((b"[", b'{"a":', b"{}", b"[]", b"null", b"1e999", b"\xff\xfe", b"")) * chance.choice(
            (1, 2000)
        )
    text = bytearray(json.dumps(odd_document(chance, document) if kind > 2 else document), "utf-8")
    if kind == 1:
        del text[chance.randrange(len(text)) :]
    elif kind == 2:
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)
