"""Nothing stands in a person's way: names are text, nothing takes the focus, nothing that hangs holds up keys or the
end, the cursor stays where it is useful, and old news is said to be old."""

from __future__ import annotations

import os
import subprocess
import time

import psutil
import pytest
from actions import fill, open_form
from support.slow_backend import ENTRY_POINTS, Backend
from support.terminal import COMMAND
from support.waiting import PATIENCE


@pytest.fixture
def backend(tmp_path):
    return Backend(tmp_path / "slow")


def test_calls_that_hang_hold_up_neither_keys_nor_the_end(terminal, backend):
    backend.has(**{f"job{number}": "RUNNING" for number in range(12)})
    backend.hold("cancel")
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
    backend.has_named({f"job{number:05}": "RUNNING" for number in range(10_000)})
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


@pytest.mark.slow
def test_a_package_that_hangs_holds_up_no_key_of_the_form(terminal, backend):
    backend.hold("resource")
    app = terminal(environ=backend.environ, wait="No jobs yet")
    open_form(app, "utils.sh")
    fill(app, {"h": "slow_host"})
    fill(app, {"max_retries": "3"})
    backend.release("resource")
    app.wait(r"cpu\s+77")
    backend.hold("resource")
    app = terminal(environ=backend.environ, wait="No jobs yet")
    open_form(app, "utils.sh")
    fill(app, {"h": "slow_host"})
    app.press("ctrl+c", wait="Quit\\?")
    app.press("y")
    began = time.monotonic()
    assert app.wait_for_end() == 0
    assert time.monotonic() - began < PATIENCE


@pytest.mark.slow
def test_a_backend_that_cannot_be_made_is_not_asked_for_ever(terminal, backend):
    backend.entry_points.write_text(ENTRY_POINTS.replace("create_scheduler", "no_such_function"))
    app = terminal(environ=backend.environ, wait="no_such_function")
    app.wait(r"No jobs yet[\s\S]*–   slow +the scheduler slow cannot be loaded")
    assert "Asking" not in app.text()


@pytest.mark.slow
def test_job_of_a_missing_backend_keeps_its_last_state(terminal, backend, tmp_path):
    run = [COMMAND, "run", "-s", "slow", "--wait", "utils.echo"]
    ended = subprocess.run(
        run, env={**os.environ, **backend.environ}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0, ended
    backend.has(sleeper="RUNNING")
    # Without its package the backend is not there any more.
    app = terminal(wait="No jobs yet|STATE")
    app.press("H", wait=r"Failed +echo-1")
