"""Keys that a person chose: they act, they are shown, and names are checked."""

from pathlib import Path

import pytest
from support.canned import CannedScheduler, busy_scheduler
from support.dashboard import make_app, screen_text, until
from support.launching import LaunchingScheduler, form_of, launching_app, opened, ready, row_of, type_into
from support.pictures import FAILED, RUNNING
from support.screens import jobs_of
from textual.actions import parse
from textual.binding import Binding
from textual.pilot import Pilot
from textual.screen import Screen

from torchx_tui.settings.config import Settings
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.keymap import keys_page, named_keys, owners
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui.base import BaseScreen
from torchx_tui.tui.ui.dialog import AskDialog

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"


async def test_chosen_key_replaces_the_usual_one(tmp_path):
    keys = {"jobs.cancel": "ctrl+x", "table.down": "n", "logs.follow": "ctrl+f"}
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=Settings(keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.query_one(JobTable).row_count > 0)
        jobs, table = app.screen, app.query_one(JobTable)
        hints = {hint.word: hint.key for hint in jobs.query_one(KeyBar).hints}
        assert hints["Cancel"] == "ctrl+x"
        assert hints["Filter"] == "/"
        first = table.cursor_row
        await pilot.press("x")
        assert app.screen is jobs
        await pilot.press("n")
        await until(pilot, lambda: table.cursor_row != first)
        assert app.screen is jobs
        await pilot.press("ctrl+x")
        await until(pilot, lambda: isinstance(app.screen, AskDialog))
        await pilot.press("escape", "l")
        await until(pilot, lambda: isinstance(app.screen, LogsScreen))
        assert {hint.word: hint.key for hint in app.screen.query_one(KeyBar).hints}["Follow"] == "ctrl+f"


async def test_chosen_key_acts_in_a_field(tmp_path, monkeypatch):
    # In a field all of these move the cursor, or delete something.
    keys = {"picker.down": "ctrl+a", "picker.up": "ctrl+w", "picker.page_down": "ctrl+f", "picker.page_up": "delete"}
    keys |= {"picker.pin": "home", "launch.back": "ctrl+right", "launch.submit": "end", "launch.copy": "shift+end"}
    keys |= {"launch.preview": "ctrl+a", "launch.dry_run": "ctrl+w", "launch.profile": "ctrl+f"}
    keys |= {"launch.several": "home", "launch.ignore_config": "ctrl+u"}
    scheduler = LaunchingScheduler()
    app = launching_app(scheduler, tmp_path, monkeypatch, Settings(keys=keys))
    copied: list[str] = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, *_, **__: copied.append(text))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: screen.chooser.picker.list.option_count > 8, "the list")
        cursor = []
        for key in ("ctrl+a", "ctrl+f", "ctrl+w", "delete"):
            await pilot.press(key)
            cursor.append(screen.chooser.picker.list.highlighted)
        last = screen.chooser.picker.list.option_count - 1
        assert cursor == [1, last, last - 1, 0]
        await pilot.press("home")
        assert "is pinned" in app.status.message
        await pilot.press("ctrl+right")
        screen = await form_of(pilot, app, "utils.echo")
        await ready(pilot, screen)
        for key, tab in (("ctrl+a", "diff"), ("ctrl+w", "dry run")):
            await pilot.press(key)
            assert screen.editor.preview.tab == tab
        await pilot.press("ctrl+f")
        await until(pilot, lambda: "[profiles.NAME]" in app.status.message, "the words")
        for words in (".torchxconfig is ignored", ".torchxconfig is used"):
            await pilot.press("ctrl+u")
            await until(pilot, lambda words=words: app.status.message == words, words)
        await ready(pilot, screen)
        await pilot.press("shift+end")
        await until(pilot, lambda: copied and copied[0].startswith("torchx-tui run"), "the command")
        for is_swept in (True, False):
            await pilot.press("home")
            await until(pilot, lambda is_swept=is_swept: row_of(screen, "msg").field.is_swept is is_swept, "a sweep")
        await ready(pilot, screen)
        await pilot.press("end")
        await until(pilot, lambda: scheduler.launched, "the launch")


async def _shown(pilot: Pilot, *texts: str) -> None:
    await until(pilot, lambda: all(text in screen_text(pilot.app) for text in texts), f"{texts}")


