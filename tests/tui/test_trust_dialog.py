"""The Launch screen asks before it uses a component or a `.torchxconfig` of another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.launching import LaunchingScheduler, launching_app
from support.screens import Launch, launch_of

from torchx_tui.base.trust import trusted_list
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


async def choose(launch: Launch) -> None:
    """Choose the component, and wait for the question."""
    launch.set_search(NAME)
    await launch.finds(NAME)
    await launch.dialog(AskDialog, "enter")


async def test_picker_says_whose_file_a_component_is_in(app):
    ComponentFile(Path("own.py")).write(JOB)
    os.chown("jobs.py", 12345, 12345)
    async with launch_of(app) as launch:
        await launch.until(lambda: {NAME, "own.py:job"} <= {*launch.components()}, "both components")
        assert {f"{NAME} 12345", "own.py:job mine"} <= {*launch.picker_rows()}


async def test_component_runs_only_after_a_yes(app):
    os.chown("jobs.py", 12345, 12345)
    async with launch_of(app) as launch:
        await choose(launch)
        words = " ".join(launch.dialog_text().split())
        assert "belongs to the user 12345. Its code runs with your permissions." in words
        assert app.focused.id == "keep"
        await launch.back("enter")
        assert launch.screen.is_picking
        assert "ran" not in os.listdir()
        await launch.dialog(AskDialog, "enter")
        await launch.back("y")
        await launch.until(lambda: not launch.screen.is_picking, "the form")
        await launch.ready()
        assert "ran" in os.listdir()
        assert trusted_list().read_text() == f"{os.getcwd()}\n"


async def test_torchxconfig_is_used_only_after_a_yes(app):
    os.chown(".torchxconfig", 12345, 12345)
    async with launch_of(app) as launch:
        await choose(launch)
        await launch.press("escape", shows="is not used", on="warnings")
        assert launch.value("data") == ""
        assert not launch.editor.is_ready
        # Another try asks again.
        await launch.dialog(AskDialog, "ctrl+s")
        await launch.press("y")
        await launch.has(data="corpus")
        await launch.ready()
