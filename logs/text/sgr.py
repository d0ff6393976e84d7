"""The colours and attributes that a line sets with SGR sequences (ECMA-48, 8.3.117; T.416 for ``38`` and ``48``)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

# A colour is 0 to 255 (the terminal's palette) or this bit with red, green and blue below it.
RGB = 1 << 24

_ATTRIBUTES: dict[int, dict[str, bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
}
# More parameters than this in one sequence are an attack on the time it takes, not a style.
_MAX_PARAMETERS = 64


class SgrStyle(NamedTuple):
    """What SGR sequences set for a run of text.

    Attributes:
        fg: the text's colour: None for the default, 0 to 15 a named colour, 16 to 255 of the 256-colour palette,
            ``RGB | 0xRRGGBB`` a true colour.
        bg: the background's colour, in the same form.
    """

    fg: int | None = None
    bg: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


PLAIN = SgrStyle()


@lru_cache(256)
def apply_sgr(style: SgrStyle, parameters: str) -> SgrStyle:
    """Apply an SGR sequence to a style.

    Args:
        style: the style before.
        parameters: the text between ``ESC [`` and ``m``: digits, ``;`` and ``:``.
    """
    if not parameters:
        return PLAIN
    groups = parameters.split(";", _MAX_PARAMETERS)[:_MAX_PARAMETERS]
    position = 0
    while position < len(groups):
        group = groups[position]
        position += 1
        if ":" in group:
            style = _apply_colon_group(style, group)
            continue
        code = _number(group)
        if code in (38, 48, 58):
            color, used = _semicolon_color(groups[position : position + 4])
            position += used
            style = _with_color(style, code, color)
        else:
            style = _apply_code(style, code)
    return style


def _number(text: str) -> int:
    """Parse a parameter; a missing one is 0, an invalid one -1."""
    if not text:
        return 0
    return int(text) if len(text) <= 5 and text.isascii() and text.isdigit() else -1


def _apply_code(style: SgrStyle, code: int) -> SgrStyle:
    if code == 0:
        return PLAIN
    if code in _ATTRIBUTES:
        return style._replace(**_ATTRIBUTES[code])
    if 30 <= code <= 37:
        return style._replace(fg=code - 30)
    if 40 <= code <= 47:
        return style._replace(bg=code - 40)
    if 90 <= code <= 97:
        return style._replace(fg=code - 82)
    if 100 <= code <= 107:
        return style._replace(bg=code - 92)
    if code == 39:
        return style._replace(fg=None)
    if code == 49:
        return style._replace(bg=None)
    return style


def _semicolon_color(rest: list[str]) -> tuple[int | None, int]:
    """Parse ``5;n`` or ``2;r;g;b``, at most four parameters; return the colour and the number of its parameters."""
    kind = _number(rest[0]) if rest else -1
    if kind == 5:
        return _palette_color(rest[1:]), 2
    if kind == 2:
        return _rgb(rest[1:]), 4
    return None, len(rest)


def _apply_colon_group(style: SgrStyle, group: str) -> SgrStyle:
    """Apply one parameter with subparameters: ``38:5:n``, ``38:2:r:g:b``, ``38:2:space:r:g:b``, ``4:n``."""
    parts = group.split(":", 8)
    code, kind = _number(parts[0]), _number(parts[1])
    if code == 4:
        return style._replace(underline=kind != 0)
    if code not in (38, 48, 58):
        return style
    if kind == 5:
        return _with_color(style, code, _palette_color(parts[2:]))
    if kind == 2:
        return _with_color(style, code, _rgb(parts[3:6] if len(parts) >= 6 else parts[2:5]))
    return style


def _palette_color(parts: list[str]) -> int | None:
    value = _number(parts[0]) if parts else -1
    return value if 0 <= value <= 255 else None


def _rgb(parts: list[str]) -> int | None:
    values = [_number(part) for part in parts]
    if len(values) != 3 or not all(0 <= value <= 255 for value in values):
        return None
    return RGB | values[0] << 16 | values[1] << 8 | values[2]


def _with_color(style: SgrStyle, code: int, color: int | None) -> SgrStyle:
    """Set a colour; an invalid one is ignored, and so is 58, the underline's."""
    if color is None or code == 58:
        return style
    return style._replace(fg=color) if code == 38 else style._replace(bg=color)
