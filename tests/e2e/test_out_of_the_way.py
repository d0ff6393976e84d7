"""Nothing stands in a person's way: names are text, nothing takes the focus, nothing that hangs holds up keys or the
end, the cursor stays where it is useful, and old news is said to be old."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from actions import fill, open_form
from support.slow_backend import ENTRY_POINTS, SETTINGS, Backend
from support.terminal import COMMAND
from support.waiting import PATIENCE


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    return Backend(tmp_path / "slow")


def leave_form(app) -> None:
    """Go back to the picker, then to the jobs: two escapes at once are another key."""
    app.press("escape")
    app.wait("Component")
    app.press("escape")


def test_names_of_jobs_are_text_in_the_palette(terminal, backend):
    backend.has_named({"train [rank0] y": "RUNNING", "eval[/red]x2": "RUNNING", "[@click=app.leave]z": "FAILED"})
    app = terminal(environ=backend.environ)
    app.wait(r"train \[rank0\] y")
    app.press(":")
    # First what is done with the job at the cursor, and no motion.
    app.wait(r"Open the job\s[\s\S]*Logs, full screen\s[\s\S]*Relaunch as it was")
    assert "Half a page" not in app.text()
    app.press("open rank0")
    app.wait(r"Open train \[rank0\] y")
    app.press("enter")
    app.wait(r"Jobs +›.*train \[rank0\] y")
    app.press("escape", ":", "x2")
    app.wait(r"Open eval\[/red\]x2")


@pytest.mark.slow
def test_a_component_is_a_command_away(terminal, backend):
    backend.has(one="RUNNING")
    app = terminal(environ=backend.environ)
    app.wait("one")
    app.press(":")
    app.wait("Open the job")
    app.press("launch utils.echo")
    app.wait("Launch utils.echo")
    app.press("enter")
    app.wait("Run options")


def test_a_launch_that_takes_long_does_not_take_the_focus(terminal, backend, tmp_path):
    backend.has(one="RUNNING")
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slow\n")
    backend.hold("schedule")
    app = terminal(environ=backend.environ)
    app.wait("one")
    open_form(app, "utils.echo")
    app.wait(r"\bready\b")
    app.press("ctrl+s")
    leave_form(app)
    app.wait("STATE")
    app.press("/state:py")
    # Longer than it takes until the dialog would come.
    app.wait(r"waiting: (?:[89]\d|\d{3,}) of 999")
    app.wait("No job matches state:py")
    assert "Continue in the background" not in app.text()
    app.press("escape")
    app.wait(r"\bone\b")
    app.press(":", "show the launch", "enter")
    app.wait("Continue in the background")
    # No letter ends it.
    app.press("y", "x", "enter")
    # The end of the launch closes the dialog too: enter would then open a job.
    app.wait(lambda text: "Continue in the background" not in text)
    backend.release("schedule")
    app.wait(r"Failed +echo-1")


def test_calls_that_hang_hold_up_neither_keys_nor_the_end(terminal, backend):
    backend.has(**{f"job{number}": "RUNNING" for number in range(12)})
    backend.hold("cancel")
    app = terminal(environ=backend.environ)
    app.wait("job11")
    for _ in range(10):
        app.press("x")
        app.wait("Cancel this job")
        app.press("y")
        app.wait(lambda text: "Cancel this job" not in text)
        app.press("j")
    # Ten calls hang: what else is asked is done all the same.
    app.press("enter")
    app.wait(r"Jobs +›")
    app.press("escape")
    app.wait("STATE")
    began = time.monotonic()
    app.press("q")
    assert app.wait_for_end() == 0
    assert time.monotonic() - began < PATIENCE


@pytest.mark.slow
def test_ten_thousand_marked_rows_slow_down_no_key(terminal, backend):
    backend.set("[watch]\ninterval_seconds = 60\n")
    backend.has_named({f"job{number:05}": "RUNNING" for number in range(10_000)})
    app = terminal(environ=backend.environ)
    app.wait(r"^─ job00000 ─")
    dashboard = psutil.Process(app.pid)

    def seconds(keys: str, wanted: str) -> float:
        """Return how long the dashboard computes for keys, whatever else the machine does."""
        began = sum(dashboard.cpu_times()[:2])
        app.press(keys)
        app.wait(wanted)
        return sum(dashboard.cpu_times()[:2]) - began

    unmarked = seconds("j" * 30, r"^─ job00030 ─")
    app.press("*")
    app.wait("10,000 marked")
    # What was sorted at each key took 300 times as long.
    assert seconds("j" * 30, r"^─ job00060 ─") < 20 * max(unmarked, 0.2)
    assert seconds("/name:job09990", r"1 of 10,000") < 40 * max(unmarked, 0.2)


@pytest.mark.slow
def test_a_package_that_hangs_holds_up_no_key_of_the_form(terminal, backend):
    backend.hold("resource")
    app = terminal(environ=backend.environ)
    app.wait("No jobs yet")
    open_form(app, "utils.sh")
    fill(app, {"h": "slow_host"})
    fill(app, {"max_retries": "3"})
    backend.release("resource")
    app.wait(r"cpu\s+77")
    backend.hold("resource")
    app = terminal(environ=backend.environ)
    app.wait("No jobs yet")
    open_form(app, "utils.sh")
    fill(app, {"h": "slow_host"})
    app.press("ctrl+c")
    began = time.monotonic()
    assert app.wait_for_end() == 0
    assert time.monotonic() - began < PATIENCE


@pytest.mark.slow
def test_a_backend_that_cannot_be_made_is_not_asked_for_ever(terminal, backend):
    backend.entry_points.write_text(ENTRY_POINTS.replace("create_scheduler", "no_such_function"))
    app = terminal(environ=backend.environ)
    app.wait("no_such_function")
    app.wait(r"No jobs yet[\s\S]*–   slow +the scheduler slow cannot be loaded")
    assert "Asking" not in app.text()


@pytest.mark.slow
def test_a_key_acts_once_and_any_motion_has_another_key(terminal, backend):
    backend.set(f'{SETTINGS}[keys]\n"table.down" = "J"\n')
    backend.has(one="RUNNING", two="RUNNING", three="RUNNING")
    app = terminal(environ=backend.environ)
    app.wait(r"^─ one ─")
    app.press("J")
    app.wait(r"^─ two ─")
    app.press("space", "J", "space")
    app.wait("2 marked")
    app.press("enter")
    app.wait(r"Jobs +›")
    app.press("escape")
    app.wait("STATE")


@pytest.mark.slow
def test_the_cursor_is_on_the_newest_job_until_it_is_moved(terminal, backend):
    backend.has(old="RUNNING")
    app = terminal(environ=backend.environ)
    app.wait(r"^─ old ─")
    backend.has(newer="RUNNING", old="RUNNING")
    app.wait(r"^─ newer ─")
    app.press("j")
    app.wait(r"^─ old ─")
    backend.has(newest="RUNNING", newer="RUNNING", old="RUNNING")
    app.wait(r"\bnewest\b")
    app.wait(r"^─ old ─")


@pytest.mark.slow
def test_an_open_job_is_watched_whatever_happens_below(terminal, backend):
    backend.has(top="PENDING", other="RUNNING")
    app = terminal(environ=backend.environ)
    app.wait(r"^─ top ─")
    app.press(":", "open other", "enter")
    app.wait(r"Jobs +›.*other")
    backend.has(top="RUNNING", other="RUNNING")
    # The table below has heard of it.
    app.wait(lambda _: "2 running" in app.title)
    backend.has(top="RUNNING", other="SUCCEEDED")
    app.wait(r"✓ Succeeded")


@pytest.mark.slow
def test_what_is_missing_is_called_required_and_the_last_request_stays(terminal, backend):
    app = terminal(environ=backend.environ)
    app.wait("No jobs yet")
    open_form(app, "utils.copy")
    app.wait(r"^.src \*\s+required")
    leave_form(app)
    app.wait("No jobs yet")
    open_form(app, "demo.train")
    app.wait(r"\broles:")
    app.press("x")
    app.wait("is not a whole number")
    app.wait("The last valid request:")


@pytest.mark.slow
def test_a_job_that_nobody_can_ask_any_more_shows_how_it_was_seen_last(terminal, backend, tmp_path):
    run = [COMMAND, "run", "-s", "slow", "--wait", "utils.echo"]
    ended = subprocess.run(
        run, env={**os.environ, **backend.environ}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0, ended
    backend.has(sleeper="RUNNING")
    # Without its package the backend is not there any more.
    app = terminal()
    app.wait("No jobs yet|STATE")
    app.press("H")
    app.wait(r"Failed +echo-1")
