"""The Launch screen on a scheduler that takes every app: how tests open it, fill its form and read it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Static

from torchx_tui.backends.api import Finding
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.settings.config import Settings
from torchx_tui.specs.roles import AppDryRunInfo
from torchx_tui.specs.status import AppState
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.form_rows import FieldRow
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.bars import StatusLine

from .canned import CannedScheduler
from .dashboard import make_app, until


class LaunchingScheduler(CannedScheduler):
    """Takes every app and notes it."""

    def __init__(self) -> None:
        super().__init__()
        self.launched = []
        self.refusal: Exception | None = None
        self.warnings: list[Finding] = []

    def refuse(self, app, cfg):
        """Raise what a test wants; it puts one of its own here."""

    def _submit_dryrun(self, app, cfg):
        self.refuse(app, cfg)
        if self.refusal:
            raise self.refusal
        role = app.roles[0]
        return AppDryRunInfo(app, lambda _: f"command: {shlex.join([role.entrypoint, *role.args])}\ncfg: {cfg}")

    def schedule(self, dryrun_info):
        app = dryrun_info.request
        self.launched.append(app)
        app_id = f"{app.name}-{len(self.launched)}"
        self.add(app_id, AppState.RUNNING, 1)
        return app_id

    def preflight(self, app, cfg):
        return self.warnings


class ShippingScheduler(WorkspaceMixin[Any], LaunchingScheduler):
    """Takes workspaces too."""

    def build_workspace_and_update_role(self, role: Any, workspace: str, cfg: Any) -> None:
        """Leave the image as it is."""


def launching_app(
    scheduler: LaunchingScheduler, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings | None = None
) -> TorchXTuiApp:
    """Return the dashboard, with that scheduler alone, since the local one would start real jobs.

    Args:
        scheduler: what is launched on.
        folder: where state is kept; its folder ``here``, which is made, is the working folder.
        monkeypatch: takes everything back.
        settings: the usual ones if None.
    """
    here = folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    made = make_app(scheduler, folder, settings=settings)
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["local_cwd"])
    return made


async def opened(pilot, app) -> LaunchScreen:
    """Open the Launch screen and wait for all components."""
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
    await pilot.press("n")
    await until(
        pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.chooser.picker.components, "the components"
    )
    # The builtins come first, those of files behind them.
    await app.workers.wait_for_complete([worker for worker in app.workers if worker.group == "components"])
    await pilot.pause()
    return app.screen


async def form_of(pilot, app, name: str) -> LaunchScreen:
    """Open the form of a component."""
    screen = await opened(pilot, app)
    screen.chooser.picker.search.value = name
    await until(
        pilot, lambda: screen.chooser.picker.highlighted and screen.chooser.picker.highlighted.name == name, name
    )
    await pilot.press("enter")
    await until(
        pilot,
        lambda: screen.editor.model is not None and screen.editor.form.rows and field_with_focus(screen),
        "the form",
    )
    return screen


def field_with_focus(screen) -> str:
    return next((row.field.name for row in screen.editor.form.rows if row.input.has_focus), "")


def row_of(screen: LaunchScreen, name: str, section: str = "argument") -> FieldRow:
    """Return a field's row."""
    row = screen.editor.form.row(section, name)
    assert row is not None
    return row


def text_in(screen: LaunchScreen, name: str) -> str:
    """Return what an argument's field shows."""
    return row_of(screen, name).input.value


def model_of(screen: LaunchScreen) -> FormModel:
    assert screen.editor.model is not None
    return screen.editor.model


async def type_into(pilot, screen, name: str, text: str, section: str = "argument") -> None:
    """Replace a field's text: its last letter is typed, what is before it pasted, as people do."""
    row = row_of(screen, name, section)
    row.input.focus()
    await until(pilot, lambda: row.input.has_focus)
    await pilot.press("end", "ctrl+u")
    if text[:-1]:
        row.input.post_message(events.Paste(text[:-1]))
    if text:
        await pilot.press(text[-1])
    await until(pilot, lambda: row.input.value == text, f"{text!r} in {name}")


def drawn(screen, selector: str) -> str:
    """Return the text of a Static."""
    return str(screen.query_one(selector, Static).render())


def words(screen) -> str:
    """Return what stands beside Submit."""
    return drawn(screen, "#submit-words")


def preview(screen) -> str:
    return drawn(screen, "#preview-body Static")


def status(screen) -> str:
    """Return the message of the status line; empty before the screen has one."""
    return "".join(line.left.plain for line in screen.query(StatusLine))


async def ready(pilot, screen) -> None:
    def is_ready() -> bool:
        return screen.editor.is_answered and "ready" in words(screen) and screen.editor.session.request

    await until(pilot, is_ready, "a dry run")
