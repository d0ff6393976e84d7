"""The form takes what .torchxconfig, profiles and the last launch say, and says which; ctrl+o changes the profile."""

import threading
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.dashboard import key_bar, settled, until
from support.launching import (
    LaunchingScheduler,
    drawn,
    form_of,
    launching_app,
    model_of,
    ready,
    row_of,
    status,
    type_into,
)
from support.waiting import PATIENCE

from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.components import build_app
from torchx_tui.settings.config import Profile, Settings
from torchx_tui.settings.launch_defaults import LaunchDefaults
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.commands import commands_text
from torchx_tui.tui.launch.field_dialogs import ChoiceDialog

JOB = '''
def job(data: str = "", lr: float = 0.1, batch: int = 32, steps: int = 1) -> AppDef:
    """Train."""
    return AppDef("job", [Role("r", "", entrypoint="true", args=[data, str(lr), str(batch)])])
'''
NAME = "jobs.py:job"
PROFILES = {
    "large": Profile(components={NAME: {"batch": 512, "lr": 0.5}}, runopts={"log_dir": "/large"}),
    "small": Profile(scheduler="local_cwd", components={NAME: {"batch": 8}}),
}


@pytest.fixture
def app(tmp_path, monkeypatch):
    made = launching_app(LaunchingScheduler(), tmp_path, monkeypatch, Settings(profiles=PROFILES))
    ComponentFile(Path("jobs.py")).write(JOB)
    Path(".torchxconfig").write_text(
        f"[local_cwd]\nlog_dir = /configured\n[component:{NAME}]\ndata = corpus\nlr = 0.3\n"
    )
    return made


def origins(screen) -> dict[str, tuple[str, str]]:
    """Return text and origin of the fields that are not at their defaults."""
    fields = [row.field for row in screen.editor.form.rows]
    return {one.name: (one.text, one.origin) for one in fields if one.origin != "default"}


async def test_the_file_fills_what_nobody_launched_with(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        assert origins(screen) == {
            "data": ("corpus", "config"), "lr": ("0.3", "config"), "log_dir": ("/configured", "config"),
        }  # fmt: skip
        row_of(screen, "lr").input.focus()
        await until(pilot, lambda: ".torchxconfig" in str(screen.editor.form._help.render()), "the source in the help")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the launch")
        (record,) = app.runner.journal.records()
        assert record.arguments == {"data": "corpus", "lr": "0.3"}
        assert record.cfg == {"log_dir": "/configured"}
        assert record.config == {"component.data": "corpus", "component.lr": "0.3", "log_dir": "/configured"}


async def test_the_last_launch_wins_over_the_file_and_a_profile_over_both(app):
    arguments = {"lr": "0.7", "steps": "9"}
    app.runner.run(build_app(NAME, arguments), "local_cwd", {}, origin=LaunchOrigin(NAME, arguments))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        assert origins(screen)["lr"] == ("0.7", "last run")
        assert origins(screen)["steps"] == ("9", "last run")
        assert origins(screen)["data"] == ("corpus", "config")
        await type_into(pilot, screen, "batch", "64")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog), "the profiles")
        await pilot.press(*"large", "enter")
        await until(pilot, lambda: app.screen is screen and "large" in str(app.profile), "the form")
        await until(pilot, lambda: origins(screen).get("log_dir") == ("/large", "profile"), "the profile's option")
        assert origins(screen)["lr"] == ("0.5", "profile")
        # What was typed stays.
        assert origins(screen)["batch"] == ("64", "typed")
        assert row_of(screen, "lr").input.value == "0.5"
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and app.screen.cursor == 1, "what was chosen")
        await pilot.press(*"no profile", "enter")
        await until(pilot, lambda: origins(screen).get("log_dir") == ("/configured", "config"), "the file's option")
        assert origins(screen).get("lr") != ("0.5", "profile")


