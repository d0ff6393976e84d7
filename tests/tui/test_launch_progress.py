"""A launch that takes long before anything runs: it says how far it is, goes on in the background, or is ended."""

from __future__ import annotations

import threading

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app, until
from support.waiting import NEVER, PATIENCE
from textual.widgets import Button

from torchx_tui.backends.shared.progress import current_progress
from torchx_tui.specs import AppDef, AppState, Role
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import progress as launch_watch
from torchx_tui.tui.launch.progress_dialog import LaunchDialog
from torchx_tui.tui.launch.screen import LaunchScreen


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


async def dialog_of(pilot, app) -> LaunchDialog:
    await until(pilot, lambda: isinstance(app.screen, LaunchDialog), "the dialog")
    dialog = app.screen
    await until(pilot, lambda: "2 of 3 layers" in words(dialog), "the words")
    return dialog


def words(dialog: LaunchDialog) -> str:
    return str(dialog._text.content)


async def relaunched(pilot, app) -> LaunchDialog:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    await pilot.press("r")
    return await dialog_of(pilot, app)


async def submitted(pilot, app) -> LaunchScreen:
    """Submit the form of utils.echo."""
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
    await pilot.press("n")
    await until(
        pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.chooser.picker.components, "the components"
    )
    screen = app.screen
    await pilot.press(*"utils.echo")
    await until(
        pilot, lambda: screen.chooser.picker.highlighted and screen.chooser.picker.highlighted.name == "utils.echo"
    )
    await pilot.press("enter")
    await until(
        pilot,
        lambda: screen.editor.model is not None and screen.editor.form.rows and screen.editor.is_ready,
        "the form",
    )
    await pilot.press("ctrl+s")
    return screen


async def test_it_says_how_far_it_is_and_goes_away_at_the_end(app, scheduler):
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = await relaunched(pilot, app)
        # One line for one thing, the last word of it; a text of others is no markup.
        assert words(dialog).split("\n")[1] == "pulling [red]image: 2 of 3 layers"
        assert "1 of 3" not in words(dialog)
        dialog.say("pulling [red]image: 3 of 3 layers")
        assert words(dialog).split("\n")[1:3] == ["pulling [red]image: 3 of 3 layers", ""]
        assert isinstance(app.focused, Button)
        assert app.focused.id == "background"
        scheduler.go_on.set()
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the end")
        assert scheduler.launched
        assert "Launched old" in app.status.text().plain


async def test_it_is_ended_before_anything_runs(app, scheduler):
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = await relaunched(pilot, app)
        await pilot.press("right", "enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the end")
        assert words(dialog).strip().endswith("\nEnding it")
        assert scheduler.launched == []
        assert "The launch was ended before anything ran" in app.status.text().plain


async def test_it_goes_on_in_the_background(app, scheduler):
    async with app.run_test(size=(80, 24)) as pilot:
        await relaunched(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
        scheduler.go_on.set()
        await until(pilot, lambda: scheduler.launched and "Launched old" in app.status.text().plain, "the end")
        assert isinstance(app.screen, JobsScreen)


async def test_a_screen_above_does_not_keep_it(app, scheduler):
    async with app.run_test(size=(80, 24)) as pilot:
        await relaunched(pilot, app)
        await pilot.press("f1")
        scheduler.go_on.set()
        await until(pilot, lambda: "Launched old" in app.status.text().plain, "the end")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")


async def test_a_form_whose_launch_was_ended_can_be_submitted_again(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await submitted(pilot, app)
        await dialog_of(pilot, app)
        await pilot.press("right", "enter")
        await until(pilot, lambda: app.screen is screen, "the form")
        await until(pilot, lambda: "not launched: The launch was ended" in app.status.text().plain, "the words")
        assert scheduler.launched == []
        scheduler.go_on.clear()
        await pilot.press("ctrl+s")
        await dialog_of(pilot, app)
        scheduler.go_on.set()
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
        assert len(scheduler.launched) == 1
        assert any("new-" in handle for handle in app.jobs.rows)


async def test_a_form_may_be_left_while_its_launch_goes_on(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await submitted(pilot, app)
        await dialog_of(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen, "the form")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
        scheduler.go_on.set()
        await until(pilot, lambda: "Launched new-" in app.status.text().plain, "the end")
        assert len(scheduler.launched) == 1


async def test_form_under_the_keys_launches_once(app, scheduler):
    """A form that was covered when its launch ended leaves as soon as it is on top, and submits nothing more."""
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await submitted(pilot, app)
        await dialog_of(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen, "the form")
        await pilot.press("f1")
        scheduler.go_on.set()
        await until(pilot, lambda: "Launched new-" in app.status.text().plain, "the end")
        await pilot.press("escape", "ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
        assert len(scheduler.launched) == 1


async def test_a_launch_that_is_over_soon_shows_no_dialog(app, scheduler, monkeypatch):
    pushed, due, set_timer = [], [], app.set_timer

    def set_timer_by_hand(seconds, callback, **options):
        if seconds != launch_watch.SOON:
            return set_timer(seconds, callback, **options)
        return due.append(callback)

    monkeypatch.setattr(app, "push_screen", lambda screen, *_: pushed.append(screen))
    # What a busy machine takes for the launch is no matter: the dialog is due right after it.
    monkeypatch.setattr(app, "set_timer", set_timer_by_hand)
    scheduler.go_on.set()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
        await pilot.press("r")
        await until(pilot, lambda: scheduler.launched and "Launched old" in app.status.text().plain, "the end")
        (is_due,) = due
        is_due()
        assert pushed == []


async def test_who_has_gone_on_to_something_else_is_not_disturbed(app, scheduler, monkeypatch):
    # It comes when the test lets it.
    monkeypatch.setattr(launch_watch, "SOON", NEVER)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
        await pilot.press("r")
        await until(pilot, lambda: app.launches.under_way, "the first word of the launch")
        # Were the dialog there in the midst of this, its keys would act.
        await pilot.press("slash", *"state:py")
        progress = app.launches.under_way[0][1]
        app.launches._open(progress)
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
        assert app.screen.table_pane.filter.value == "state:py"
        # It is a command away.
        await pilot.press("escape", "colon", *"show the launch", "enter")
        await dialog_of(pilot, app)
        # No letter ends it.
        await pilot.press("y", "x", "e")
        scheduler.go_on.set()
        await until(pilot, lambda: scheduler.launched and isinstance(app.screen, JobsScreen), "the end")
