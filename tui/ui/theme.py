"""Textual themes made from the palettes, and the palette and glyphs that an app shows now."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.theme import Theme

from . import glyphs, palette
from .palette import PALETTES, Palette, style_variables

if TYPE_CHECKING:
    from .glyphs import Glyphs

# The variables of the style sheets, ours and Textual's, by the palette's colour.
_CSS_COLORS = {
    "bg": (
        "bg", "scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active",
        "scrollbar-corner-color",
    ),
    "bar": ("bar",),
    "raised": ("raised", "block-cursor-blurred-background"),
    "sel": ("sel", "block-cursor-background"),
    "line": ("line", "scrollbar"),
    "faint": ("faint", "scrollbar-hover"),
    "text": ("body", "block-cursor-foreground", "block-cursor-blurred-foreground"),
    "accent": ("accent-color", "scrollbar-active"),
    "error_row": ("error-row",),
}  # fmt: skip


def _css_color(value: str) -> str:
    """Return a palette colour as CSS; CSS has no dim, so dim text is plain there."""
    color = value.split()[-1] if value else ""
    if color.startswith("#"):
        return color
    return f"ansi_{color}" if color not in ("", "dim", "default", "bold") else "ansi_default"


def css_variables(colors: Palette) -> dict[str, str]:
    """Return the CSS variables of a palette, such as ``bar`` for ``$bar``."""
    variables = {
        name: _css_color(getattr(colors, field)) for field, names in _CSS_COLORS.items() for name in names
    } | style_variables(colors)
    variables["accent-text"] = "ansi_default" if colors.ansi else _css_color(colors.accent_fill.split()[1])
    variables["block-cursor-text-style"] = "none"
    if colors.ansi:
        variables.update(_ANSI_VARIABLES)
    else:
        variables["input-cursor-background"] = colors.accent
        variables["input-cursor-foreground"] = colors.bg
        variables["input-selection-background"] = f"{colors.accent} 40%"
    return variables


# A theme in the terminal's own colours must define these, else the style sheets do not load.
_ANSI_VARIABLES = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "border-blurred": "ansi_default",
    "input-cursor-background": "ansi_default",
    "input-cursor-foreground": "ansi_default",
    "input-cursor-text-style": "reverse",
    "input-selection-background": "ansi_default",
    "input-selection-foreground": "ansi_default",
    "screen-selection-background": "ansi_default",
    "screen-selection-foreground": "ansi_default",
}


def textual_theme(colors: Palette) -> Theme:
    """Return the Textual theme of a palette, for its stock widgets."""
    background = _css_color(colors.bg)
    surface = _css_color(colors.raised)
    return Theme(
        name=colors.name,
        primary=_css_color(colors.accent),
        secondary=_css_color(colors.muted),
        warning=_css_color(colors.pending),
        error=_css_color(colors.failed),
        success=_css_color(colors.running),
        accent=_css_color(colors.accent),
        foreground=_css_color(colors.text),
        background=background,
        surface=surface,
        panel=_css_color(colors.bar),
        boost=surface,
        dark=colors.dark,
        ansi=colors.ansi,
        variables=css_variables(colors),
    )


def palette_of(app: App[Any]) -> Palette:
    """Return the colours of the theme, for lines drawn as segments. Texts name variables, such as `$style-faint`."""
    return PALETTES.get(app.theme, palette.DARK)


def choose_theme(wanted: str, no_color: bool) -> str:
    """Return the name of the theme to start with.

    Args:
        wanted: the setting; ``auto`` goes by what the terminal can show.
        no_color: whether NO_COLOR is set, which wins.
    """
    if no_color:
        return palette.NO_COLOR.name
    if wanted != "auto":
        return wanted
    terminal = os.environ.get("TERM", "")
    full = "256" in terminal or "truecolor" in os.environ.get("COLORTERM", "") or terminal.endswith("direct")
    return palette.DARK.name if full or not terminal else palette.ANSI.name


def use_themes(app: App[Any], chosen: str) -> None:
    """Give an app our themes.

    Args:
        app: the app.
        chosen: the name of the first theme.
    """
    for colors in PALETTES.values():
        app.register_theme(textual_theme(colors))
    app.theme = chosen


def now_of(app: App[Any]) -> float:
    """Return the app's time in seconds since the epoch; pictures freeze it."""
    clock = getattr(app, "now", time.time)
    return clock()


def glyphs_of(app: App[Any]) -> Glyphs:
    """Return the app's glyphs: ASCII where it was asked for, else Unicode."""
    return glyphs.ASCII if getattr(app, "ascii_glyphs", False) else glyphs.UNICODE
