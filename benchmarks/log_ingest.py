"""Taking in a flood of lines: a followed log pane against Textual's RichLog, and what a long log costs in memory.

Budgets: at least 300,000 lines a second and 30 times RichLog; less than 60 MB over idle at 10 million lines.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import RichLog

from torchx_tui.backends.logs.replica_log import ReplicaLog
from torchx_tui.tui.widgets.log_pane import LogPane
from torchx_tui.tui.widgets.log_view import LogView

LINES = 2_000_000
RICH_LINES = 20_000
MANY_LINES = 10_000_000
ROUNDS = 3
PATIENCE_SECONDS = 120.0
_BATCH = 10_000
_LINE = b"step 14870  loss 1.6120  lr 1.71e-05  3.41 it/s  grad_norm 0.83 %07d\n"


class _PaneApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.counted = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield LogPane()

    def on_log_pane_status_changed(self, message: LogPane.StatusChanged) -> None:
        if message.status.exact and message.status.line_count == MANY_LINES:
            self.counted.set()


class _RichApp(App[None]):
    def compose(self) -> ComposeResult:
        yield RichLog()


def write_lines(path: Path, count: int) -> None:
    """Append lines in batches, as fast as the disk takes them."""
    with path.open("ab", buffering=0) as file:
        for first in range(0, count, _BATCH):
            file.write(b"".join(_LINE % number for number in range(first, first + _BATCH)))


async def pane_rate(path: Path, count: int) -> float:
    """Return the lines a second from the first write to the last line on screen, the writing included."""
    app = _PaneApp()
    async with app.run_test(size=(120, 40)) as pilot:
        pane, view = app.query_one(LogPane), app.query_one(LogView)
        pane.show([ReplicaLog("bench", 0, stdout=path)])
        await pilot.pause()
        began = time.perf_counter()
        writer = threading.Thread(target=write_lines, args=(path, count), daemon=True)
        writer.start()
        last = f"{count - 1:07d}"
        while last not in view.render_line(view.size.height - 1).text:
            if time.perf_counter() - began > PATIENCE_SECONDS:
                raise TimeoutError("the last line was not drawn")
            await asyncio.sleep(0.005)
        return count / (time.perf_counter() - began)


async def rich_log_rate(count: int) -> float:
    """Return the lines a second that RichLog takes."""
    app = _RichApp()
    async with app.run_test(size=(120, 40)) as pilot:
        widget = app.query_one(RichLog)
        await pilot.pause()
        began = time.perf_counter()
        for first in range(0, count, 500):
            for number in range(first, first + 500):
                widget.write((_LINE % number).decode().rstrip())
            await asyncio.sleep(0)
        await pilot.pause()
        return count / (time.perf_counter() - began)


async def memory_over_idle(path: Path) -> float:
    """Return the megabytes that following a long log adds to a process that has drawn a small one."""
    import psutil

    small = path.with_suffix(".small")
    write_lines(small, _BATCH)
    process = psutil.Process()
    app = _PaneApp()
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.query_one(LogPane)
        pane.show([ReplicaLog("bench", 0, stdout=small)])
        await pilot.pause(1)
        idle = process.memory_info().rss
        pane.show([ReplicaLog("bench", 0, stdout=path)])
        await asyncio.wait_for(app.counted.wait(), PATIENCE_SECONDS)
        await pilot.pause(0.5)
        return (process.memory_info().rss - idle) / 1e6


def measure_memory(folder: Path) -> float:
    """Return `memory_over_idle` of a fresh process."""
    path = folder / "many.log"
    write_lines(path, MANY_LINES)
    code = f"import asyncio; from pathlib import Path; from benchmarks.{Path(__file__).stem} import memory_over_idle; "
    code += f"print(asyncio.run(memory_over_idle(Path({str(path)!r}))))"
    root = Path(__file__).parent.parent
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root)
    return float(found.stdout)


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    with tempfile.TemporaryDirectory() as folder:
        panes, riches = [], []
        for number in range(ROUNDS):
            panes.append(asyncio.run(pane_rate(Path(folder) / f"{number}.log", LINES)))
            riches.append(asyncio.run(rich_log_rate(RICH_LINES)))
        memory = measure_memory(Path(folder))
    pane, rich = statistics.median(panes), statistics.median(riches)
    return [
        ("followed log pane, the writing of the file included", f"{pane:,.0f} lines/s"),
        ("RichLog", f"{rich:,.0f} lines/s"),
        ("pane against RichLog", f"{pane / rich:.0f}x"),
        (f"memory over idle at {MANY_LINES:,} lines", f"{memory:.1f} MB"),
    ]
