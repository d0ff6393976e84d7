"""Keys that a person chose: they act, they are shown, and names are checked."""

from pathlib import Path

import pytest
from support.canned import CannedScheduler, busy_scheduler
from support.dashboard import make_app
from support.launching import LaunchingScheduler, launching_app
from support.pictures import FAILED, RUNNING
from support.screens import jobs_of, launch_of
from textual.actions import parse
from textual.binding import Binding
from textual.screen import Screen

from torchx_tui.settings.config import Settings
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.keymap import keys_page, named_keys, owners
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.ui.base import BaseScreen
from torchx_tui.tui.ui.dialog import AskDialog

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"


def app_with(folder, keys, kind=busy_scheduler):
    """Return a dashboard in which a person chose these keys."""
    return make_app(kind(folder / "logs"), folder, settings=Settings(keys=keys))


async def test_chosen_key_replaces_the_usual_one(tmp_path):
    app = app_with(tmp_path, {"jobs.cancel": "ctrl+x", "table.down": "n", "logs.follow": "ctrl+f"})
    async with jobs_of(app) as table:
        assert {"ctrl+x Cancel", "/ Filter"} <= {*table.key_hints()}
        first = table.at()
        await table.press("x")
        assert app.screen is table.screen
        await table.press("n", until=lambda: table.at() != first, what="the next job")
        assert app.screen is table.screen
        await table.open(AskDialog, "ctrl+x")
        await table.open(LogsScreen, "escape", "l")
        assert "ctrl+f Follow" in table.key_hints()


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
    async with jobs_of(app, rows=0) as table:
        launch = await table.picker()
        options = launch.screen.picker.list
        await launch.until(lambda: options.option_count > 8, "the list")
        cursor = []
        for key in ("ctrl+a", "ctrl+f", "ctrl+w", "delete"):
            await launch.press(key)
            cursor.append(options.highlighted)
        last = options.option_count - 1
        assert cursor == [1, last, last - 1, 0]
        await launch.press("home")
        assert "is pinned" in launch.said()
        await table.back("ctrl+right")
        launch = await table.picker()
        await launch.pick("utils.echo")
        await launch.until(launch.at, "the focus on a field")
        await launch.ready()
        for key, tab in (("ctrl+a", "diff"), ("ctrl+w", "dry run")):
            await launch.press(key)
            assert launch.tab() == tab
        await launch.press("ctrl+f", shows="[profiles.NAME]", on="said")
        for words in (".torchxconfig is ignored", ".torchxconfig is used"):
            await launch.press("ctrl+u", shows=words, on="said")
        await launch.ready()
        await launch.press(
            "shift+end", until=lambda: copied and copied[0].startswith("torchx-tui run"), what="the command"
        )
        for is_swept in (True, False):
            await launch.press(
                "home", until=lambda is_swept=is_swept: launch.field("msg").is_swept is is_swept, what="a sweep"
            )
        await launch.ready()
        await launch.press("end", until=lambda: scheduler.launched, what="the launch")


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
    app = app_with(tmp_path, dict(pair.split("=") for pair in keys.split()))
    async with jobs_of(app, (120, 50)) as table:
        table.table.move_to(job)
        for pressed, text in shown.items():
            await table.press(*pressed.split(), shows=text, on="drawn")


async def test_first_run_shows_chosen_keys(tmp_path):
    app = app_with(tmp_path, {"jobs.new": "f5", "app.keys": "f6", "app.commands": "f7"}, CannedScheduler)
    async with jobs_of(app, rows=0) as table:
        await table.shows("f5  Launch a job", "f6  Keys of this view", "f7  Do anything by name", on="drawn")


async def test_form_shows_chosen_keys(tmp_path, monkeypatch):
    keys = {"launch.submit": "f5", "role.show": "f6", "choice.next": "f7", "dialog.take": "f8"}
    app = launching_app(LaunchingScheduler(), tmp_path, monkeypatch, Settings(keys=keys))
    async with launch_of(app, "utils.echo", (160, 50)) as launch:
        await launch.ready()
        await launch.shows("f5 submits", "f6 changes", on="drawn")
        launch.form.scheduler.focus()
        await launch.shows("Press f7 or left to choose another one", on="drawn")
        launch.screen.query_one(RoleRule).focus()
        await launch.shows("Press f6 to change this role's", on="drawn")
        await launch.type(num_replicas="x")
        await launch.shows("f5 goes there", on="drawn")


@pytest.mark.parametrize(("name", "words"), [("job.cancel", "did you mean jobs.cancel"), ("zzz", "known are")])
async def test_a_name_that_no_key_has_is_said_at_the_start(tmp_path, name, words):
    async with jobs_of(app_with(tmp_path, {name: "x", "jobs.cancel": "ctrl+x"})) as table:
        assert f"config.toml: keys: {name} is not the name of a key; {words}" in table.said()
        await table.open(AskDialog, "ctrl+x")


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