@pytest.mark.parametrize(
    ("job", "keys", "shown"),
    [
        (
            RUNNING, "jobs.back=ctrl+b dialog.back=ctrl+d dialog.confirm=ctrl+f columns.show=ctrl+k keys.back=ctrl+o",
            {
                "x": "ctrl+f Cancel the job    ctrl+d back", "ctrl+d c": "ctrl+k show   J K move",
                "ctrl+d question_mark": "ctrl+o back", "ctrl+o slash z z": "No job matches zz   ctrl+b clear",
            },
        ),
        (
            FAILED, "jobs.edit=f5 jobs.logs=f6 why.copy=f7",
            {"enter": "f5 edit and relaunch    f6 logs at this line    f7 copy the reason"},
        ),
        (
            RUNNING, "logs.leave=f5 logs.copy=f6 logs.follow=f7 search.regex=f8 logs.match=f9",
            {
                "l": "Following", "k": "f7 to follow", "v": "f6 copy   f5 leave", "f5 slash": "f8 text or expression",
                "s t e p enter": "f9 next   N previous   f5 clear",
            },
        ),
    ],
)  # fmt: skip
async def test_texts_show_chosen_keys(tmp_path, job, keys, shown):
    settings = Settings(keys=dict(pair.split("=") for pair in keys.split()))
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=settings)
    async with jobs_of(app, (120, 50)) as table:
        table.table.move_to(job)
        for pressed, text in shown.items():
            await table.press(*pressed.split())
            await table.shows(text, on="drawn")


async def test_first_run_shows_chosen_keys(tmp_path):
    keys = {"jobs.new": "f5", "app.keys": "f6", "app.commands": "f7"}
    app = make_app(CannedScheduler(), tmp_path, settings=Settings(keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await _shown(pilot, "f5  Launch a job", "f6  Keys of this view", "f7  Do anything by name")


async def test_form_shows_chosen_keys(tmp_path, monkeypatch):
    keys = {"launch.submit": "f5", "role.show": "f6", "choice.next": "f7", "dialog.take": "f8"}
    app = launching_app(LaunchingScheduler(), tmp_path, monkeypatch, Settings(keys=keys))
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await ready(pilot, screen)
        await _shown(pilot, "f5 submits", "f6 changes")
        screen.editor.form.scheduler.focus()
        await _shown(pilot, "Press f7 or left to choose another one")
        screen.query_one(RoleRule).focus()
        await _shown(pilot, "Press f6 to change this role's")
        await type_into(pilot, screen, "num_replicas", "x")
        await _shown(pilot, "f5 goes there")


@pytest.mark.parametrize(("name", "words"), [("job.cancel", "did you mean jobs.cancel"), ("zzz", "known are")])
async def test_a_name_that_no_key_has_is_said_at_the_start(tmp_path, name, words):
    keys = {name: "x", "jobs.cancel": "ctrl+x"}
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=Settings(keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.query_one(JobTable).row_count > 0)
        assert f"config.toml: keys: {name} is not the name of a key; {words}" in app.status.message
        await pilot.press("ctrl+x")
        await until(pilot, lambda: isinstance(app.screen, AskDialog))


def test_every_key_can_be_chosen():
    nameless = [
        f"{owner.__name__}: {binding.key}"
        for owner in owners()
        for binding in owner.__dict__.get("BINDINGS", ())
        if isinstance(binding, Binding) and not binding.id and not binding.system
    ]
    assert not nameless


def test_every_key_has_something_to_do():
    found = owners()
    # Where the name of an action looks for it.
    places = {"screen": [owner for owner in found if issubclass(owner, Screen)], "app": [TorchXTuiApp]}
    for owner in found:
        for binding in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
            place, name, _ = parse(binding.action)
            found = [each for each in places.get(place, [owner]) if hasattr(each, f"action_{name}")]
            assert all((found, binding.key, binding.description)), f"{owner.__name__}: {binding}"


def test_no_title_above_keys_is_empty():
    titles = {owner: owner.__dict__.get("HELP_TITLE") for owner in owners() if owner is not BaseScreen}
    assert not [owner.__name__ for owner, title in titles.items() if title == ""]


def test_the_page_lists_every_key():
    assert PAGE.read_text(encoding="utf-8") == keys_page(), "run: python docs/reference/keys.py"
    assert {"jobs.cancel", "logs.search", "launch.submit", "table.mark", "app.quit"} <= set(named_keys())
