"""Pictures of the Metrics screen."""

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, until
from support.pictures import RUNNING, SIZES, at_job

from torchx_tui.tui.metrics.screen import MetricsScreen


def _is_read(app):
    screen = app.screen
    return isinstance(screen, MetricsScreen) and RUNNING in screen._activities and screen._activities[RUNNING].is_read


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_metrics(snap_compare, app):
    assert snap_compare(app, sizes={"200x50": (200, 50), **SIZES}, run_before=at_job(RUNNING, "p", wait=_is_read))


@pytest.mark.parametrize("form", ["ascii", "nocolor"])
def test_metrics_without_signs_or_colours(snap_compare, tmp_path, monkeypatch, form):
    if form == "nocolor":
        monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    app.ascii_glyphs = form == "ascii"

    async def zoomed(pilot):
        await at_job(RUNNING, "p", wait=_is_read)(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.has_class("-zoomed"), "one chart")

    assert snap_compare(app, terminal_size=(80, 24), run_before=zoomed)
