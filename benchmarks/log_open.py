"""Opening a large log: the last page on screen, and the exact number of lines against ``wc -l``.

Budgets, for 1 GB: the last page under 150 ms; the count at most 4 times ``wc -l``. ``LOG_OPEN_MB`` sets the size.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from textual.app import App, ComposeResult

from torchx_tui.backends.logs.merge import MergedLog
from torchx_tui.backends.logs.replica_log import ReplicaLog
from torchx_tui.tui.widgets.log_pane import LogPane
from torchx_tui.tui.widgets.log_view import LogView

MEGABYTES = int(os.environ.get("LOG_OPEN_MB", "256"))
ROUNDS = 5
PATIENCE_SECONDS = 60.0


class _Shell(App[None]):
    def compose(self) -> ComposeResult:
        yield LogPane()


def write_log(path: Path, megabytes: int) -> int:
    """Write a log of about 100 bytes a line; return its lines."""
    block = b"".join(
        b"2026-01-01 10:00:%02d INFO step %6d  loss 1.6120  lr 1.71e-05  3.41 it/s  grad_norm 0.83 %s\n"
        % (number % 60, number, b"x" * (number % 31))
        for number in range(10_000)
    )
    times = max(1, megabytes * 1_000_000 // len(block))
    with path.open("wb") as file:
        for _ in range(times):
            file.write(block)
    return times * 10_000


def count_seconds(path: Path, lines: int) -> float:
    """Return the seconds to the exact number of lines."""
    began = time.perf_counter()
    log = MergedLog([ReplicaLog("bench", 0, combined=path)])
    log.open()
    while log.read_older(0.02):
        pass
    seconds = time.perf_counter() - began
    first, end, *_ = log.bounds()
    log.close()
    if end - first != lines:
        raise AssertionError(f"counted {end - first} of {lines} lines")
    return seconds


def wc_seconds(path: Path) -> float:
    """Return the seconds that ``wc -l`` takes, its start included."""
    began = time.perf_counter()
    subprocess.run(["wc", "-l", str(path)], check=True, capture_output=True)
    return time.perf_counter() - began


async def page_seconds(path: Path) -> float:
    """Return the seconds from ``show`` to the last page drawn in a screen of 120x40."""
    app = _Shell()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        pane, view = app.query_one(LogPane), app.query_one(LogView)
        began = time.perf_counter()
        pane.show([ReplicaLog("bench", 0, combined=path)])
        while not view.render_line(view.size.height - 1).text.strip():
            if time.perf_counter() - began > PATIENCE_SECONDS:
                raise TimeoutError("the last page was not drawn")
            await asyncio.sleep(0)
        return time.perf_counter() - began


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "combined.log"
        lines = write_log(path, MEGABYTES)
        wc_seconds(path)
        pages = [asyncio.run(page_seconds(path)) for _ in range(ROUNDS)]
        counts, wcs = [], []
        for _ in range(ROUNDS):
            counts.append(count_seconds(path, lines))
            wcs.append(wc_seconds(path))
    page, count, wc = (statistics.median(figures) for figures in (pages, counts, wcs))
    return [
        (f"{MEGABYTES} MB: last page on screen", f"{page * 1000:.0f} ms"),
        (f"{MEGABYTES} MB, {lines:,} lines: exact count", f"{count * 1000:.0f} ms"),
        ("the same with wc -l", f"{wc * 1000:.0f} ms"),
        ("count against wc -l", f"{count / wc:.2f}x"),
    ]
