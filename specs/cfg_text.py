"""The text form of run options: `K=v,K2=a,b;c`, read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# A quoted piece, in which separators stand for themselves; a backslash keeps the quote after it inside.
_QUOTED = re.compile(r"""(['"])(?:\\.|(?!\1).)*?\1""", re.DOTALL)
_SEPARATORS = "=,;:"


def format_cfg(cfg: Mapping[str, Any]) -> str:
    """Return the text that `runopts.cfg_from_str` turns into these options; those that are None are left out."""
    return ",".join(f"{key}={_kept_together(value)}" for key, value in cfg.items() if value is not None)


def format_value(value: Any) -> str:
    """Return the text that `runopt.cast_to_type` turns into a value; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ";".join(f"{_item_text(key)}:{_item_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ";".join(_item_text(item) for item in value)
    return str(value)


def split_items(text: str) -> list[str]:
    """Return the items of a list, separated by `,` or `;`; quotes around one keep its separators. Empty ones go."""
    return [unquoted(item) for item in split_parts(text)]


def split_parts(text: str, separators: str = ",;") -> list[str]:
    """Return the items of a list as they are written, quotes and all; empty ones go."""
    marked = _marked(text)
    places = [place for place, letter in enumerate(marked) if letter in separators]
    edges = zip([0, *(place + 1 for place in places)], [*places, len(text)], strict=True)
    return [text[first:stop] for first, stop in edges if stop > first]


def split_pair(item: str) -> tuple[str, str]:
    """Return the key and the value of `key:value`.

    Raises:
        ValueError: There is no colon.
    """
    place = _marked(item).find(":")
    if place < 0:
        raise ValueError(f"`{item}` is not a pair. Want key:value, such as FOO:1,BAR:2")
    return unquoted(item[:place]), unquoted(item[place + 1 :])


def quoted(text: str) -> str:
    """Return a text in quotes; `unquoted` takes them off."""
    quote = '"' if "'" in text and '"' not in text else "'"
    kept = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{kept}{quote}"


def unquoted(value: str) -> str:
    """Return a text without the quotes around all of it; inside them a backslash keeps a quote or a backslash."""
    match = _QUOTED.fullmatch(value)
    if match is None:
        return value
    return re.sub(rf"\\([\\{match[1]}])", r"\1", value[1:-1])


def split_cfg(text: str) -> dict[str, str]:
    """Return the texts of options by name; what they mean depends on the options' types.

    The last `,` or `;` before the next `=` ends a value; those before it belong to the value. Quotes around a whole
    value are taken off.

    Raises:
        ValueError: A piece is not `key=value`, or a key or value is missing.
    """
    if not text:
        return {}
    kind = _marked(text)
    equals = [place for place, letter in enumerate(kind) if letter == "="]
    if not equals:
        raise ValueError(f"`{text}` is not `key=value`")
    pairs: dict[str, str] = {}
    key = text[: equals[0]].strip()
    for place, following in zip(equals, [*equals[1:], None], strict=True):
        end, next_key = len(text), ""
        if following is not None:
            end = max(kind.rfind(",", place, following), kind.rfind(";", place, following))
            next_key = text[end + 1 : following].strip() if end > 0 else ""
            if not next_key:
                raise ValueError(f"`{text[place + 1 : following]}` is not a value, `,` or `;`, and the next key")
        value = text[place + 1 : end].strip()
        if not key or not value:
            raise ValueError(f"`{text[:end]}` is not `key=value`: the {'value' if key else 'key'} is missing")
        pairs[key] = unquoted(value)
        key = next_key
    return pairs


def _marked(text: str) -> str:
    """Return the text with every separator inside quotes blanked, at the same places."""

    def blanked(match: re.Match[str]) -> str:
        return "".join(" " if letter in _SEPARATORS else letter for letter in match.group())

    return _QUOTED.sub(blanked, text)


def _item_text(item: Any) -> str:
    text = str(item)
    return text if text and not any(letter in "=,;:'\"" for letter in text) else quoted(text)


def _kept_together(value: Any) -> str:
    """Return a value's text, in quotes where it could not be told from what follows it."""
    text = format_value(value)
    separators = "='\"" if isinstance(value, (list, dict)) else "=,;'\""
    plain = text and text == text.strip() and not any(letter in separators for letter in text)
    return text if plain else quoted(text)
