"""Opening a large log: the last page on screen, and the exact number of lines, against ``wc -l``, ``tail`` and toolong.

Budgets, for 1 GB: the last page under 150 ms; the count at most 4 times ``wc -l``.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from textual.app import App, ComposeResult

from benchmarks._big_log import BigLog, big_log
from benchmarks._budget import judged
from benchmarks._sizes import scaled
from benchmarks._toolong import installed, seconds_to_show
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.ui.theme import use_themes

ROUNDS = scaled(5, 1)
PATIENCE_SECONDS = 60.0


class _Shell(App[None]):
    def __init__(self) -> None:
        super().__init__()
        use_themes(self, "torchx-dark")

    def compose(self) -> ComposeResult:
        yield LogPane()


def count_seconds(path: Path, lines: int) -> float:
    """Return the seconds to the exact number of lines."""
    began = time.perf_counter()
    log = MergedLog([ReplicaLog("bench", 0, combined=path)])
    log.open()
    while log.read_older(0.02):
        pass
    seconds = time.perf_counter() - began
    bounds = log.bounds()
    log.close()
    if bounds.end - bounds.first != lines:
        raise AssertionError(f"counted {bounds.end - bounds.first} of {lines} lines")
    return seconds


def command_seconds(*command: str) -> float:
    """Return the seconds that a command takes, its start included."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
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


def toolong_row(log: BigLog) -> tuple[str, str]:
    """Return what toolong takes; it shows the first page."""
    command = installed()
    if command is None:
        return "toolong: first page, its start included", "could not be installed"
    seconds = [seconds_to_show(command, log.path, b"trainer.loop") for _ in range(3)]
    return "toolong: first page, its start included", f"{statistics.median(seconds) * 1000:.0f} ms"


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    log = big_log()
    wc = ("wc", "-l", str(log.path))
    command_seconds(*wc)
    # Ours and theirs in turn, so that what else the machine does meets both.
    measures: list[Callable[[], float]] = [
        lambda: asyncio.run(page_seconds(log.path)),
        lambda: command_seconds("tail", "-n", "50", str(log.path)),
        lambda: count_seconds(log.path, log.lines),
        lambda: command_seconds(*wc),
    ]
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    page, tail, count, wc_count = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    return [
        ("the log", log.label),
        ("last page on screen", judged(page * 1000, 150, " ms")),
        ("the same with tail -n 50", f"{tail * 1000:.0f} ms"),
        ("exact count of lines", f"{count * 1000:.0f} ms"),
        ("the same with wc -l", f"{wc_count * 1000:.0f} ms"),
        ("count against wc -l", judged(count / wc_count, 4, "x", digits=2)),
        toolong_row(log),
    ]
