"""A theme that is chosen while the dashboard runs colours every text on the screen."""

from __future__ import annotations

import re
from dataclasses import astuple

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, settled
from support.pictures import FAILED, RUNNING, at_job

from torchx_tui.tui.ui.palette import DARK, LIGHT, Palette

SCREENS = {
    "jobs": (RUNNING, []),
    "jobs filtered": (RUNNING, ["slash", "n", "a", "m", "e", "enter"]),
    "job": (FAILED, ["enter"]),
    "logs": (RUNNING, ["l"]),
    "logs searched": (RUNNING, ["l", "slash", "s", "t", "e", "p", "enter"]),
    "form": (RUNNING, ["e"]),
    "picker": (RUNNING, ["n"]),
    "cancel": (RUNNING, ["c"]),
    "keys": (RUNNING, ["question_mark"]),
}


def colors_of(palette: Palette) -> set[str]:
    return set(re.findall(r"#[0-9a-f]{6}", str(astuple(palette))))


@pytest.mark.parametrize("name", SCREENS)
async def test_no_color_of_the_theme_before_is_left(name, tmp_path):
    job, keys = SCREENS[name]
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_job(job)(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        app.theme = LIGHT.name
        await settled(pilot)
        drawn = [
            (segment.text, {color.name for color in (segment.style.color, segment.style.bgcolor) if color})
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style
        ]
    assert any(DARK.bg in colors or LIGHT.bg in colors for _, colors in drawn)
    assert [text for text, colors in drawn if colors & (colors_of(DARK) - colors_of(LIGHT))] == []
