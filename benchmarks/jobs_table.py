"""Watching many jobs: what a poll costs on the event loop, beside Textual's DataTable, and what it costs to stay open.

Jobs come from the example of a plug-in, ``examples/synthetic_scheduler``. Budgets: 10,000 jobs with 1 % changed painted
within 100 ms on the event loop; under 1 % of a core idle with 1,000 jobs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from benchmarks._budget import judged, percentile
from benchmarks._dashboard import COMMAND, Screen
from benchmarks._sizes import scaled
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.runner import Runner
from torchx_tui.settings.config import Settings
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.messages import JobsChanged, ProgressRead
from torchx_tui.tui.rows import JobRow, RowProgress

COUNTS = tuple(scaled(count, 10) for count in (100, 1_000, 10_000, 50_000))
# A dashboard is left open for half a minute for each.
LIVE_COUNTS = (scaled(1_000, 10), scaled(10_000, 20))
# Filling a DataTable with more takes minutes.
MOST_IN_DATA_TABLE = 10_000
ROUNDS = scaled(9, 1)
KEYS = scaled(60, 2)
_COUNTED_SECONDS = scaled(10, 1)
_EXAMPLE = Path(__file__).parent.parent / "examples" / "synthetic_scheduler" / "synthetic_jobs.py"
_STATES = (AppState.RUNNING, AppState.PENDING, AppState.FAILED, AppState.SUCCEEDED)

Row = tuple[str, str]


def made_up(count: int) -> dict[str, JobRow]:
    """Return so many jobs."""
    now = time.time()
    handles = [f"synthetic://bench/llama3-8b-sft-{number:06d}" for number in range(count)]
    return {
        handle: JobRow(handle, "synthetic", handle[18:], _STATES[number % 4], 1, 2, now - number * 7, user="alice")
        for number, handle in enumerate(handles)
    }


def changed(rows: dict[str, JobRow], step: int) -> dict[str, JobRow]:
    """Change one job of a hundred, and return those."""
    found = {}
    for handle in list(rows)[step % 100 :: 100]:
        found[handle] = rows[handle] = replace(rows[handle], state=_STATES[step % 2], why=f"step {step}")
    return found


async def our_seconds(count: int, *, progress: bool = False) -> float:
    """Return the seconds from a message with 1 % of the jobs changed to an idle screen that shows them.

    Args:
        count: jobs in the table.
        progress: tell with each message how far the jobs on the screen are as well.
    """
    app = TorchXTuiApp(Runner(), Settings(), schedulers=[])
    rows = made_up(count)
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        app.jobs.set_schedulers(["synthetic"])
        app.on_jobs_changed(JobsChanged("synthetic", rows.copy(), set()))
        await pilot.pause(1)
        app.feed.end()
        assert isinstance(app.screen, JobsScreen)
        taken = []
        for step in range(ROUNDS):
            message = JobsChanged("synthetic", changed(rows, step), set())
            began = time.perf_counter()
            app.on_jobs_changed(message)
            if progress:
                told = RowProgress(step, step / ROUNDS, 60.0 * step, "loss", f"{step}.25")
                app.on_progress_read(ProgressRead(dict.fromkeys(app.screen.table.on_screen[0], told)))
            await pilot.pause()
            taken.append(time.perf_counter() - began)
        app.ui_state.flush()
        return statistics.median(taken)


class _StockApp(App[None]):
    def compose(self) -> ComposeResult:
        yield DataTable()


async def stock_seconds(count: int) -> float:
    """Return the same of Textual's DataTable, whose cells are updated in place, without their widths."""
    app = _StockApp()
    rows = made_up(count)
    async with app.run_test(size=(200, 50)) as pilot:
        table = app.query_one(DataTable)
        for name in ("state", "name", "why"):
            table.add_column(name, key=name, width=30)
        for handle, row in rows.items():
            table.add_row(Text(row.state.name), Text(row.app_id), Text(row.why), key=handle)
        await pilot.pause(1)
        taken = []
        for step in range(ROUNDS):
            found = changed(rows, step)
            began = time.perf_counter()
            for handle, row in found.items():
                table.update_cell(handle, "state", Text(row.state.name))
                table.update_cell(handle, "why", Text(row.why))
            await pilot.pause()
            taken.append(time.perf_counter() - began)
        return statistics.median(taken)


def write_journal(folder: Path, count: int) -> None:
    """Write so many launches of the past, as the program itself writes them."""
    app = AppDef("train", [Role("trainer", "image", entrypoint="python3", args=["train.py"], num_replicas=4)])
    first = Journal(folder).record_intent(
        app, "local_cwd", "torchx", {}, origin=LaunchOrigin("demo.train", {"lr": "1"})
    )
    text = next(folder.iterdir()).read_text()
    for number in range(count - 1):
        name = f"20250101-{number:06d}-000000-00000000"
        (folder / f"{name}.json").write_text(text.replace(first.id, name))