async def test_an_edited_launch_takes_nothing_from_config(app):
    app.runner.run(build_app(NAME, {"steps": "9"}), "local_cwd", {}, origin=LaunchOrigin(NAME, {"steps": "9"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: getattr(app.screen, "editor", None) and app.screen.editor.form.rows, "the form")
        assert origins(app.screen) == {"steps": ("9", "last run")}


async def test_without_profiles_the_key_says_how_to_have_some(app):
    app.settings = Settings()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "[profiles.NAME]" in status(screen), "the words")
        assert status(screen).startswith("✗ ")
        assert app.screen is screen
        await ready(pilot, screen)
        asking, others = ["ctrl+s Submit", "ctrl+d Dry run"], ["ctrl+g Several", "ctrl+o Profile", "tab Next field"]
        shown = [*asking, "ctrl+t Diff, command", "ctrl+y Copy command", *others, "esc Back", "F1 Keys"]
        assert key_bar(app) == shown


async def test_a_broken_file_keeps_the_form_back_until_it_is_corrected(app, tmp_path):
    config = tmp_path / "here" / ".torchxconfig"
    config.write_text("[local_cwd]\nprepend_cwd = perhaps\n")
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await until(pilot, lambda: ".torchxconfig:2: [local_cwd] prepend_cwd" in drawn(screen, "#form-warnings"))
        assert "ctrl+l continues without .torchxconfig" in drawn(screen, "#form-warnings")
        assert screen.editor.form.submit.disabled
        await type_into(pilot, screen, "batch", "64")
        app.status.say("before")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: ".torchxconfig:2: [local_cwd] prepend_cwd" in status(screen), "the words")
        assert (app.screen, list(app.runner.journal.records())) == (screen, [])
        config.write_text("[local_cwd]\nlog_dir = /configured\n")
        # The file may still be read for the key before: then this one launches.
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is not screen or screen.editor.is_ready, "the corrected file")
        if app.screen is screen:
            await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the launch")
        (record,) = app.runner.journal.records()
        assert (record.arguments["batch"], record.cfg["log_dir"]) == ("64", "/configured")


async def test_a_file_that_is_read_late_takes_back_no_newer_one(app, tmp_path, monkeypatch):
    config = tmp_path / "here" / ".torchxconfig"
    config.write_text("[local_cwd]\nprepend_cwd = perhaps\n")
    load, held, go = LaunchDefaults.load, threading.Event(), threading.Event()
    reading = threading.Event()

    def late(*arguments, **named):
        defaults = load(*arguments, **named)
        if held.is_set() and not reading.is_set():
            reading.set()
            go.wait(PATIENCE)
        return defaults

    monkeypatch.setattr(LaunchDefaults, "load", late)
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await until(pilot, lambda: "prepend_cwd" in drawn(screen, "#form-warnings"))
        await type_into(pilot, screen, "batch", "64")
        held.set()
        await pilot.press("ctrl+s")
        await until(pilot, reading.is_set, "the file is read again")
        config.write_text("[local_cwd]\nlog_dir = /configured\n")
        await pilot.press("ctrl+s")
        await ready(pilot, screen)
        go.set()
        await settled(pilot)
        assert origins(screen) == {"batch": ("64", "typed"), "log_dir": ("/configured", "config")}
        assert not screen.editor.form.submit.disabled


async def test_a_key_goes_on_without_the_file_and_takes_it_again(app, tmp_path):
    config = tmp_path / "here" / ".torchxconfig"
    config.write_text(f"[local_cwd\n{config.read_text()}")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await until(pilot, lambda: "continues without" in drawn(screen, "#form-warnings"), "the words")
        assert origins(screen) == {}
        await pilot.press("ctrl+l")
        await ready(pilot, screen)
        assert origins(screen) == {}
        assert "torchx-tui run --scheduler local_cwd --ignore-config" in commands_text(model_of(screen))
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "continues without" in drawn(screen, "#form-warnings"), "the words")
        assert screen.editor.form.submit.disabled
        await pilot.press("ctrl+l")
        await ready(pilot, screen)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the launch")
        assert len(list(app.runner.journal.records())) == 1


async def test_a_profile_that_cannot_be_read_keeps_the_form_back(app):
    app.settings = Settings(profiles={"bad": Profile(runopts={"prepend_cwd": "perhaps"})})
    app.profile = "bad"
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await until(pilot, lambda: "ctrl+o chooses another profile" in drawn(screen, "#form-warnings"), "the words")
        assert screen.editor.form.submit.disabled
        screen.editor.take_profile(None)
        await ready(pilot, screen)


async def test_an_edited_launch_does_not_mind_a_broken_file(app, tmp_path):
    (tmp_path / "here" / ".torchxconfig").write_text("[local_cwd\n")
    app.runner.run(build_app(NAME, {"steps": "9"}), "local_cwd", {}, origin=LaunchOrigin(NAME, {"steps": "9"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: getattr(app.screen, "editor", None) and app.screen.editor.form.rows, "the form")
        await ready(pilot, app.screen)
