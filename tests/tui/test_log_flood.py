"""A flood of lines: a paused view stands still, a followed one shows what was there when it was painted."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from support.background import Background
from support.waiting import PATIENCE

_LINE = b"step %9d  loss 1.6120  lr 1.71e-05  3.41 it/s  grad_norm 0.83\n"


class Flood(Background):
    """Writes numbered lines in a thread, some thousand a second, as long as it is open."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self.written = 0
        self._writer = writer

    def work(self) -> None:
        while not self.stop.wait(0.01):
            first = self.written
            self._writer.write(b"".join(_LINE % number for number in range(first, first + 100)))
            self.written = first + 100


def last_step(app: LogApp) -> int:
    rows = app.rows()
    return int(rows[-1].split("step")[1].split()[0]) if rows and "step" in rows[-1] else -1


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.soak)])
async def test_a_paused_view_stands_still(tmp_path: Path, seconds: int) -> None:
    app = LogApp([LogWriter(tmp_path).log])
    async with app.run_test(size=(100, 30)) as pilot:
        with Flood(LogWriter(tmp_path)) as flood:
            await app.until(lambda: last_step(app) > 1000)
            await pilot.press("k")
            await app.until(lambda: not app.view.following)
            paused_at, before = flood.written, app.rows()
            begin = time.monotonic()
            # It is a flood, and the pane comes to know of it.
            while time.monotonic() - begin < seconds or flood.written == paused_at or not app.pane.status.new_lines:
                assert time.monotonic() - begin < PATIENCE
                await asyncio.sleep(0.02)
                # The very bytes that would be drawn.
                assert app.rows() == before
            await pilot.press("G")
            await app.until(lambda: last_step(app) > paused_at)


async def test_a_repaint_shows_what_was_written_before_it(tmp_path: Path) -> None:
    """Lines are told of at once: what is painted is at most two looks of the reader behind."""
    app = LogApp([LogWriter(tmp_path).log])
    async with app.run_test(size=(100, 30)):
        with Flood(LogWriter(tmp_path)) as flood:
            await app.until(lambda: last_step(app) > 1000)
            behind = 0
            for _ in range(20):
                before, painted = flood.written, app.view.painted.at
                # The reader may have looked just before these lines were written, and tell of that only after the next
                # repaint; it has looked again before it tells of the third one.
                for _ in range(3):
                    await app.until(lambda painted=painted: app.view.painted.at > painted)
                    painted = app.view.painted.at
                behind += last_step(app) < before - 1
            assert not behind
        # Once it is over, the last line is there.
        await app.until(lambda: last_step(app) == flood.written - 1)


async def test_no_more_than_eight_repaints_a_second(tmp_path: Path) -> None:
    app = LogApp([LogWriter(tmp_path).log])
    async with app.run_test(size=(100, 30)):
        with Flood(LogWriter(tmp_path)):
            await app.until(lambda: last_step(app) > 1000)
            # However long these take: with each that is missed they take longer.
            times = [app.view.painted.at]
            while len(times) < 18:
                await app.until(lambda: app.view.painted.at != times[-1])
                times.append(app.view.painted.at)
        assert times[-1] - times[0] > (len(times) - 2) / 8
