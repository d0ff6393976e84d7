"""The styles that SGR sequences set: each attribute, each form of a colour, and what is none."""

import pytest

from torchx_tui.logs.text.sgr import PLAIN, RGB, SgrStyle, apply_sgr

ALL = SgrStyle(1, 2, bold=True, dim=True, italic=True, underline=True, reverse=True, strike=True)


@pytest.mark.parametrize(
    ("parameters", "style"),
    [
        ("1", SgrStyle(bold=True)),
        ("2", SgrStyle(dim=True)),
        ("3", SgrStyle(italic=True)),
        ("4", SgrStyle(underline=True)),
        ("7", SgrStyle(reverse=True)),
        ("9", SgrStyle(strike=True)),
        ("21", SgrStyle(underline=True)),
        ("1;4", SgrStyle(bold=True, underline=True)),
        ("4:3", SgrStyle(underline=True)),
        ("4:1;4:0", PLAIN),
        ("5", PLAIN),
    ],
)
def test_attributes_are_set(parameters, style):
    assert apply_sgr(PLAIN, parameters) == style


@pytest.mark.parametrize(
    ("parameters", "ended"),
    [
        ("22", {"bold": False, "dim": False}),
        ("23", {"italic": False}),
        ("24", {"underline": False}),
        ("27", {"reverse": False}),
        ("29", {"strike": False}),
        ("39", {"fg": None}),
        ("49", {"bg": None}),
        ("25", {}),
        ("99999", {}),
        ("100000", {}),
        ("x", {}),
    ],
)
def test_each_is_ended_alone(parameters, ended):
    assert apply_sgr(ALL, parameters) == ALL._replace(**ended)


@pytest.mark.parametrize("parameters", ["", "0", ";", "1;0", "1;"])
def test_everything_is_ended_at_once(parameters):
    assert apply_sgr(ALL, parameters) == PLAIN


@pytest.mark.parametrize(("first", "field", "color"), [(30, "fg", 0), (40, "bg", 0), (90, "fg", 8), (100, "bg", 8)])
def test_the_named_colors(first, field, color):
    for number in range(8):
        wanted = {field: color + number}
        assert apply_sgr(PLAIN, str(first + number)) == SgrStyle(**wanted)


def test_what_lies_beside_the_named_colors_is_none():
    for code in (28, 29, 50, 59, 89, 98, 99, 108):
        assert apply_sgr(PLAIN, str(code)) == PLAIN


@pytest.mark.parametrize(
    ("parameters", "color"),
    [
        ("5;0", 0),
        ("5;255", 255),
        ("5;256", None),
        ("5", None),
        ("5;", 0),
        ("2;1;2;3", RGB | 0x010203),
        ("2;0;0;0", RGB),
        ("2;255;255;255", RGB | 0xFFFFFF),
        ("2;256;0;0", None),
        ("2;0;x;0", None),
        ("2;1;2", None),
        ("3;1", None),
        ("", None),
    ],
)
def test_colors_of_the_palette_and_true_ones(parameters, color):
    assert apply_sgr(PLAIN, f"38;{parameters}") == SgrStyle(fg=color)
    assert apply_sgr(PLAIN, f"48;{parameters}") == SgrStyle(bg=color)
    assert apply_sgr(PLAIN, f"58;{parameters}") == PLAIN


@pytest.mark.parametrize(
    ("parameters", "color"),
    [
        ("5:9", 9),
        ("5:256", None),
        ("5", None),
        ("2:1:2:3", RGB | 0x010203),
        ("2::1:2:3", RGB | 0x010203),
        ("2:7:1:2:3", RGB | 0x010203),
        ("2:1:2", None),
        ("7:1", None),
    ],
)
def test_colors_in_one_parameter(parameters, color):
    assert apply_sgr(PLAIN, f"38:{parameters}") == SgrStyle(fg=color)
    assert apply_sgr(PLAIN, f"48:{parameters};1") == SgrStyle(bg=color, bold=True)
    assert apply_sgr(PLAIN, f"58:{parameters}") == PLAIN


def test_what_follows_a_color_counts():
    assert apply_sgr(PLAIN, "38;5;9;1") == SgrStyle(fg=9, bold=True)
    assert apply_sgr(PLAIN, "38;2;1;2;3;4") == SgrStyle(fg=RGB | 0x010203, underline=True)
    assert apply_sgr(PLAIN, "58;5;9;1") == SgrStyle(bold=True)
    # Of a colour of an unknown kind four parameters are passed over.
    assert apply_sgr(PLAIN, "38;3;4;4;4;1") == SgrStyle(bold=True)


def test_of_very_many_parameters_the_first_count():
    assert apply_sgr(PLAIN, ";".join(["5"] * 63 + ["1"])) == SgrStyle(bold=True)
    assert apply_sgr(PLAIN, ";".join(["5"] * 64 + ["1"])) == PLAIN
