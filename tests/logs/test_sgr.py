"""The styles that SGR sequences set."""

from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.logs.text.sgr import PLAIN, SgrStyle, apply_sgr

TABLE = toml_table(Path(__file__).with_name("data") / "sgr.toml")
ALL = SgrStyle(1, 2, bold=True, dim=True, italic=True, underline=True, reverse=True, strike=True)


@pytest.mark.parametrize(("parameters", "style"), TABLE["set"].items())
def test_parameters_set_a_style(parameters, style):
    assert apply_sgr(PLAIN, parameters) == SgrStyle(**style)


@pytest.mark.parametrize(("parameters", "ended"), TABLE["end"].items())
def test_parameters_end_one_attribute(parameters, ended):
    assert apply_sgr(ALL, parameters) == ALL._replace(**{name: getattr(PLAIN, name) for name in ended})


@pytest.mark.parametrize("parameters", ["", "0", ";", "1;0", "1;"])
def test_zero_ends_all_attributes(parameters):
    assert apply_sgr(ALL, parameters) == PLAIN


@pytest.mark.parametrize(("parameters", "color"), TABLE["colors"].items())
def test_colors_of_text_background_and_underline(parameters, color):
    color = None if color < 0 else color
    assert apply_sgr(PLAIN, f"38{parameters}") == SgrStyle(fg=color)
    assert apply_sgr(PLAIN, f"48{parameters}") == SgrStyle(bg=color)
    assert apply_sgr(PLAIN, f"58{parameters}") == PLAIN


def test_first_64_parameters_count():
    assert apply_sgr(PLAIN, ";".join(["5"] * 63 + ["1"])) == SgrStyle(bold=True)
    assert apply_sgr(PLAIN, ";".join(["5"] * 64 + ["1"])) == PLAIN
