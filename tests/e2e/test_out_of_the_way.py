"""Neither calls that hang nor thousands of marked rows hold up keys or the end."""

from __future__ import annotations

import time

import psutil
import pytest
from support.slow_backend import Backend
from support.waiting import PATIENCE


@pytest.fixture
def backend(tmp_path):
    return Backend(tmp_path / "slow")


def test_calls_that_hang_hold_up_neither_keys_nor_the_end(terminal, backend):
    backend.has({f"job{number}": "RUNNING" for number in range(12)})
    backend.hold_cancels()
    app = terminal(environ=backend.environ, wait="job11")
    for _ in range(10):
        app.press("x", wait="Cancel this job")
        app.press("y", wait=lambda text: "Cancel this job" not in text)
        app.press("j")
    # Ten calls hang: what else is asked is done all the same.
    app.press("enter", wait=r"Jobs +›")
    app.press("escape", wait="STATE")
    began = time.monotonic()
    app.press("q")
    assert app.wait_for_end() == 0
    assert time.monotonic() - began < PATIENCE


@pytest.mark.slow
def test_ten_thousand_marked_rows_slow_down_no_key(terminal, backend):
    backend.set("[watch]\ninterval_seconds = 60\n")
    backend.has({f"job{number:05}": "RUNNING" for number in range(10_000)})
    app = terminal(environ=backend.environ, wait=r"^─ job00000 ─")
    dashboard = psutil.Process(app.pid)

    def seconds(keys: str, wanted: str) -> float:
        """Return how long the dashboard computes for keys, whatever else the machine does."""
        began = sum(dashboard.cpu_times()[:2])
        app.press(keys, wait=wanted)
        return sum(dashboard.cpu_times()[:2]) - began

    unmarked = seconds("j" * 30, r"^─ job00030 ─")
    app.press("*", wait="10,000 marked")
    # What was sorted at each key took 300 times as long.
    assert seconds("j" * 30, r"^─ job00060 ─") < 20 * max(unmarked, 0.2)
    assert seconds("/name:job09990", r"1 of 10,000") < 40 * max(unmarked, 0.2)
