"""Every builtin, and components with parameters of every kind: picker, form, preview, launch, and back into a form."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.component_kinds import BUILTINS, KINDS, Kind, write_files
from support.dashboard import make_app, until
from support.launch_form import (
    LaunchingScheduler,
    drawn,
    form_of,
    model_of,
    preview,
    row_of,
    words,
)

from torchx_tui.backends.journal import Journal, LaunchRecord
from torchx_tui.backends.progress import Progress
from torchx_tui.backends.runner import Runner
from torchx_tui.components import ROLE_FIELDS, Parameter, describe, list_components, to_text
from torchx_tui.specs import AppDef, AppState, appdef_from_dict, appdef_to_dict, runopts
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.config import Settings
from torchx_tui.tui.form_field import role_of
from torchx_tui.tui.form_model import FormModel
from torchx_tui.tui.launch_work import launch_all
from torchx_tui.tui.screens.jobs import JobsScreen
from torchx_tui.tui.screens.launch import LaunchScreen
from torchx_tui.tui.ui_state import UiStateFile

WIDE = (120, 40)
BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Give the folder that components are picked in, with the files of `component_kinds`."""
    folder = tmp_path / "here"
    folder.mkdir()
    write_files(folder)
    monkeypatch.chdir(folder)
    # What builtins warn of is no matter here.
    warnings.simplefilter("ignore", DeprecationWarning)
    return folder


@pytest.fixture
def scheduler():
    return LaunchingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, here, monkeypatch):
    made = make_app(scheduler, tmp_path)
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["local_cwd"])
    return made


def put(screen: LaunchScreen, name: str, text: str, section: str = "argument") -> None:
    """Give a field a text, as if it was typed or chosen there."""
    widget = row_of(screen, name, section).input
    if getattr(widget, "choices", None):
        widget._take(text)  # type: ignore[union-attr]
    else:
        widget.value = text


async def filled(pilot, app, name: str, texts: dict[str, str]) -> LaunchScreen:
    """Open a component's form, put texts into its fields, and wait for the request that they make."""
    screen = await form_of(pilot, app, name)
    for parameter, text in texts.items():
        put(screen, parameter, text)
    model = model_of(screen)
    wanted = {**{one.name: one.default for one in model.section("argument")}, **texts}
    await until(pilot, lambda: {one.name: one.text for one in model.section("argument")} == wanted, "the texts")
    await until(pilot, lambda: "ready" in words(screen) and model.roles, f"the request: {words(screen)}")
    await until(pilot, lambda: "command:" in preview(screen), f"the request of {name}")
    return screen


async def submitted(pilot, scheduler, count: int) -> AppDef:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: len(scheduler.launched) == count, "the launch")
    return scheduler.launched[-1]


def same_request(made: AppDef, launched: AppDef) -> None:
    """Check that an app is what was launched, but for what every job gets on its way."""
    for role, other in zip(made.roles, launched.roles, strict=True):
        assert (role.entrypoint, role.args, role.num_replicas) == (other.entrypoint, other.args, other.num_replicas)
        assert role.env.items() <= other.env.items()
        assert (role.mounts, role.resource, role.image) == (other.mounts, other.resource, other.image)


# In the screen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_every_kind_of_parameter_goes_through_the_screen_and_comes_back(app, scheduler, kind: Kind):
    async with app.run_test(size=WIDE) as pilot:
        screen = await filled(pilot, app, kind.name, kind.typed)
        assert drawn(screen, "#form-warnings") == ""
        assert "echo" in preview(screen)
        launched = await submitted(pilot, scheduler, 1)
        assert launched.roles[0].args == [repr(value) for value in kind.values]
        record = app.runner.journal.records()[0]
        assert record.component == kind.name
        # Once more, from the table.
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.form.rows, "the form")
        again = app.screen
        await until(pilot, lambda: "ready" in words(again) and "command:" in preview(again), "the request")
        await pilot.press("ctrl+t")
        assert preview(again) == "As the last launch"
        assert model_of(again).diff(record) == []
        relaunched = await submitted(pilot, scheduler, 2)
        assert appdef_to_dict(relaunched) == appdef_to_dict(launched) | {
            "roles": [{**role, "env": relaunched.roles[0].env} for role in appdef_to_dict(launched)["roles"]]
        }
        assert app.runner.journal.records()[0].arguments == record.arguments


@pytest.mark.parametrize("name", BUILTINS)
async def test_every_builtin_goes_through_the_screen(app, scheduler, name: str):
    needed, more = BUILTINS[name]
    async with app.run_test(size=WIDE) as pilot:
        screen = await filled(pilot, app, name, {**needed, **more})
        made = model_of(screen).plan().app()
        launched = await submitted(pilot, scheduler, 1)
        same_request(made, launched)
        record = app.runner.journal.records()[0]
        assert record.arguments == {**needed, **more}
        assert appdef_to_dict(record.app_def()) == appdef_to_dict(made)


def test_every_builtin_is_tried():
    assert {one.name for one in list_components() if one.kind == "builtin"} == set(BUILTINS)


async def test_a_choice_that_may_be_none_can_be_taken_back(app):
    async with app.run_test(size=WIDE) as pilot:
        screen = await form_of(pilot, app, "choices.py:few")
        put(screen, "mode", "fast")
        way = row_of(screen, "way").input
        way.focus()
        await until(pilot, lambda: way.has_focus)
        assert "(o) none" in str(way.render()) or "none" in str(way.render())
        await pilot.press("right")
        await until(pilot, lambda: model_of(screen).plan().arguments.get("way") == "up", "up")
        await pilot.press("left")
        await until(pilot, lambda: "way" not in model_of(screen).plan().arguments, "none")
        # The default of an Enum is one of its members, not a further choice.
        assert row_of(screen, "color").input.value == "RED"
        assert row_of(screen, "color").field.offered == ("RED", "BLUE")
