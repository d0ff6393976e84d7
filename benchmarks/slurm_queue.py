"""Slurm: one refresh with 10,000 jobs in the queue, from the question to the painted rows, beside ``squeue`` itself.

Budgets: at most 1.3 times the raw call with the same fields, and under 100 ms on the event loop. The jobs are real and
this user's. Twenty of them change between two refreshes.

They wait in a partition that is down: TorchX lists what accounting tells, and that tells of a job once it may start. Of
held jobs, which a cluster of ``SLURM_CONF`` gets instead, TorchX finds none.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import _slurm
from benchmarks._budget import judged
from benchmarks._sizes import scaled
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm.commands import ask
from torchx_tui.backends.slurm.queue import queue_command
from torchx_tui.settings.config import Settings
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.messages import JobsChanged
from torchx_tui.tui.watch.poller import RowMaker

JOBS = scaled(10_000, 40)
CHANGED = 20
ROUNDS = scaled(21, 1)
# More than are asked for: those that have ended count for a while.
_SETTINGS = f"MaxJobCount={JOBS + 2000}\nSchedulerParameters=bf_interval=300,sched_interval=60,default_queue_depth=1\n"
_WAITS = "--hold" if os.environ.get("SLURM_CONF") else "--partition=closed"
# Jobs reach accounting later than the queue (s).
_ACCOUNTED_S = 120.0

Row = tuple[str, str]


def run() -> list[Row]:
    """Return the figures."""
    with _slurm.cluster(_SETTINGS), tempfile.TemporaryDirectory() as folder:
        os.environ |= {f"XDG_{name}_HOME": str(Path(folder, name)) for name in ("STATE", "CACHE", "CONFIG")}
        if _WAITS != "--hold":
            _slurm.run("scontrol", "create", "PartitionName=closed", "Nodes=ALL", "State=DOWN")
        began = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            ids = list(pool.map(_submit, range(JOBS)))
        seconds = time.perf_counter() - began
        try:
            raw, refreshes, painted = asyncio.run(_measure(Path(folder), ids))
            theirs = _torchx_list()
        finally:
            _slurm.run("scancel", "--user", str(os.getuid()))
    return [
        (f"{JOBS:,} jobs submitted", f"{seconds:.0f} s"),
        ("squeue with the same fields", f"{raw * 1000:.0f} ms"),
        ("refresh to painted", f"{(refreshes + painted) * 1000:.0f} ms"),
        ("refresh to painted, against squeue", judged((refreshes + painted) / raw, 1.3, "x", digits=2)),
        ("of it on the event loop", judged(painted * 1000, 100, " ms")),
        ("TorchX's own list", theirs),
    ]


def _torchx_list() -> str:
    """Return how long TorchX takes to list the same jobs, or why that is not known."""
    if importlib.util.find_spec("torchx") is None:
        return "TorchX is not installed"
    from torchx.schedulers import slurm_scheduler

    if _WAITS != "--hold":
        deadline = time.monotonic() + _ACCOUNTED_S
        since = "--starttime=now-1hour"
        while len(_slurm.run("sacct", "-nX", since).splitlines()) < JOBS and time.monotonic() < deadline:
            time.sleep(1)
    took, listed = [], []
    for _ in range(3):
        began = time.perf_counter()
        try:
            listed = slurm_scheduler.create_scheduler("torchx").list()
        except Exception as error:
            return f"fails: {type(error).__name__}: {error}"[:60]
        took.append(time.perf_counter() - began)
    return f"{statistics.median(took) * 1000:.0f} ms, {len(listed):,} jobs"


def _submit(number: int) -> str:
    return _slurm.run(
        "sbatch", "--parsable", _WAITS, "--output=/dev/null", f"--job-name=job-{number}", "--wrap=true"
    ).strip()


async def _measure(folder: Path, ids: list[str]) -> tuple[float, float, float]:
    """Return the median seconds of the raw call, of question and rows, and on the event loop."""
    settings = {"interval": 0.0, "quick_interval": 0.0}
    runner = Runner(journal=Journal(folder / "journal"), scheduler_params={"slurm": settings})
    app, maker = TorchXTuiApp(runner, Settings(), schedulers=[]), RowMaker()
    raw, refreshes, painted = [], [], []
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        app.jobs.set_schedulers(["slurm"])
        before = maker.make(runner.list("slurm"), {})[0]
        app.on_jobs_changed(JobsChanged("slurm", dict(before), set()))
        await pilot.pause(1)
        app.feed.end()
        for step in range(ROUNDS):
            began = time.perf_counter()
            ask(queue_command())
            raw.append(time.perf_counter() - began)
            for job_id in ids[:CHANGED]:
                _slurm.run("scontrol", "update", f"JobId={job_id}", f"JobName=changed-{step}")
            # After an action of the user's the next refresh asks at once.
            runner.job(f"slurm://torchx/{ids[0]}").act("limit", str(10 + step))
            began = time.perf_counter()
            rows = maker.make(runner.list("slurm"), {})[0]
            changed = {handle: row for handle, row in rows.items() if before.get(handle) is not row}
            refreshes.append(time.perf_counter() - began)
            assert len(changed) == CHANGED
            before, began = rows, time.perf_counter()
            app.on_jobs_changed(JobsChanged("slurm", changed, set()))
            # A pause of the pilot sleeps 20 ms at the least.
            drawn = asyncio.Event()
            app.screen.call_after_refresh(drawn.set)
            await drawn.wait()
            painted.append(time.perf_counter() - began)
    runner.close()
    return statistics.median(raw), statistics.median(refreshes), statistics.median(painted)
