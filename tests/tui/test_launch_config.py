"""The form takes what .torchxconfig, profiles and the last launch say, and says which; ctrl+o changes the profile."""

import threading
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.launching import LaunchingScheduler, launching_app
from support.screens import Launch, jobs_of, launch_of
from support.waiting import PATIENCE

from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.components.build import build_app
from torchx_tui.settings.config import Profile, Settings
from torchx_tui.settings.launch_defaults import LaunchDefaults
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.commands import commands_text
from torchx_tui.tui.launch.field_dialogs import ChoiceDialog
from torchx_tui.tui.launch.form_field import Origin

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
BROKEN = "[local_cwd]\nprepend_cwd = perhaps\n"
CORRECT = "[local_cwd]\nlog_dir = /configured\n"
NINE = {"steps": ("9", "last run")}


@pytest.fixture
def app(tmp_path, monkeypatch):
    made = launching_app(LaunchingScheduler(), tmp_path, monkeypatch, Settings(profiles=PROFILES))
    ComponentFile(Path("jobs.py")).write(JOB)
    return made


@pytest.fixture
def config(app):
    """Return the `.torchxconfig` of the working folder."""
    path = Path(".torchxconfig").absolute()
    path.write_text(f"{CORRECT}[component:{NAME}]\ndata = corpus\nlr = 0.3\n")
    return path


def origins(launch: Launch) -> dict[str, tuple[str, str]]:
    """Return text and origin of the fields that are not at their defaults."""
    fields = [row.field for row in launch.form.rows]
    return {one.name: (one.text, one.origin.word) for one in fields if one.origin is not Origin.DEFAULT}


def launch_before(app, **arguments: str) -> None:
    app.runner.run(build_app(NAME, arguments), "local_cwd", {}, origin=LaunchOrigin(NAME, arguments))


async def test_the_file_fills_a_new_form(app, config):
    async with launch_of(app, NAME) as launch:
        assert origins(launch) == {
            "data": ("corpus", "config"), "lr": ("0.3", "config"), "log_dir": ("/configured", "config"),
        }  # fmt: skip
        launch.row("lr").input.focus()
        await launch.shows(".torchxconfig", on="help")
        await launch.submit()
        (record,) = app.runner.journal.records()
        assert record.arguments == {"data": "corpus", "lr": "0.3"}
        assert record.cfg == {"log_dir": "/configured"}
        assert record.config == {"component.data": "corpus", "component.lr": "0.3", "log_dir": "/configured"}


async def test_file_wins_over_last_launch_and_profile_over_both(app, config):
    launch_before(app, lr="0.7", steps="9")
    async with launch_of(app, NAME) as launch:
        assert origins(launch).items() >= {"lr": ("0.3", "config"), "data": ("corpus", "config"), **NINE}.items()
        await launch.type(batch="64")
        await launch.open(ChoiceDialog, "ctrl+o")
        await launch.back(*"large", "enter")
        await launch.until(lambda: origins(launch).get("log_dir") == ("/large", "profile"), "the profile's option")
        assert "New launch   profile large" in launch.top_bar()
        # What was typed stays.
        assert origins(launch).items() >= {"lr": ("0.5", "profile"), "batch": ("64", "typed")}.items()
        assert launch.value("lr") == "0.5"
        dialog = await launch.open(ChoiceDialog, "ctrl+o")
        await launch.until(lambda: dialog.cursor == 1, "what was chosen")
        await launch.press(
            *"no profile",
            "enter",
            until=lambda: origins(launch).get("log_dir") == ("/configured", "config"),
            what="the file's option",
        )
        assert origins(launch).get("lr") != ("0.5", "profile")


@pytest.mark.parametrize("text", [CORRECT, "[local_cwd\n"], ids=["correct", "broken"])
async def test_an_edited_launch_takes_nothing_from_config(app, config, text):
    config.write_text(text)
    launch_before(app, steps="9")
    async with jobs_of(app) as table:
        launch = await table.edit()
        assert origins(launch) == NINE
        await launch.ready()


@pytest.mark.parametrize("how", [{"group": "job-1"}, {"in_shell": True}])
async def test_sweep_and_shell_launches_fill_no_form(app, how):
    launch_before(app, steps="9")
    arguments = {"steps": "5"}
    app.runner.run(build_app(NAME, arguments), "local_cwd", {}, origin=LaunchOrigin(NAME, arguments, **how))
    async with launch_of(app, NAME) as launch:
        assert origins(launch) == NINE


