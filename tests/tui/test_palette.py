"""Contrast by computation: every text colour on every background that it may stand on reaches 4.5:1."""

import re

import pytest

from torchx_tui.tui.palette import DARK, LIGHT, NO_COLOR, PALETTES, Palette

TEXT = (
    "text", "log", "text2", "text3", "accent", "submitted", "pending", "running", "failed", "cancelled", "unknown",
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


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_text_is_legible_on_every_background(palette: Palette):
    backgrounds = {name: color(getattr(palette, name)) for name in ("bg", "bar", "raised", "sel", "error_row")}
    weak = [
        f"{name} on {where}: {contrast(color(getattr(palette, name)), background):.2f}"
        for name in TEXT
        for where, background in backgrounds.items()
        if contrast(color(getattr(palette, name)), background) < 4.5
    ]
    assert weak == []


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_filled_accent_matches_and_replicas(palette: Palette):
    text, fill = re.findall(r"#[0-9a-f]{6}", palette.accent_fill)
    assert contrast(text, fill) >= 4.5
    assert contrast(palette.log, color(palette.match_row)) >= 4.5
    for background in (palette.bg, color(palette.error_row)):
        assert [c for c in palette.replicas if contrast(c, background) < 4.5] == []


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_colours_that_a_job_prints_stay_legible(palette: Palette):
    assert [c for c in palette.named_colors if contrast(c, palette.bg) < 4.5] == []


def test_ansi_palettes_name_no_rgb_and_no_color_names_no_colour():
    for palette in PALETTES.values():
        if palette.ansi:
            values = [v for v in vars(palette).values() if isinstance(v, str)] + list(palette.replicas)
            assert not [value for value in values if "#" in value]
    words = {word for value in vars(NO_COLOR).values() if isinstance(value, str) for word in value.split()}
    assert words <= {"torchx-no-color", "default", "dim", "bold", "reverse", "underline"}


def test_replicas_come_round_again():
    assert DARK.replica(0) == DARK.replica(8) != DARK.replica(1)
