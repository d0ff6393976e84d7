"""The command palette: what it offers, in which order, and that names of jobs are text."""

import time
from contextlib import asynccontextmanager

import pytest
from support.dashboard import make_app
from support.screens import Driver, Launch, jobs_of
from textual import events
from textual.command import Command
from textual.widgets import Input

from torchx_tui.specs.status import AppState
from torchx_tui.tui import command_palette
from torchx_tui.tui.command_palette import Commands, CommandsScreen
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.launch import component_list
from torchx_tui.tui.launch.screen import LaunchScreen

HOSTILE = ["train [rank0] y", "eval[/red]x2", "[@click=app.quit]press", "[bold]b", "\x1b[31mred"]
NEWEST = "qwen2-7b-dpo-d2t5m0xk8wqhzn"


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_app(scheduler, tmp_path)


class Palette(Driver):
    """The palette."""

    def prompts(self):
        """Return the commands, each with its help."""
        options = self.screen.query_one(Commands).options
        return [option.prompt for option in options if isinstance(option, Command)]

    def names(self):
        return [str(prompt).partition("\n")[0] for prompt in self.prompts()]

    async def listed(self, text=""):
        """Wait until all was looked for."""
        await self.until(lambda: self.screen.listed_for == text, "the commands")

    def type(self, text):
        self.screen.query_one(Input).value = text

    async def finds(self, text, name):
        """Search, and wait until a command is the first."""
        self.type(text)
        await self.until(lambda: self.names()[:1] == [name], name)


@asynccontextmanager
async def palette_of(app, *keys):
    """Open the palette over the jobs, where these keys were pressed."""
    async with jobs_of(app) as table:
        await table.press(*keys)
        await table.open(CommandsScreen, "colon")
        palette = Palette(table.pilot)
        await palette.listed()
        yield palette


async def test_palette_begins_with_what_is_done_with_the_job_at_the_cursor(app):
    async with palette_of(app) as palette:
        names = palette.names()
        assert names[:5] == ["Open the job", "Logs, full screen", "Relaunch as it was", "Edit and relaunch", "Cancel"]
        assert str(palette.prompts()[0]) == f"Open the job\nkey enter   {NEWEST}"
        assert not {"Down", "Up", "First", "Last", "Page down", "Half a page up"} & set(names)
        # Jobs, and then components, follow by name.
        await palette.until(lambda: any(name.startswith("Launch ") for name in palette.names()), "components")
        names = palette.names()
        jobs = [number for number, name in enumerate(names) if name.startswith("Open ") and "-" in name]
        components = [number for number, name in enumerate(names) if name.startswith("Launch ")]
        assert max(jobs) < min(components)
        assert names[jobs[0]] == f"Open {NEWEST}"
        await palette.finds("launch utils.echo", "Launch utils.echo")
        await palette.open(LaunchScreen, "enter")
        launch = Launch(palette.pilot)
        await launch.opened()
        assert launch.component() == "utils.echo"


async def test_components_that_are_read_late_are_offered_once_they_are_there(app, monkeypatch, hold):
    held = hold(component_list, "each_listed")
    monkeypatch.setattr(command_palette, "COMPONENTS_WAIT", 0.2)
    async with palette_of(app, "space", "space", "space") as palette:
        # Marked jobs are counted.
        assert "Cancel\nkey x   3 jobs" in map(str, palette.prompts())
        palette.type("launch utils.echo")
        await palette.listed("launch utils.echo")
        assert "Launch utils.echo" not in palette.names()
        held.go.set()
        await palette.until(lambda: palette.names()[:1] == ["Launch utils.echo"], "the match")


async def test_names_of_jobs_are_no_markup(app, scheduler):
    for minutes, name in enumerate([*HOSTILE, "a" * 200]):
        scheduler.add(name, AppState.RUNNING, 1 + minutes)
    async with palette_of(app) as palette:
        # Nothing behind a name is hidden by it.
        assert any(name.startswith("Launch ") for name in palette.names())
        assert {f"Open {name}" for name in HOSTILE[:4]} <= set(palette.names())
        # Textual's own matcher takes longer than anybody waits.
        began = time.process_time()
        palette.type("aaaaaaaaaaaaaaaaaaaaaaaaab")
        await palette.until(lambda: not any(name.startswith("Open a") for name in palette.names()), "no match")
        assert time.process_time() - began < 30
        await palette.finds("rank0", "Open train [rank0] y")
        assert not any("click" in str(span.style) for span in palette.prompts()[0].spans)
        job = await palette.open(JobScreen, "enter")
        assert job.row.name == "train [rank0] y"


async def test_palette_is_closed_by_clicks(app):
    async with palette_of(app) as palette:
        before = palette.screen
        # As a click does; the palette that was closed is still being removed when the next one is opened.
        before.dismiss()
        await app.action_command_palette()
        palette = Palette(palette.pilot)
        assert isinstance(palette.screen, CommandsScreen)
        assert palette.screen is not before
        await palette.listed()
        # A click beyond a smaller screen is ignored.
        await palette.resize(80, 24)
        await palette.until(lambda: palette.screen.size.width == 80, "the new size")
        for x, y in ((100, 35), (0, 23)):
            assert app.screen is palette.screen
            click = events.Click(palette.screen, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)
            palette.screen.post_message(click)
            await palette.pilot.pause()
        await palette.until(lambda: app.screen is not palette.screen, "the jobs")
