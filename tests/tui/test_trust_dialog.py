"""The Launch screen asks before it uses a component or a `.torchxconfig` of another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.dashboard import until
from support.launching import LaunchingScheduler, drawn, launching_app, opened, ready, text_in

from torchx_tui.base.trust import trusted_list
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.dialog import AskDialog

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

NAME = "jobs.py:job"
JOB = """
def job(data: str = "") -> AppDef:
    \"\"\"Train.\"\"\"
    open("ran", "w")
    return AppDef("job", [Role("r", "", entrypoint="true", args=[data])])
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    made = launching_app(LaunchingScheduler(), tmp_path, monkeypatch)
    ComponentFile(Path("jobs.py")).write(JOB)
    Path(".torchxconfig").write_text(f"[component:{NAME}]\ndata = corpus\n")
    return made


async def chosen(pilot, app) -> LaunchScreen:
    """Choose the component and wait for the question."""
    screen = await opened(pilot, app)
    screen.chooser.picker.search.value = NAME
    picker = screen.chooser.picker
    await until(pilot, lambda: picker.highlighted and picker.highlighted.name == NAME, NAME)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, AskDialog), "the question")
    return screen


async def test_picker_says_whose_file_a_component_is_in(app):
    ComponentFile(Path("own.py")).write(JOB)
    os.chown("jobs.py", 12345, 12345)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        listed = screen.chooser.picker.list

        def owners() -> dict[str, str]:
            words = [str(listed.get_option_at_index(index).prompt).split() for index in range(listed.option_count)]
            return {row[0]: row[-1] for row in words}

        await until(pilot, lambda: {NAME, "own.py:job"} <= owners().keys(), "both components")
        assert (owners()[NAME], owners()["own.py:job"]) == ("12345", "mine")


async def test_component_runs_only_after_a_yes(app):
    os.chown("jobs.py", 12345, 12345)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await chosen(pilot, app)
        words = " ".join(drawn(app.screen, "#dialog-text").split())
        assert "belongs to the user 12345. Its code runs with your permissions." in words
        assert app.focused.id == "keep"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen, "the list")
        assert screen.is_picking
        assert "ran" not in os.listdir()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AskDialog), "the question again")
        await pilot.press("y")
        await until(pilot, lambda: app.screen is screen and not screen.is_picking, "the form")
        await ready(pilot, screen)
        assert "ran" in os.listdir()
        assert trusted_list().read_text() == f"{os.getcwd()}\n"


async def test_torchxconfig_is_used_only_after_a_yes(app):
    os.chown(".torchxconfig", 12345, 12345)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await chosen(pilot, app)
        await pilot.press("escape")
        await until(pilot, lambda: "is not used" in drawn(screen, "#form-warnings"), "the refusal")
        assert text_in(screen, "data") == ""
        assert not screen.editor.is_ready
        # Another try asks again.
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, AskDialog), "the question again")
        await pilot.press("y")
        await until(pilot, lambda: text_in(screen, "data") == "corpus", "the file's value")
        await ready(pilot, screen)
