"""What data makes drawing raise costs a note in its place, not the program."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil

import pytest
from rich.text import Text
from support import undrawn
from support.dashboard import make_app, screen_text, until
from support.pictures import RUNNING, at_job
from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widget import Widget

from torchx_tui import tui
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.progress.activity import Activity
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.ui.drawing import guard_render, guard_render_line
from torchx_tui.tui.ui.options import Options

NOTE = "cannot be drawn; see the log file"


class Whole(Widget):
    @guard_render
    def render(self) -> Text:
        raise OverflowError("inf in a whole widget")


class Rows(Widget):
    @guard_render_line
    def render_line(self, y: int) -> Strip:
        if y == 1:
            raise OverflowError("inf in a row")
        return Strip.blank(self.size.width)


class Both(App[None]):
    CSS = "Whole, Rows { height: 3; }"

    def compose(self) -> ComposeResult:
        yield Whole()
        yield Rows()


async def test_what_raises_is_replaced_and_logged_once(caplog):
    app = Both()
    async with app.run_test(size=(60, 10)) as pilot:
        await until(pilot, lambda: screen_text(app).count(NOTE) == 2, "both notes")  # type: ignore[arg-type]
        lines = screen_text(app).splitlines()  # type: ignore[arg-type]
        assert [number for number, line in enumerate(lines) if NOTE in line] == [0, 4]
        for _ in range(3):
            app.refresh(repaint=True)
            await pilot.pause()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert sorted(record.getMessage() for record in errors) == [
        "Rows cannot be drawn: OverflowError: inf in a row",
        "Whole cannot be drawn: OverflowError: inf in a whole widget",
    ]
    assert all(record.exc_info for record in errors)
    undrawn.failures.clear()


def test_every_widget_that_draws_is_guarded():
    names = [module.name for module in pkgutil.walk_packages(tui.__path__, f"{tui.__name__}.")]
    classes = {
        found
        for name in names
        for _, found in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if found.__module__ == name and issubclass(found, Widget)
    }
    drawn = [vars(found)[name] for found in classes for name in ("render", "render_line") if name in vars(found)]
    assert len(drawn) > 10
    assert [method.__qualname__ for method in drawn if not hasattr(method, "__wrapped__")] == []


@pytest.mark.parametrize("values", [[1e308, -1e308] * 4, [5e-324] * 8, [1.0, 1e308] * 4])
async def test_extreme_values_leave_the_job_on_the_screen(values, scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_job(RUNNING, "enter")(pilot)
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.doing.display, "what it does")
        screen = app.screen
        assert isinstance(screen, JobScreen)
        series = Series("loss")
        other = Series("lr")
        for number, value in enumerate(values):
            series.add(number * 1e308, value)
            other.add(number, value)
        screen.doing.show(Activity(series={"loss": series, "lr": other}))
        await until(pilot, lambda: f"{values[-1]:.6g}" in screen_text(app), "the value")
        assert NOTE not in screen_text(app)


async def test_cursor_of_a_list_is_reverse_where_css_says_so():
    class ListApp(App):
        CSS = "Options > .option-list--option-highlighted { text-style: reverse; }"

        def compose(self):
            yield Options("one", "two")

    async with ListApp().run_test(size=(20, 4)) as pilot:
        listed = pilot.app.query_one(Options)
        listed.highlighted = 0
        await pilot.pause()
        drawn = [any(segment.style and segment.style.reverse for segment in listed.render_line(y)) for y in (0, 1)]
    assert drawn == [True, False]
