"""A flood of lines: a paused view stands still, a followed one shows what was there when it was painted."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from log_app import logs_of
from log_writing import LogWriter
from support.background import Background
from support.waiting import PATIENCE

_LINE = b"step %9d  loss 1.6120  lr 1.71e-05  3.41 it/s  grad_norm 0.83\n"


class Flood(Background):
    """Writes numbered lines in a thread, some thousand a second, as long as it is open."""

    def __init__(self, writer):
        super().__init__()
        self.written = 0
        self._writer = writer

    def work(self):
        while not self.stop.wait(0.01):
            first = self.written
            self._writer.write(b"".join(_LINE % number for number in range(first, first + 100)))
            self.written = first + 100


def last_step(logs):
    row = (logs.rows() or [""])[-1]
    return int(row.split("step")[1].split()[0]) if "step" in row else -1


@asynccontextmanager
async def flooded(folder):
    writer = LogWriter(folder)
    async with logs_of(writer, size=(100, 30)) as logs:
        with Flood(writer) as flood:
            await logs.until(lambda: last_step(logs) > 1000, "a flood")
            yield logs, flood
        # Once it is over, the last line is there.
        await logs.until(lambda: last_step(logs) == flood.written - 1, "the last line")


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.soak)])
async def test_paused_view_stands_still(tmp_path, seconds):
    async with flooded(tmp_path) as (logs, flood):
        await logs.press("k", until=lambda: not logs.view.following, what="a pause")
        paused_at, before, begin = flood.written, logs.rows(), time.monotonic()
        # It is a flood, and the pane comes to know of it.
        while time.monotonic() - begin < seconds or flood.written == paused_at or not logs.status.new_lines:
            assert time.monotonic() - begin < PATIENCE
            await asyncio.sleep(0.02)
            # The very bytes that would be drawn.
            assert logs.rows() == before
        await logs.press("G", until=lambda: last_step(logs) > paused_at, what="newer lines")


async def test_followed_view_is_repainted_in_time_but_not_too_often(tmp_path):
    """Lines are shown at once: what is painted is at most two looks of the reader behind."""
    async with flooded(tmp_path) as (logs, flood):
        times = [logs.view.painted_at]
        # However long these take: with each that is missed they take longer.
        for _ in range(6):
            before = flood.written
            # The reader may have looked just before these lines were written, and hand that on only after the next
            # repaint; it has looked again before it hands on what the third one shows.
            for _ in range(3):
                await logs.until(lambda: logs.view.painted_at > times[-1], "a repaint")
                times.append(logs.view.painted_at)
            assert last_step(logs) >= before - 1
        # No more than eight repaints a second.
        assert times[-1] - times[0] > (len(times) - 2) / 8
