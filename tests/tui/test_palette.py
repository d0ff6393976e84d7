"""Contrast by computation: every text colour on every background that it may stand on reaches 4.5:1."""

import itertools
import re
from pathlib import Path

import pytest

import torchx_tui.tui
from torchx_tui.tui.ui.palette import COLOR_BLIND, DARK, LIGHT, NO_COLOR, PALETTES, style_variables

TEXT = (
    "text", "log", "muted", "faint", "accent", "submitted", "pending", "running", "failed", "cancelled", "unknown",
    "added", "removed", "yaml_key", "yaml_string", "yaml_number",
)  # fmt: skip


def luminance(color: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def color(style: str) -> str:
    """Return the last colour in a style."""
    return re.findall(r"#[0-9a-f]{6}", style)[-1]


@pytest.mark.parametrize("palette", [DARK, LIGHT, COLOR_BLIND], ids=lambda palette: palette.name)
def test_text_is_legible_on_every_background(palette):
    backgrounds = {name: color(getattr(palette, name)) for name in ("bg", "bar", "raised", "sel", "error_row")}
    weak = [
        f"{name} on {where}: {contrast(color(getattr(palette, name)), background):.2f}"
        for name in TEXT
        for where, background in backgrounds.items()
        if contrast(color(getattr(palette, name)), background) < 4.5
    ]
    assert weak == []


@pytest.mark.parametrize("palette", [DARK, LIGHT, COLOR_BLIND], ids=lambda palette: palette.name)
def test_filled_accent_matches_and_replicas(palette):
    text, fill = re.findall(r"#[0-9a-f]{6}", palette.accent_fill)
    assert contrast(text, fill) >= 4.5
    assert contrast(palette.log, color(palette.match_row)) >= 4.5
    for background in (palette.bg, color(palette.error_row)):
        assert [c for c in palette.replicas if contrast(c, background) < 4.5] == []


def test_ansi_palettes_name_no_rgb_and_no_color_names_no_colour():
    for palette in PALETTES.values():
        if palette.ansi:
            values = [v for v in vars(palette).values() if isinstance(v, str)] + list(palette.replicas)
            assert not [value for value in values if "#" in value]
    words = {word for value in vars(NO_COLOR).values() if isinstance(value, str) for word in value.split()}
    assert words <= {"torchx-no-color", "default", "dim", "bold", "reverse", "underline"}


def test_replicas_come_round_again():
    assert DARK.replica(0) == DARK.replica(8) != DARK.replica(1)


# What eyes without one kind of receptor see of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(style: str, sight: str) -> tuple[float, float, float]:
    """Return a colour in CIE L*a*b*, as somebody sees it."""
    channels = [int(color(style)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in SIGHTS[sight])
    x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
    y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize(("palette", "apart"), [(DARK, 17), (COLOR_BLIND, 24)], ids=["dark", "color-blind"])
def test_states_are_apart_for_every_sight(palette, apart, sight):
    names = ("pending", "running", "failed", "cancelled", "unknown")
    states = {name: seen(getattr(palette, name), sight) for name in names}
    distances = {
        (one, other): sum((a - b) ** 2 for a, b in zip(states[one], states[other], strict=True)) ** 0.5
        for one, other in itertools.combinations(states, 2)
    }
    assert {pair: distance for pair, distance in distances.items() if distance < apart} == {}


def test_every_style_that_texts_name_exists():
    sources = [path.read_text(encoding="utf-8") for path in Path(torchx_tui.tui.__path__[0]).rglob("*.py")]
    named = {name for source in sources for name in re.findall(r"\$(style-[a-z-]+)[\"' ]", source)}
    assert len(named) > 20
    assert named <= style_variables(DARK).keys()
