"""Keys that a person chose: they act, they are shown, and names are checked."""

from pathlib import Path

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, until
from textual.actions import parse
from textual.binding import Binding
from textual.screen import Screen

from torchx_tui.settings.config import Settings, load_settings
from torchx_tui.specs import ConfigError
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.job.dialogs import CancelDialog
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.keymap import _owners, keys_page, named_keys
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui.base import BaseScreen

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"


async def test_a_chosen_key_acts_and_is_shown_and_the_usual_one_does_nothing(tmp_path):
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
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        await pilot.press("escape", "l")
        await until(pilot, lambda: isinstance(app.screen, LogsScreen))
        assert {hint.word: hint.key for hint in app.screen.query_one(KeyBar).hints}["Follow"] == "ctrl+f"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"jobs.cancel" = ""', "write keys as"),
        ('"jobs.cancel" = "press x"', "write keys as"),
        ('"jobs.cancel" = 3', "keys"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, words):
    path = tmp_path / "config.toml"
    path.write_text(f"[keys]\n{text}\n")
    with pytest.raises(ConfigError, match=words) as caught:
        load_settings(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("name", "words"), [("job.cancel", "did you mean jobs.cancel"), ("zzz", "known are")])
async def test_a_name_that_no_key_has_is_said_at_the_start(tmp_path, name, words):
    keys = {name: "x", "jobs.cancel": "ctrl+x"}
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=Settings(keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.query_one(JobTable).row_count > 0)
        assert f"config.toml: keys: {name} is not a key's name; {words}" in app.status.text().plain
        await pilot.press("ctrl+x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))


def test_every_key_can_be_chosen():
    nameless = [
        f"{owner.__name__}: {binding.key}"
        for owner in _owners()
        for binding in owner.__dict__.get("BINDINGS", ())
        if isinstance(binding, Binding) and not binding.id and not binding.system
    ]
    assert not nameless


def test_every_key_has_something_to_do():
    owners = _owners()
    # Where the name of an action looks for it.
    places = {"screen": [owner for owner in owners if issubclass(owner, Screen)], "app": [TorchXTuiApp]}
    for owner in owners:
        for binding in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
            place, name, _ = parse(binding.action)
            found = [each for each in places.get(place, [owner]) if hasattr(each, f"action_{name}")]
            assert all((found, binding.key, binding.description)), f"{owner.__name__}: {binding}"


def test_no_title_above_keys_is_empty():
    titles = {owner: owner.__dict__.get("HELP_TITLE") for owner in _owners() if owner is not BaseScreen}
    assert not [owner.__name__ for owner, title in titles.items() if title == ""]


def test_the_page_lists_every_key():
    assert PAGE.read_text(encoding="utf-8") == keys_page(), "run: python docs/reference/keys.py"
    assert {"jobs.cancel", "logs.search", "launch.submit", "table.mark", "app.quit"} <= set(named_keys())
