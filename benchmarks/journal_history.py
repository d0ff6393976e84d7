"""The history of a long journal: until it is on the screen, and how long keys wait while the rest is read.

Beside it the same files are read in bare Python, each with ``json``. Budgets: the first rows in a quarter of that time,
and under 1 s; of a hundred stalls of the event loop 99 under 100 ms, which is what a person takes for at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks._budget import judged, percentile
from benchmarks._sizes import scaled
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchRecord, encode_record
from torchx_tui.backends.runner import Runner
from torchx_tui.settings.config import Settings
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.serialize import appdef_to_dict
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.ui_state import UiStateFile

RECORDS = scaled(100_000, 200)
PATIENCE_SECONDS = 300.0
# Between two looks at the clock on the event loop (s).
_BEAT_SECONDS = 0.005


def write_journal(folder: Path, count: int) -> None:
    """Write so many records, one every ten seconds."""
    folder.mkdir(parents=True)
    app = appdef_to_dict(AppDef("sh", [Role("sh", "", entrypoint="sh", args=["-c", "echo hi"], env={"A": "b"})]))
    for number in range(count):
        at = 1.7e9 + number * 10
        record = LaunchRecord(
            id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-000000-{number:08x}",
            at=at,
            scheduler="local_cwd",
            session="torchx",
            app=app,
            component="utils.sh",
            arguments={"args": ["sh", "-c", "echo hi"]},
            cwd="/home/me/project",
            user="me",
            app_id=f"sh-{number:08x}",
            state="SUCCEEDED",
            state_at=at + 5,
        )
        (folder / f"{record.id}.json").write_bytes(encode_record(record))


def bare_seconds(folder: Path) -> float:
    """Return how long it takes to read all files with ``json``."""
    began = time.perf_counter()
    for entry in os.scandir(folder):
        with open(entry.path, "rb") as file:  # noqa: PTH123 - what bare Python does
            json.loads(file.read())
    return time.perf_counter() - began


async def measure(folder: Path) -> tuple[float, float, list[float]]:
    """Return the seconds until the first rows are on the screen, until all are, and the stalls of the event loop."""
    runner = Runner(journal=Journal(folder / "journal"))
    app = TorchXTuiApp(runner, Settings(), schedulers=[], ui_state=UiStateFile(folder / "screen.json"))
    stalls: list[float] = []

    async def beat() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_BEAT_SECONDS)
            stalls.append(time.perf_counter() - began - _BEAT_SECONDS)

    async def until(test: Callable[[], bool]) -> float:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            seconds = time.perf_counter() - began
            if test() or seconds > PATIENCE_SECONDS:
                return seconds

    def is_painted() -> bool:
        newest = f"sh-{RECORDS - 1:08x}"
        return any(newest in strip.text for strip in screen._compositor.render_strips())

    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause(1)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        beating = asyncio.create_task(beat())
        began = time.perf_counter()
        screen.action_history()
        first = await until(is_painted)
        last = await until(lambda: screen.table.row_count >= RECORDS)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
    return first, last, stalls


def run() -> list[tuple[str, str]]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_journal(folder / "journal", RECORDS)
        bare = bare_seconds(folder / "journal")
        first, last, stalls = asyncio.run(measure(folder))
    return [
        (f"{RECORDS:,} records, all files in bare Python", f"{bare:.1f} s"),
        (f"{RECORDS:,} records, key to the first rows", judged(first, 1.0, " s", digits=2)),
        (f"{RECORDS:,} records, first rows / bare Python", judged(first / bare, 0.25, "x", digits=2)),
        (f"{RECORDS:,} records, all rows / bare Python", f"{last / bare:.1f}x"),
        ("stall of the event loop meanwhile, 99 of 100", judged(percentile(stalls, 0.99) * 1000, 100, " ms")),
        ("stall of the event loop meanwhile, longest", f"{max(stalls) * 1000:.0f} ms"),
    ]
