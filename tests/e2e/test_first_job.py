"""By keys alone: launch, watch, read, cancel, fail, relaunch, edit and relaunch."""

import re

import pytest
from actions import fill, launch, wait_top
from support.terminal import KEYS


def test_four_replicas_from_submitted_to_succeeded(terminal, tmp_path):
    script = tmp_path / "job.py"
    # It runs until all was seen that a job shows while it runs.
    script.write_text("import os, time\nprint('step 1', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.1)\n")
    app = terminal(wait="No jobs yet")
    launch(app, "utils.python", {"script": str(script), "num_replicas": "4"})
    wait_top(app, "Running")
    # Lines of every replica arrive while the job runs.
    app.wait(lambda text: all(re.search(rf"^.*\b{k}[│┆].*step", text, re.MULTILINE) for k in range(4)))
    assert "Running" in app.text()
    app.wait(lambda _: app.title == "torchx-tui 1 running")
    (tmp_path / "go").touch()
    row = wait_top(app, "Succeeded")
    assert "4/4" in row
    app.wait("Ended")
    app.wait(lambda _: app.title == "torchx-tui")


def test_failure_names_the_rank_and_runs_again(terminal):
    app = terminal(wait="No jobs yet")
    launch(
        app,
        "demo.train",
        {"steps": "8", "num_replicas": "4", "step_seconds": "0.05", "fail_at_step": "5", "fail_rank": "2"},
    )
    wait_top(app, "Failed")
    app.press("enter", wait=r"trainer/2.*exit 1")
    app.wait(r"(?s)Why.*▎ Traceback \(most recent call last\)")
    app.wait("FloatingPointError: loss is nan")
    app.press("escape", wait="STATE")
    app.press("r", wait=lambda text: len(re.findall(r"✗ Failed\s+demo-train", text)) == 2)
    # Edited: every value is kept, one is changed, and it succeeds.
    app.press("e", wait=r"^▌\S")
    text = app.wait(r"num_replicas\s+4\s+last run")
    assert re.search(r"fail_rank\s+2\s+last run", text)
    fill(app, {"fail_at_step": "-1"})
    app.wait("ready")
    app.press("ctrl+s")
    wait_top(app, "Succeeded")


def counted(app):
    """Count the keys that are pressed from now on; return what tells how many there were."""
    press, pressed = app.press, []

    def press_and_count(*keys, **waits):
        pressed.extend(letter for key in keys for letter in ((key,) if key in KEYS else key))
        press(*keys, **waits)

    app.press = press_and_count
    return lambda: len(pressed)


@pytest.mark.slow
def test_first_job_is_mended_in_under_60_keys(terminal):
    app = terminal(wait="No jobs yet")
    count = counted(app)
    app.press("n", wait="demo.train")
    app.press("demo", wait=r"Component\s+1 of")
    app.press("enter", wait=r"^▌steps")
    fill(app, {"fail_at_step": "3"})
    app.wait("ready")
    app.press("ctrl+s")
    wait_top(app, "Failed")
    app.press("enter", wait=r"(?s)Why.*▎ Traceback \(most recent call last\)")
    app.press("escape", wait="STATE")
    app.press("e", wait=r"fail_at_step\s+3\s+last run")
    app.wait(r"^▌steps")
    fill(app, {"fail_at_step": "-1"})
    app.wait("ready")
    app.press("ctrl+s")
    wait_top(app, "Succeeded")
    assert count() < 60