async def test_typed_texts_are_kept_until_launched(app):
    async with jobs_of(app, rows=0) as table:
        launch = await table.picker()
        await launch.pick(NAME)
        await launch.type(batch="64")
        await launch.press("escape", "escape")
        launch = await table.picker()
        await launch.pick(NAME)
        await launch.has(batch="64")
        assert origins(launch) == {"batch": ("64", "typed")}
        await launch.ready()
        await launch.submit()
        assert not app.drafts


async def test_without_profiles_the_key_says_how_to_have_some(app):
    app.settings = Settings()
    async with launch_of(app, NAME) as launch:
        await launch.press("ctrl+o", shows=("✗ ", "[profiles.NAME]"))
        assert app.screen is launch.screen
        await launch.ready()
        asking, others = ["ctrl+s Submit", "ctrl+d Dry run"], ["ctrl+g Several", "ctrl+o Profile", "tab Next field"]
        shown = [*asking, "ctrl+t Diff", "ctrl+y Copy command", *others, "esc Back", "F1 Keys"]
        assert launch.key_hints() == shown


async def test_a_broken_file_blocks_the_form_until_corrected(app, config):
    config.write_text(BROKEN)
    async with launch_of(app, NAME, (160, 40)) as launch:
        fault = ".torchxconfig:2: [local_cwd] prepend_cwd"
        await launch.shows(fault, "press ctrl+l to launch without .torchxconfig", on="warnings")
        assert not launch.can_submit()
        await launch.type(batch="64")
        app.status.say("before")
        await launch.press("ctrl+s", shows=fault)
        assert (app.screen, list(app.runner.journal.records())) == (launch.screen, [])
        config.write_text(CORRECT)
        # The file may still be read for the key before: then this one launches.
        await launch.press(
            "ctrl+s", until=lambda: app.screen is not launch.screen or launch.editor.is_ready, what="the corrected file"
        )
        if app.screen is launch.screen:
            await launch.press("ctrl+s")
        await launch.open(JobsScreen)
        (record,) = app.runner.journal.records()
        assert (record.arguments["batch"], record.cfg["log_dir"]) == ("64", "/configured")


async def test_a_file_that_is_read_late_replaces_no_newer_one(app, config, monkeypatch):
    config.write_text(BROKEN)
    load, held, go, reading = LaunchDefaults.load, threading.Event(), threading.Event(), threading.Event()

    def late(*arguments, **named):
        defaults = load(*arguments, **named)
        if held.is_set() and not reading.is_set():
            reading.set()
            go.wait(PATIENCE)
        return defaults

    monkeypatch.setattr(LaunchDefaults, "load", late)
    async with launch_of(app, NAME, (160, 40)) as launch:
        await launch.shows("prepend_cwd", on="warnings")
        await launch.type(batch="64")
        held.set()
        await launch.press("ctrl+s", until=reading.is_set, what="the file is read again")
        config.write_text(CORRECT)
        await launch.press("ctrl+s")
        await launch.ready()
        go.set()
        await launch.settled()
        assert origins(launch) == {"batch": ("64", "typed"), "log_dir": ("/configured", "config")}
        assert launch.can_submit()


async def test_a_key_ignores_the_file_and_takes_it_again(app, config):
    config.write_text(f"[local_cwd\n{config.read_text()}")
    async with launch_of(app, NAME) as launch:
        for is_ignored in (False, True, False):
            if is_ignored:
                await launch.ready()
                assert "torchx-tui run --scheduler local_cwd --ignore-config" in commands_text(launch.model)
            else:
                await launch.shows("to launch without", on="warnings")
            assert (launch.can_submit(), origins(launch)) == (is_ignored, {})
            await launch.press("ctrl+l")
        await launch.ready()
        await launch.submit()
        assert len(list(app.runner.journal.records())) == 1


async def test_a_broken_profile_blocks_the_form(app):
    app.settings = Settings(profiles={"bad": Profile(runopts={"prepend_cwd": "perhaps"})})
    app.profile = "bad"
    async with launch_of(app, NAME, (160, 40)) as launch:
        await launch.shows("press ctrl+o for another profile", on="warnings")
        assert not launch.can_submit()
        launch.editor.take_profile(None)
        await launch.ready()
