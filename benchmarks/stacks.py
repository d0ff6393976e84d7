"""`b`: from the key to the groups on the screen, for jobs of 16 and 64 ranks of this machine.

The ranks are processes of Python without torch, so that 64 of them fit: py-spy reads each, the slower of the two ways.
Budget: 2 s for 16 ranks, 5 s for 64.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ._budget import judged
from ._sizes import scaled

ROUNDS = scaled(5, 1)
LIMIT_S = 120.0
BUDGETS = {scaled(16, 2): 2.0, scaled(64, 4): 5.0}
# A launcher with its ranks below it, as torchrun has them; each waits where its rank says.
JOB = """
import os, subprocess, sys, time
if "RANK" not in os.environ:
    world = {**os.environ, "WORLD_SIZE": sys.argv[1]}
    envs = [{**world, "RANK": str(rank)} for rank in range(int(sys.argv[1]))]
    ranks = [subprocess.Popen([sys.executable, __file__], env=env) for env in envs]
    sys.exit(max(rank.wait() for rank in ranks))
def reads(): time.sleep(600)
def waits(): time.sleep(600)
reads() if os.environ["RANK"] == "3" else waits()
"""


async def seconds_to_groups(ranks: int, folder: Path) -> list[float]:
    """Return the seconds of each round, for a job that is launched for it."""
    from torchx_tui.backends.runner import Runner
    from torchx_tui.settings.config import Settings
    from torchx_tui.specs.roles import AppDef, Role
    from torchx_tui.tui.app import TorchXTuiApp
    from torchx_tui.tui.jobs.screen import JobsScreen
    from torchx_tui.tui.stacks.screen import StacksScreen

    (folder / "job.py").write_text(JOB)
    runner = Runner(scheduler_params={"local_cwd": {"root": folder / "root"}})
    args = [str(folder / "job.py"), str(ranks)]
    handle = runner.run(
        AppDef("ranks", [Role("trainer", str(folder), entrypoint=sys.executable, args=args)]), "local_cwd"
    )
    app = TorchXTuiApp(runner, Settings(), schedulers=["local_cwd"])
    figures = []

    async def until(test) -> None:  # noqa: ANN001 - a function
        deadline = time.monotonic() + LIMIT_S
        while not test():
            if time.monotonic() > deadline:
                raise TimeoutError
            await asyncio.sleep(0.005)

    def is_complete() -> bool:
        screen = app.screen
        snapshot = screen.snapshot if isinstance(screen, StacksScreen) else None
        return snapshot is not None and sum(snapshot.ways.values()) == ranks

    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(lambda: isinstance(app.screen, JobsScreen) and app.jobs.rows)
            await asyncio.sleep(2 + ranks / 8)  # the ranks start
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await pilot.press("b")
                await until(is_complete)
                figures.append(time.perf_counter() - began)
                await pilot.press("escape")
                await until(lambda: isinstance(app.screen, JobsScreen))
    finally:
        runner.job(handle).delete()
        runner.close()
    return figures


def run() -> list[tuple[str, str]]:
    """Return the medians beside their budgets."""
    if shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}") is None:
        return [("stacks of ranks", "not measured: pip install py-spy")]
    rows = []
    for ranks, budget in BUDGETS.items():
        # The job's supervisor may still write while its folder goes.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ["XDG_STATE_HOME"] = folder
            figures = asyncio.run(seconds_to_groups(ranks, Path(folder)))
        rows.append((f"b: {ranks} ranks, key to groups", judged(statistics.median(figures), budget, " s", digits=2)))
    return rows
