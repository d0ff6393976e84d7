"""How the colours that a job prints look in a theme: as printed, and legible."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color, parse_rgb_hex
from rich.style import Style

from ...logs.text.sgr import RGB, SgrStyle
from ..ui.palette import Palette

# WCAG's contrast for text.
_LEGIBLE = 4.5
_STEPS = 8

_Triplet = tuple[int, int, int]


@lru_cache(maxsize=4096)
def sgr_style(sgr: SgrStyle, colors: Palette) -> Style:
    """Return the Rich style of a style of a log, to be laid over the line's own.

    In a theme of the terminal's own colours, colours are handed on as printed. Elsewhere the 16 named colours are the
    palette's, and a colour that would not be legible on its background is lightened or darkened until it is.
    """
    reverse = sgr.reverse and colors.ansi
    foreground, background = _ansi_pair(sgr, colors) if colors.ansi else _legible_pair(sgr, colors)
    return Style(
        color=foreground,
        bgcolor=background,
        bold=sgr.bold or None,
        dim=sgr.dim or None,
        italic=sgr.italic or None,
        underline=sgr.underline or None,
        reverse=reverse or None,
        strike=sgr.strike or None,
    )


def _ansi_pair(sgr: SgrStyle, colors: Palette) -> tuple[Color | None, Color | None]:
    if colors.named_colors[1] == "default":
        return None, None
    foreground, background = (
        None if color is None else Color.from_rgb(*_triplet(color)) if color & RGB else Color.from_ansi(color)
        for color in (sgr.fg, sgr.bg)
    )
    return foreground, background


def _legible_pair(sgr: SgrStyle, colors: Palette) -> tuple[Color | None, Color | None]:
    text, back = parse_hex(colors.log), parse_hex(colors.bg)
    foreground, background = _rgb(sgr.fg, colors), _rgb(sgr.bg, colors)
    if sgr.reverse:
        foreground, background = background or back, foreground or text
    if foreground is not None or background is not None:
        foreground = _legible(foreground or text, background or back)
    return (
        None if foreground is None else Color.from_rgb(*foreground),
        None if background is None else Color.from_rgb(*background),
    )


def _rgb(color: int | None, colors: Palette) -> _Triplet | None:
    if color is None:
        return None
    if color & RGB:
        return _triplet(color)
    return parse_hex(colors.named_colors[color]) if color < 16 else Color.from_ansi(color).get_truecolor()


def _triplet(color: int) -> _Triplet:
    return color >> 16 & 255, color >> 8 & 255, color & 255


def parse_hex(color: str) -> _Triplet:
    """Read ``#rrggbb``."""
    return parse_rgb_hex(color[1:])


@lru_cache(maxsize=4096)
def _legible(foreground: _Triplet, background: _Triplet) -> _Triplet:
    """Return the foreground, mixed with white or black as little as its contrast needs."""
    light = _luminance(background)
    goal = 255 if 1.05 / (light + 0.05) > (light + 0.05) / 0.05 else 0
    mixed = foreground
    for step in range(1, _STEPS + 1):
        if contrast(mixed, background) >= _LEGIBLE:
            break
        red, green, blue = (value + (goal - value) * step // _STEPS for value in foreground)
        mixed = red, green, blue
    return mixed


def contrast(one: _Triplet, other: _Triplet) -> float:
    """Return WCAG's contrast ratio of two colours, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: _Triplet) -> float:
    red, green, blue = (_linear(value / 255) for value in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
