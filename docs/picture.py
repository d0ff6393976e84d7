"""Make the picture of the README from a real run: real local jobs, launched and drawn by the application itself.

Run it from the repository's root: ``.venv/bin/python docs/picture.py docs/jobs.svg``.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path


async def draw() -> str:
    """Launch jobs that succeed, fail, are cancelled and run; return the Jobs screen while one does, as SVG."""
    from torchx_tui.backends.launch_origin import LaunchOrigin
    from torchx_tui.backends.runner import Runner
    from torchx_tui.components import build_app
    from torchx_tui.tui.app import TorchXTuiApp
    from torchx_tui.tui.config import Settings

    settings = Settings(theme="torchx-dark")

    def launch(runner: Runner, component: str, **arguments: str) -> str:
        return runner.run(
            build_app(component, arguments), "local_cwd", {}, origin=LaunchOrigin(component, arguments)
        )  # fmt: skip

    with Runner(scheduler_params=settings.scheduler_params()) as runner:
        launch(runner, "utils.echo", msg="hello")
        launch(runner, "demo.train", steps="5", step_seconds="0.02", num_replicas="4")
        launch(runner, "demo.train", steps="9", step_seconds="0.02", num_replicas="4", fail_at_step="5", fail_rank="2")
        cancelled = launch(runner, "demo.train", steps="900")
        launch(runner, "utils.python", c="print(6 * 7)")
        live = launch(runner, "demo.train", steps="400", step_seconds="0.25", num_replicas="8")
        await asyncio.sleep(6)
        runner.cancel(cancelled)
        app = TorchXTuiApp(runner, settings)
        app.who = "alice@login03"
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(8)
            picture = app.export_screenshot(title="torchx-tui")
        runner.cancel(live)
        runner.wait(live)
    return picture


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home
        Path(sys.argv[1]).write_text(asyncio.run(draw()), encoding="utf-8")
