"""A theme that is chosen while the dashboard runs colours every text, as if it had been started in it."""

from __future__ import annotations

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, settled, until
from support.pictures import FAILED, RUNNING, at_job

from torchx_tui.settings.config import Settings
from torchx_tui.tui.logs.pane import LogPane

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


def drawn(app):
    """Each text on the screen with its colours."""
    return [
        [(segment.text, str(segment.style.color), str(segment.style.bgcolor)) for segment in strip if segment.style]
        for strip in app.screen._compositor.render_strips()
    ]


async def open_screen(pilot, job, keys):
    await at_job(job)(pilot)
    for key in keys:
        await pilot.press(key)
        await settled(pilot)
    if job == FAILED:
        log = pilot.app.screen.query_one(LogPane)
        await until(pilot, lambda: log.status.state == "ended", "the end of the log")


@pytest.mark.parametrize("name", SCREENS)
async def test_the_screen_is_drawn_as_if_started_in_the_theme(name, tmp_path):
    job, keys = SCREENS[name]
    started = make_app(busy_scheduler(tmp_path / "logs"), tmp_path / "a", settings=Settings(theme="torchx-light"))
    async with started.run_test(size=(120, 40)) as pilot:
        await open_screen(pilot, job, keys)
        expected = drawn(started)
    switched = make_app(busy_scheduler(tmp_path / "logs"), tmp_path / "b")
    async with switched.run_test(size=(120, 40)) as pilot:
        await open_screen(pilot, job, keys)
        switched.theme = "torchx-light"
        await settled(pilot)
        found = drawn(switched)
    differing = [(one, other) for one, other in zip(found, expected, strict=True) if one != other]
    texts = {texts[0] for one, other in differing for texts in zip(one, other, strict=False) if texts[0] != texts[1]}
    assert texts == set()
