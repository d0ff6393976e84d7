"""How the colours that a job prints look in a theme: as printed, and legible."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.style import Style

from ...logs.text.sgr import RGB, SgrStyle
from ..ui.palette import Palette

# WCAG's contrast for text.
_LEGIBLE = 4.5
_STEPS = 8

_Triplet = tuple[int, int, int]


class SgrStyles:
    """Turns the styles of a log into Rich's, for one palette.

    In a theme of the terminal's own colours, colours are handed on as printed. Elsewhere the 16 named colours are the
    palette's, and a colour that would not be legible on its background is lightened or darkened until it is.

    Args:
        colors: the palette.
    """

    def __init__(self, colors: Palette) -> None:
        self._colors = colors
        self._background = parse_hex(colors.bg) if colors.bg.startswith("#") else (0, 0, 0)
        self._text = parse_hex(colors.log) if colors.log.startswith("#") else (255, 255, 255)
        self._known: dict[SgrStyle, Style] = {}

    def style(self, sgr: SgrStyle) -> Style:
        """Return the Rich style of ``sgr``, to be laid over the line's own."""
        known = self._known.get(sgr)
        if known is None:
            if len(self._known) > 4096:
                self._known.clear()
            known = self._known[sgr] = self._make(sgr)
        return known

    def _make(self, sgr: SgrStyle) -> Style:
        if self._colors.ansi:
            foreground, background, reverse = self._ansi(sgr.fg), self._ansi(sgr.bg), sgr.reverse
        else:
            foreground, background = self._rgb_pair(sgr)
            reverse = False
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

    def _ansi(self, color: int | None) -> Color | None:
        if color is None or self._colors.named_colors[1] == "default":
            return None
        if color & RGB:
            return Color.from_rgb(*_triplet(color))
        return Color.from_ansi(color)

    def _rgb_pair(self, sgr: SgrStyle) -> tuple[Color | None, Color | None]:
        foreground, background = self._rgb(sgr.fg), self._rgb(sgr.bg)
        if sgr.reverse:
            foreground, background = background or self._background, foreground or self._text
        if foreground is not None or background is not None:
            foreground = _legible(foreground or self._text, background or self._background)
        return (
            None if foreground is None else Color.from_rgb(*foreground),
            None if background is None else Color.from_rgb(*background),
        )

    def _rgb(self, color: int | None) -> _Triplet | None:
        if color is None:
            return None
        if color & RGB:
            return _triplet(color)
        return parse_hex(self._colors.named_colors[color]) if color < 16 else _palette_color(color)


def _triplet(color: int) -> _Triplet:
    return color >> 16 & 255, color >> 8 & 255, color & 255


def parse_hex(color: str) -> _Triplet:
    """Read ``#rrggbb``."""
    value = int(color[1:7], 16)
    return value >> 16 & 255, value >> 8 & 255, value & 255


def _palette_color(number: int) -> _Triplet:
    """Return a colour of xterm's cube (16 to 231) or grey ramp (232 to 255)."""
    if number >= 232:
        grey = 8 + (number - 232) * 10
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return steps[number // 36], steps[number // 6 % 6], steps[number % 6]


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
        mixed = (red, green, blue)
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
