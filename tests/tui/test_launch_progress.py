"""A launch that takes long before anything runs: it says how far it is, goes on in the background, or is ended."""

from __future__ import annotations

import threading

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app
from support.screens import Driver, Launch, jobs_of, launch_of, text_of
from support.waiting import NEVER, PATIENCE

from torchx_tui.backends.shared.progress import current_progress
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import progress as launch_watch
from torchx_tui.tui.launch.progress_dialog import LaunchDialog
from torchx_tui.tui.ui.dialog import AskDialog

NARROW = (80, 24)


class PullingScheduler(CannedScheduler):
    """Pulls an image before it launches, for as long as the test likes."""

    def __init__(self) -> None:
        super().__init__()
        self.add("old-zq2wmx7v5hkdfx", AppState.SUCCEEDED, 60)
        self.go_on = threading.Event()
        self.launched: list[str] = []

    def schedule(self, dryrun_info):
        progress = current_progress()
        progress.report("pulling [red]image: 1 of 3 layers")
        progress.report("pulling [red]image: 2 of 3 layers")
        with progress.ended_by(self.go_on.set):
            assert self.go_on.wait(PATIENCE)
        progress.report("starting")
        self.launched.append("new-zq2wmx7v5hkdfy")
        return "new-zq2wmx7v5hkdfy"


@pytest.fixture
def scheduler():
    return PullingScheduler()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(launch_watch, "SOON", 0.3)


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = make_app(scheduler, tmp_path)
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["local_cwd"])
    old = AppDef("old", [Role("r", "image", entrypoint="sh")])
    made.runner.journal.record_intent(old, "local_cwd", "torchx", {}, expected_app_id="old-zq2wmx7v5hkdfx")
    yield made
    scheduler.go_on.set()


async def pulling(driver: Driver, *keys: str) -> LaunchDialog:
    """Press keys, and wait for the dialog of a launch that pulls."""
    dialog = await driver.open(LaunchDialog, *keys)
    await driver.shows("2 of 3 layers", on="dialog_text")
    return dialog


async def filled(launch: Launch) -> None:
    await launch.until(lambda: launch.editor.is_ready, "the form")


async def test_the_dialog_follows_the_launch_and_closes(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        dialog = await pulling(table, "r")
        # One line for one thing, the last word of it; a text of others is no markup.
        assert "pulling [red]image: 2 of 3 layers" in table.dialog_text().split("\n")
        assert "1 of 3" not in table.dialog_text()
        dialog.say("pulling [red]image: 3 of 3 layers")
        assert "pulling [red]image: 3 of 3 layers" in table.dialog_text().split("\n")
        assert "2 of 3" not in table.dialog_text()
        assert table.focused() is dialog.query_one("#background")
        scheduler.go_on.set()
        await table.back()
        assert scheduler.launched
        assert "Launched old" in table.said()


async def test_a_launch_is_ended_before_anything_runs(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        dialog = await pulling(table, "r")
        progress = dialog.query_one("#launch-progress")
        await table.back("right", "enter")
        assert text_of(progress).strip().endswith("\nStopping the launch")
        assert scheduler.launched == []
        assert "The launch was ended before anything ran" in table.said()


async def test_a_launch_continues_in_the_background(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        await pulling(table, "r")
        await table.back("enter")
        scheduler.go_on.set()
        await table.shows("Launched old", on="said")
        assert scheduler.launched
        assert app.screen is table.screen


async def test_a_screen_above_does_not_keep_the_dialog(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        await pulling(table, "r")
        await table.press("f1")
        scheduler.go_on.set()
        await table.shows("Launched old", on="said")
        await table.back("escape")


async def test_a_form_whose_launch_was_ended_is_submitted_again(app, scheduler):
    async with launch_of(app, "utils.echo") as launch:
        await filled(launch)
        await pulling(launch, "ctrl+s")
        await launch.back("right", "enter")
        await launch.shows("Not launched: The launch was ended", on="said")
        assert scheduler.launched == []
        scheduler.go_on.clear()
        await pulling(launch, "ctrl+s")
        scheduler.go_on.set()
        await launch.open(JobsScreen)
        assert len(scheduler.launched) == 1
        assert any("new-" in handle for handle in app.jobs.rows)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The form is left while its launch continues.
        (["escape", "escape"], []),
        # A form that is covered at the end of its launch leaves once it is on top, and submits nothing more.
        (["f1"], ["escape", "ctrl+s"]),
    ],
    ids=["left", "covered"],
)
async def test_a_form_launches_once_in_the_background(app, scheduler, before, after):
    async with launch_of(app, "utils.echo", NARROW) as launch:
        await filled(launch)
        await pulling(launch, "ctrl+s")
        await launch.back("enter")
        await launch.press(*before)
        scheduler.go_on.set()
        await launch.shows("Launched new-", on="said")
        await launch.open(JobsScreen, *after)
        assert len(scheduler.launched) == 1


@pytest.fixture
def due(app, monkeypatch):
    """Return what opens the dialogs of launches; the test calls it."""
    found, set_timer = [], app.set_timer

    def set_timer_by_hand(seconds, callback, **options):
        return found.append(callback) if seconds == launch_watch.SOON else set_timer(seconds, callback, **options)

    # No other timer's time.
    monkeypatch.setattr(launch_watch, "SOON", NEVER + 1)
    monkeypatch.setattr(app, "set_timer", set_timer_by_hand)
    return found


async def test_a_short_launch_shows_no_dialog(app, scheduler, due):
    scheduler.go_on.set()
    async with jobs_of(app, NARROW) as table:
        await table.press("r", shows="Launched old", on="said")
        (open_dialog,) = due
        open_dialog()
        await table.settled()
        assert app.screen is table.screen


async def test_the_dialog_does_not_interrupt_somebody_who_types(app, scheduler, due):
    async with jobs_of(app) as table:
        await table.press("r", until=lambda: app.launches.under_way, what="the first word of the launch")
        # Were the dialog there in the midst of this, its keys would act.
        await table.press("slash", *"state:py")
        (open_dialog,) = due
        open_dialog()
        await table.pilot.pause()
        assert app.screen is table.screen
        assert table.screen.table_pane.filter.value == "state:py"
        # A command opens it.
        await table.press("escape", "colon", *"show the launch", "enter")
        await pulling(table)
        # No letter ends it.
        await table.press("y", "x", "e")
        scheduler.go_on.set()
        await table.back()
        assert scheduler.launched


async def test_quitting_during_a_launch_asks(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        await pulling(table, "r")
        await table.back("enter")
        await table.dialog(AskDialog, "ctrl+q")
        assert "Being launched, and not running yet:" in table.dialog_text()
        assert "old" in table.dialog_text()
        # Quitting twice asks once.
        await table.press("ctrl+q")
        await table.back("escape")
        assert not scheduler.go_on.is_set()
        await table.dialog(AskDialog, "ctrl+q")
        await table.press("y", until=lambda: app.return_code == 0, what="the end")
        assert scheduler.launched == []


async def test_quitting_waits_for_a_launch_that_ends_soon(app, scheduler):
    async with jobs_of(app, NARROW) as table:
        await pulling(table, "r")
        await table.back("enter")
        await table.press("ctrl+q")
        scheduler.go_on.set()
        await table.until(lambda: app.return_code == 0, "the end")
        assert scheduler.launched