@contextmanager
def dashboard(count: int, changing: float, launches: int = 0) -> Iterator[tuple[Screen, psutil.Process, float]]:
    """Open the installed command with so many jobs; yield its terminal, its process, and the seconds to its rows.

    Args:
        count: jobs of the synthetic scheduler.
        changing: the part of them that changes from one look to the next.
        launches: of the past, in the journal.
    """
    with tempfile.TemporaryDirectory(prefix="torchx-tui-bench-", ignore_cleanup_errors=True) as folder:
        info = Path(folder) / "plugin" / "torchx_tui_synthetic-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchx-tui-synthetic\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[torchx_tui.schedulers]\nsynthetic = synthetic_jobs:create_scheduler\n")
        shutil.copy(_EXAMPLE, info.parent)
        environ = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(info.parent),
            "SYNTHETIC_JOBS": str(count),
            "SYNTHETIC_CHANGING": str(changing),
            **{f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("STATE", "CACHE", "CONFIG")},
        }
        if launches:
            write_journal(Path(folder) / "STATE" / "torchx-tui" / "journal", launches)
        began = time.perf_counter()
        screen = Screen([COMMAND], environ)
        try:
            seconds = screen.wait(b"llama3-8b-sft") - began
            yield screen, psutil.Process(screen.pid), seconds
        finally:
            screen.close()


def live_rows(count: int, changing: float, label: str) -> list[Row]:
    """Return CPU, memory, bytes and keys of a dashboard that is left open."""
    with dashboard(count, changing) as (screen, process, seconds):
        # Logs are looked at more seldom once nothing has come for ten seconds.
        time.sleep(scaled(15, 1))
        before = process.cpu_times()
        began = time.perf_counter()
        sent = screen.bytes_in(_COUNTED_SECONDS)
        after, passed = process.cpu_times(), time.perf_counter() - began
        busy = (after.user + after.system - before.user - before.system) / passed * 100
        memory = process.memory_info().rss / 1e6
        keys = key_seconds(screen)
    cpu = judged(busy, 1, " % of a core", digits=1) if changing == 0 and count == 1_000 else f"{busy:.1f} % of a core"
    return [
        (f"{count:,} jobs, {label}: first rows after", f"{seconds * 1000:.0f} ms"),
        (f"{count:,} jobs, {label}: CPU", cpu),
        (f"{count:,} jobs, {label}: to the terminal", f"{sent / _COUNTED_SECONDS:,.0f} bytes/s"),
        (f"{count:,} jobs, {label}: memory", f"{memory:.0f} MB"),
        (f"{count:,} jobs, {label}: key to paint, p50 / p99", _milliseconds(keys)),
    ]


def journal_rows(launches: int) -> list[Row]:
    """Return how long a long journal keeps the screen and the rows waiting, and how long it takes to be shown."""
    with dashboard(100, 0.0, launches) as (screen, _, seconds):
        painted = screen.wait(b"torchx-tui   ") - screen.began
        shown = None
        if launches:
            start, began = len(screen.data), time.perf_counter()
            screen.press(b"H")
            # History is read once the end of the rows is in sight: the first two pages of the journal.
            screen.press(b"G")
            shown = screen.wait(f"{min(launches, 1_200) + 100:,}".encode(), start) - began
    label = f"{launches:,} launches in the journal" if launches else "empty journal"
    rows = [
        (f"{label}: first paint after", f"{painted * 1000:.0f} ms"),
        (f"{label}: first rows after", f"{seconds * 1000:.0f} ms"),
    ]
    return rows if shown is None else [*rows, (f"{label}: H to the history", f"{shown * 1000:.0f} ms")]


def key_seconds(screen: Screen) -> list[float]:
    """Return how long after a key the cursor had moved: the card names the job that it stands on."""
    taken = []
    for number in range(KEYS):
        time.sleep(0.1 + number * 0.037 % 0.1)
        start, began = len(screen.data), time.perf_counter()
        screen.press(b"j" if number % 40 < 20 else b"k")
        taken.append(screen.wait(b"\x1b", start) - began)
    return taken


def _milliseconds(seconds: list[float]) -> str:
    return f"{percentile(seconds, 0.5) * 1000:.0f} / {percentile(seconds, 0.99) * 1000:.0f} ms"


def _in_a_process(function: str, count: int, more: str = "") -> float:
    """Return what a function of this module measures in a process of its own, which has drawn nothing before."""
    code = f"import asyncio, benchmarks.jobs_table as t; print(asyncio.run(t.{function}({count}{more})))"
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "XDG_STATE_HOME": folder}
        root = Path(__file__).parent.parent
        told = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root, env=environ
        ).stdout
    return float(told.split()[-1])


def run() -> list[Row]:
    """Return the rows of the report."""
    rows: list[Row] = []
    for count in COUNTS:
        ours = _in_a_process("our_seconds", count) * 1000
        figure = judged(ours, 100, " ms", digits=1) if count == 10_000 else f"{ours:.1f} ms"
        rows.append((f"{count:,} jobs, 1 % changed, to painted", figure))
        if count <= MOST_IN_DATA_TABLE:
            stock = _in_a_process("stock_seconds", count) * 1000
            rows.append((f"{count:,} jobs, 1 % changed, DataTable", f"{stock:.1f} ms"))
    ours = _in_a_process("our_seconds", 10_000, ", progress=True") * 1000
    rows.append(("10,000 jobs, 1 % changed, with progress, to painted", judged(ours, 100, " ms", digits=1)))
    rows += journal_rows(0) + journal_rows(10_000)
    rows += live_rows(1_000, 0.0, "idle")
    for count in LIVE_COUNTS:
        rows += live_rows(count, 0.01, "1 % changing")
    return rows
