"""By keys alone: launch, watch, read, cancel, fail, relaunch, edit and relaunch."""

import re

import pytest
from actions import fill, launch, wait_top

pytestmark = pytest.mark.slow


def test_four_replicas_from_submitted_to_succeeded(terminal):
    app = terminal()
    app.wait("No jobs yet")
    launch(app, "demo.train", {"steps": "12", "num_replicas": "4", "step_seconds": "0.25"})
    wait_top(app, "Running")
    # Lines of every replica arrive while the job runs.
    app.wait(lambda text: all(re.search(rf"^.*\b{k}[│┆].*step", text, re.MULTILINE) for k in range(4)))
    assert "Running" in app.text()
    app.wait(lambda _: app.title == "torchx-tui 1 running")
    row = wait_top(app, "Succeeded")
    assert "4/4" in row
    app.wait("Ended")
    app.wait(lambda _: app.title == "torchx-tui")


def test_cancel_shows_cancelled_soon(terminal):
    app = terminal()
    app.wait("No jobs yet")
    launch(app, "demo.train", {"steps": "1000"})
    wait_top(app, "Running")
    app.press("x")
    app.wait("Keep running")
    app.press("y")
    wait_top(app, "Cancelled")


def test_a_failure_names_the_rank_and_shows_its_traceback_then_runs_again(terminal):
    app = terminal()
    app.wait("No jobs yet")
    launch(
        app,
        "demo.train",
        {"steps": "8", "num_replicas": "4", "step_seconds": "0.05", "fail_at_step": "5", "fail_rank": "2"},
    )
    wait_top(app, "Failed")
    app.press("enter")
    app.wait(r"trainer/2.*exit 1")
    app.wait(r"(?s)Why.*▎ Traceback \(most recent call last\)")
    app.wait(r"▎ \w+Error: ")
    app.press("escape")
    app.wait("STATE")
    app.press("r")
    app.wait(lambda text: len(re.findall(r"✗ Failed\s+demo-train", text)) == 2)
    # Edited: every value is kept, one is changed, and it succeeds.
    app.press("e")
    app.wait(r"^▌\S")
    text = app.wait(r"num_replicas\s+4\s+last run")
    assert re.search(r"fail_rank\s+2\s+last run", text)
    fill(app, {"fail_at_step": "-1"})
    app.wait("ready")
    app.press("ctrl+s")
    wait_top(app, "Succeeded")
