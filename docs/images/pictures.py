"""Make the pictures of the README from real runs: real local jobs, launched and drawn by the application itself.

Run it from the repository's root: ``.venv/bin/python docs/images/pictures.py``; it takes half a minute. With the name of a
folder the story alone is drawn, and goes there.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.pilot import Pilot

    from torchx_tui.tui.app import TorchXTuiApp

PATIENCE_SECONDS = 60.0


@contextmanager
def dashboard() -> Iterator[TorchXTuiApp]:
    """Give the application, on a state of its own."""
    from torchx_tui.backends.runner import Runner
    from torchx_tui.settings.config import Settings
    from torchx_tui.tui.app import TorchXTuiApp

    settings = Settings(theme="torchx-dark")
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        with Runner(scheduler_params=settings.scheduler_params()) as runner:
            app = TorchXTuiApp(runner, settings)
            app.who = "alice@login03"
            yield app


def save(app: TorchXTuiApp, folder: Path, name: str) -> None:
    """Write what is on the screen."""
    (folder / f"{name}.svg").write_text(app.export_screenshot(title="torchx-tui"), encoding="utf-8")


async def until(pilot: Pilot[None], *words: str, still: Callable[[], bool] = lambda: True) -> None:
    """Wait until words are on the screen, and it has come to rest."""
    deadline, before = time.monotonic() + PATIENCE_SECONDS, ""
    while True:
        assert time.monotonic() < deadline, f"waited for {words}"
        await pilot.pause(0.4)
        now = pilot.app.export_screenshot().replace("&#160;", " ")
        if now == before and all(word in now for word in words) and still():
            return
        before = now


async def draw_jobs(folder: Path) -> None:
    """Launch jobs that succeed, fail, are cancelled and run; draw the Jobs screen while one does."""
    from torchx_tui.backends.history.launch_record import LaunchOrigin
    from torchx_tui.components import build_app

    with dashboard() as app:
        runner = app.runner

        def launch(component: str, **arguments: str) -> str:
            origin = LaunchOrigin(component, arguments)
            return runner.run(build_app(component, arguments), "local_cwd", {}, origin=origin)

        launch("utils.echo", msg="hello")
        launch("demo.train", steps="5", step_seconds="0.02", num_replicas="4")
        launch("demo.train", steps="9", step_seconds="0.02", num_replicas="4", fail_at_step="5", fail_rank="2")
        cancelled = launch("demo.train", steps="900")
        launch("utils.python", c="print(6 * 7)")
        live = launch("demo.train", steps="400", step_seconds="0.25", num_replicas="8")
        await asyncio.sleep(6)
        runner.cancel(cancelled)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(8)
            save(app, folder, "jobs")
        runner.cancel(live)
        runner.wait(live)


async def fill(pilot: Pilot[None], name: str, text: str) -> None:
    """Go to a field of the form by tab and replace its text."""
    from torchx_tui.tui.launch.screen import LaunchScreen

    screen = pilot.app.screen
    assert isinstance(screen, LaunchScreen)
    while (row := screen.editor.form.focused_row()) is None or row.field.name != name:
        await pilot.press("tab")
    await pilot.press("end", "ctrl+u", *text)
    await until(pilot, "ready", still=lambda: screen.editor.dry_run.is_answered)


async def draw_story(folder: Path) -> None:
    """Launch a job that fails, read why, change one value, launch it again: a picture of each step."""
    with dashboard() as app:
        async with app.run_test(size=(120, 34)) as pilot:
            await until(pilot, "No jobs yet")
            await pilot.press("n")
            await until(pilot, "demo.train")
            await pilot.press(*"demo")
            await until(pilot, "1 of")
            await pilot.press("enter")
            await until(pilot, "fail_at_step")
            await fill(pilot, "fail_at_step", "3")
            save(app, folder, "launch")
            await pilot.press("ctrl+s")
            await until(pilot, "Failed")
            await pilot.press("enter")
            await until(pilot, "Traceback")
            save(app, folder, "why")
            await pilot.press("escape")
            await until(pilot, "STATE")
            await pilot.press("e")
            await until(pilot, "last run")
            await fill(pilot, "fail_at_step", "-1")
            await pilot.press("ctrl+t")
            await until(pilot, "ready")
            save(app, folder, "relaunch")
            await pilot.press("ctrl+s")
            await until(pilot, "Succeeded")
            save(app, folder, "mended")


if __name__ == "__main__":
    asyncio.run(draw_story(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent))
    if not sys.argv[1:]:
        asyncio.run(draw_jobs(Path(__file__).parent))
