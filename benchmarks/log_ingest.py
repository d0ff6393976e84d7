"""Taking in a flood of lines: a followed log pane against Textual's Log and RichLog; what a long log costs in memory.

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
from textual.widgets import Log, RichLog

from benchmarks._big_log import block, write_log
from benchmarks._budget import judged
from benchmarks._sizes import scaled
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.ui.theme import use_themes

LINES = scaled(2_000_000, 60_000)
WIDGET_LINES = scaled(20_000, 500)
MANY_LINES = scaled(10_000_000, 60_000)
ROUNDS = scaled(3, 1)
PATIENCE_SECONDS = 120.0
_BATCH = 500
_LAST = b"this is the last line\n"


class _PaneApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        use_themes(self, "torchx-dark")
        self.expected = 0
        self.counted = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield LogPane()

    def on_log_pane_status_changed(self, message: LogPane.StatusChanged) -> None:
        if message.status.exact and message.status.line_count >= self.expected:
            self.counted.set()


class _WidgetApp(App[None]):
    def __init__(self, widget: Log | RichLog) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def write_flood(path: Path, count: int, written: list[int]) -> None:
    """Append a log, and a last line to know it by."""
    written.append(write_log(path, count) + 1)
    with path.open("ab") as file:
        file.write(_LAST)


async def pane_rate(path: Path, count: int) -> float:
    """Return the lines a second from the first write to the last line on screen and all counted, with the writing."""
    app = _PaneApp()
    async with app.run_test(size=(120, 40)) as pilot:
        pane, view = app.query_one(LogPane), app.query_one(LogView)
        pane.show([ReplicaLog("bench", 0, stdout=path)])
        await pilot.pause()
        began = time.perf_counter()
        written: list[int] = []
        writer = threading.Thread(target=write_flood, args=(path, count, written), daemon=True)
        writer.start()
        last = _LAST.decode().strip()
        while last not in view.render_line(view.size.height - 1).text or pane.status.line_count != written[0]:
            if time.perf_counter() - began > PATIENCE_SECONDS:
                raise TimeoutError("the last line was not drawn, or not all were counted")
            await asyncio.sleep(0.005)
        return written[0] / (time.perf_counter() - began)


async def widget_rate(widget: Log | RichLog, count: int) -> float:
    """Return the lines a second that one of Textual's widgets takes, handed over in batches."""
    lines = block().decode().splitlines()[:count]
    app = _WidgetApp(widget)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        began = time.perf_counter()
        for first in range(0, count, _BATCH):
            batch = lines[first : first + _BATCH]
            if isinstance(widget, Log):
                widget.write_lines(batch)
            else:
                for line in batch:
                    widget.write(line)
            await asyncio.sleep(0)
        await pilot.pause()
        return count / (time.perf_counter() - began)


async def memory_over_idle(path: Path, lines: int) -> float:
    """Return the megabytes that following a long log adds to a process that has drawn a small one."""
    import psutil

    small = path.with_suffix(".small")
    small.write_bytes(block()[:1_000_000])
    process = psutil.Process()
    app = _PaneApp()
    app.expected = lines
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.query_one(LogPane)
        pane.show([ReplicaLog("bench", 0, stdout=small)])
        await pilot.pause(1)
        idle = process.memory_info().rss
        pane.show([ReplicaLog("bench", 0, stdout=path)])
        await asyncio.wait_for(app.counted.wait(), PATIENCE_SECONDS)
        await pilot.pause(0.5)
        return (process.memory_info().rss - idle) / 1e6


def measure_memory(folder: Path) -> tuple[int, float]:
    """Return the lines of a long log, and `memory_over_idle` of a fresh process that follows it."""
    path = folder / "many.log"
    lines = write_log(path, MANY_LINES)
    code = f"import asyncio; from pathlib import Path; from benchmarks.{Path(__file__).stem} import memory_over_idle; "
    code += f"print(asyncio.run(memory_over_idle(Path({str(path)!r}), {lines})))"
    root = Path(__file__).parent.parent
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root)
    return lines, float(found.stdout)


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    panes, logs, riches = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            path = Path(folder) / f"{number}.log"
            panes.append(asyncio.run(pane_rate(path, LINES)))
            path.unlink()
            logs.append(asyncio.run(widget_rate(Log(), WIDGET_LINES)))
            riches.append(asyncio.run(widget_rate(RichLog(), WIDGET_LINES)))
        lines, memory = measure_memory(Path(folder))
    pane, log, rich = (statistics.median(figures) for figures in (panes, logs, riches))
    return [
        ("followed log pane, writing the file included", judged(pane, 300_000, " lines/s", at_least=True)),
        ("Textual's Log, in batches of 500", f"{log:,.0f} lines/s"),
        ("Textual's RichLog", f"{rich:,.0f} lines/s"),
        ("pane against Log", f"{pane / log:.0f}x"),
        ("pane against RichLog", judged(pane / rich, 30, "x", at_least=True)),
        (f"memory over idle at {lines:,} lines", judged(memory, 60, " MB", digits=1)),
    ]
