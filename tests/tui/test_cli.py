"""What the command line takes, and what it makes of the environment."""

from __future__ import annotations

from typing import get_args

import pytest

from torchx_tui.tui import cli
from torchx_tui.tui.config import Settings, ThemeName


def given(*arguments: str) -> Settings:
    return cli._settings(cli.build_parser().parse_args(arguments, cli.Arguments()))


def test_options_override_the_settings():
    settings = given("--fps", "45", "--no-mouse", "--read-only", "--ascii", "--theme", "torchx-light")
    assert settings.frames_per_second == 45
    assert (settings.mouse, settings.read_only, settings.ascii, settings.theme) == (False, True, True, "torchx-light")


def test_every_theme_of_the_settings_can_be_named():
    assert {given("--theme", name).theme for name in get_args(ThemeName)} == set(get_args(ThemeName))


@pytest.mark.parametrize("text", ["29", "241", "fast", "-60"])
def test_frames_out_of_range_are_refused_with_the_range(text, capsys):
    with pytest.raises(SystemExit):
        given(f"--fps={text}")
    assert "from 30 to 240" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environ", "frames"),
    [
        ({}, 0),
        ({"SSH_CONNECTION": "10.0.0.1 22"}, 30),
        ({"TEXTUAL_FPS": "10"}, 30),
        ({"TEXTUAL_FPS": "90", "SSH_CONNECTION": "10.0.0.1 22"}, 90),
        ({"TEXTUAL_FPS": "often"}, 0),
    ],
)
def test_how_often_the_screen_is_drawn_where_nobody_chose(environ, frames):
    assert cli._usual_frames(environ) == frames
