"""The dashboard on a scheduler that takes every app."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.api import Finding
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.settings.config import Settings
from torchx_tui.specs.roles import AppDryRunInfo
from torchx_tui.specs.status import AppState
from torchx_tui.tui.app import TorchXTuiApp

from .canned import CannedScheduler
from .dashboard import make_app


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
