"""The text form of run options: `K=v,K2=a,b;c`."""

from __future__ import annotations

import re

# A quoted piece, in which separators stand for themselves; a backslash keeps the quote after it inside.
_QUOTED = re.compile(r"""(['"])(?:\\.|(?!\1).)*?\1""")
_SEPARATORS = "=,;"


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
        pairs[key] = _unquoted(value)
        key = next_key
    return pairs


def _marked(text: str) -> str:
    """Return the text with every separator inside quotes blanked, at the same places."""

    def blanked(match: re.Match[str]) -> str:
        return "".join(" " if letter in _SEPARATORS else letter for letter in match.group())

    return _QUOTED.sub(blanked, text)


def _unquoted(value: str) -> str:
    whole = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
    return value[1:-1] if whole else value
