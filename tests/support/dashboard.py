"""The application on a canned scheduler, for Pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from support.canned import NOW, CannedScheduler
from textual.pilot import Pilot

from torchx_tui.backends.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.config import Settings
from torchx_tui.tui.ui_state import UiStateFile

PATIENCE = 30.0


def make_app(
    scheduler: CannedScheduler, folder: Path, *, settings: Settings | None = None, read_only: bool = False
) -> TorchXTuiApp:
    """Return the application; its clock stands still."""
    runner = Runner(journal=Journal(folder / "journal"), read_only=read_only)
    runner._schedulers.put("local_cwd", scheduler)
    app = TorchXTuiApp(
        runner,
        settings or Settings(),
        schedulers=["local_cwd"],
        now=lambda: NOW,
        ui_state=UiStateFile(folder / "screen.json"),
    )
    app.who = "alice@login03"
    return app


async def settled(pilot: Pilot) -> None:
    """Wait until the screen stands still: the same picture three times in a row, further apart than any repaint.

    Raises:
        AssertionError: it did not come to rest.
    """
    deadline = time.monotonic() + PATIENCE
    same, before = 0, ""
    while same < 2:
        assert time.monotonic() < deadline, "the screen does not come to rest"
        await asyncio.sleep(0.25)
        await pilot.pause()
        now = pilot.app.export_screenshot()
        same, before = (same + 1 if now == before else 0), now


def screen_text(app: TorchXTuiApp) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


async def until(pilot: Pilot, test: Callable[[], object], what: str = "") -> None:
    """Wait until a test holds, letting the application work.

    Raises:
        AssertionError: it did not come true.
    """
    deadline = time.monotonic() + PATIENCE
    while not test():
        assert time.monotonic() < deadline, f"waited for {what or test}"
        await pilot.pause()
        await asyncio.sleep(0.02)
    await pilot.pause()
