"""The command palette: what it offers, in which order, and that names of jobs are text."""

import threading
import time

import pytest
from support.dashboard import make_app, until
from support.waiting import PATIENCE
from textual import events
from textual.command import Command
from textual.widgets import Input

from torchx_tui.specs import AppState
from torchx_tui.tui import command_palette
from torchx_tui.tui.command_palette import Commands, CommandsScreen
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.screen import LaunchScreen

HOSTILE = ["train [rank0] y", "eval[/red]x2", "[@click=app.quit]press", "[bold]b", "\x1b[31mred"]


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_app(scheduler, tmp_path)


async def opened(pilot, app):
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    await pilot.press("colon")
    # The list grows until all was looked for.
    await until(pilot, lambda: isinstance(app.screen, CommandsScreen) and app.screen.listed_for == "", "the commands")


def listed(app) -> list[str]:
    """The commands in the list, without their help."""
    options = app.screen.query_one(Commands).options
    return [str(option.prompt).partition("\n")[0] for option in options if isinstance(option, Command)]


async def test_it_begins_with_what_is_done_with_the_job_at_the_cursor(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        assert listed(app)[:5] == [
            "Open the job",
            "Logs, full screen",
            "Relaunch as it was",
            "Edit and relaunch",
            "Cancel",
        ]
        first = app.screen.query_one(Commands).get_option_at_index(0).prompt.plain
        assert first == "Open the job\nkey enter   qwen2-7b-dpo-d2t5m0xk8wqhzn"
        assert not {"Down", "Up", "First", "Last", "Page down", "Half a page up"} & set(listed(app))


async def test_jobs_and_components_follow_by_name(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: any(name.startswith("Launch ") for name in listed(app)), "components")
        names = listed(app)
        jobs = [number for number, name in enumerate(names) if name.startswith("Open ") and "-" in name]
        components = [number for number, name in enumerate(names) if name.startswith("Launch ")]
        assert max(jobs) < min(components)
        assert names[jobs[0]] == "Open qwen2-7b-dpo-d2t5m0xk8wqhzn"


async def test_a_component_is_opened_in_its_form(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        app.screen.query_one(Input).value = "launch utils.echo"
        await until(pilot, lambda: listed(app)[:1] == ["Launch utils.echo"], "the match")
        await pilot.press("enter")
        await until(
            pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.model is not None, "the form"
        )
        assert app.screen.editor.model.doc.name == "utils.echo"


async def test_components_that_are_read_late_are_offered_once_they_are_there(app, monkeypatch):
    may_go_on = threading.Event()
    list_them = command_palette.growing_list

    def late(*arguments):
        may_go_on.wait(PATIENCE)
        yield from list_them(*arguments)

    monkeypatch.setattr(command_palette, "growing_list", late)
    monkeypatch.setattr(command_palette, "COMPONENTS_WAIT", 0.2)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        app.screen.query_one(Input).value = "launch utils.echo"
        await until(pilot, lambda: app.screen.listed_for == "launch utils.echo", "the search without them")
        assert "Launch utils.echo" not in listed(app)
        may_go_on.set()
        await until(pilot, lambda: listed(app)[:1] == ["Launch utils.echo"], "the match")


async def test_names_of_jobs_are_no_markup(app, scheduler):
    for minutes, name in enumerate(HOSTILE):
        scheduler.add(name, AppState.RUNNING, 1 + minutes)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        # Nothing behind a name is hidden by it.
        assert any(name.startswith("Launch ") for name in listed(app))
        for name in ("train [rank0] y", "eval[/red]x2", "[@click=app.quit]press", "[bold]b"):
            assert f"Open {name}" in listed(app)
        app.screen.query_one(Input).value = "rank0"
        await until(pilot, lambda: listed(app)[:1] == ["Open train [rank0] y"], "the match")
        prompt = app.screen.query_one(Commands).get_option_at_index(0).prompt
        assert not any("click" in str(span.style) for span in prompt.spans)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen), "the job")
        assert app.screen.row.name == "train [rank0] y"


async def test_no_name_takes_long_to_match(app, scheduler):
    scheduler.add("a" * 200, AppState.RUNNING, 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        began = time.process_time()
        app.screen.query_one(Input).value = "aaaaaaaaaaaaaaaaaaaaaaaaab"
        await until(pilot, lambda: not any(name.startswith("Open a") for name in listed(app)), "no match")
        # Textual's own matcher takes longer than anybody waits.
        assert time.process_time() - began < 30


async def test_marked_jobs_are_counted(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
        await pilot.press("space", "space", "space")
        await opened(pilot, app)
        prompts = [option.prompt.plain for option in app.screen.query_one(Commands).options]
        assert "Cancel\nkey x   3 jobs" in prompts


def clicked(widget, x, y):
    """A click of the left button on a widget, somewhere on the screen."""
    return events.Click(widget, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


async def test_palette_opens_right_after_a_click_closed_it(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        before = app.screen
        # As a click does; the palette that was closed is still being removed when the next one is opened.
        before.dismiss()
        await app.action_command_palette()
        assert isinstance(app.screen, CommandsScreen)
        assert app.screen is not before
        await until(pilot, lambda: app.screen.listed_for == "", "the commands")


async def test_click_beyond_a_smaller_screen_is_ignored(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        palette = app.screen
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: palette.size.width == 80, "the new size")
        palette.post_message(clicked(palette, 100, 35))
        await pilot.pause()
        assert app.screen is palette
        palette.post_message(clicked(palette, 0, 23))
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
