"""A backend that misbehaves, and local jobs beside it: keys are answered, rows stay, and it comes back by itself."""

from __future__ import annotations

import re
import time

import pytest
from actions import launch
from support.plugin import install_plugin
from support.waiting import PATIENCE

SETTINGS = "[watch]\ninterval_seconds = 0.2\nslowest_seconds = 0.5\ntimeout_seconds = 3.0\n"
# How a backend misbehaves, and what is said of it.
FAULTS = {
    "hang": "no answer",
    "slow": "no answer",
    "garbage": "did not answer with a list",
    "drop": "incomplete answer",
    "gone": "connection refused",
    # At last: it seems well between two faults, so that nobody sees when it is.
    "flaky": "reset by peer",
}


@pytest.fixture
def plugin(tmp_path):
    """Return the environment of a dashboard with 300 made-up jobs, and the file that says how their backend does."""
    folder = install_plugin(tmp_path / "plugin")
    settings, fault = tmp_path / "config.toml", tmp_path / "fault"
    settings.write_text(SETTINGS)
    environ = {
        "PYTHONPATH": str(folder),
        "TORCHX_TUI_CONFIG": str(settings),
        "SYNTHETIC_JOBS": "300",
        "SYNTHETIC_FAULT": str(fault),
    }
    return environ, fault


def cursor_name(text: str) -> str:
    """Return the job at the cursor: the one that the card under the table is of."""
    found = re.search(r"^─ (\S+-\d{6}) ─", text, re.MULTILINE)
    return found[1] if found else ""


def assert_keys_answered(app) -> None:
    """Press keys that move the cursor, and see it move each time."""
    app.wait(cursor_name)
    for key in ("j", "j", "k", "G", "g"):
        before = cursor_name(app.text())
        app.press(key, wait=lambda text, before=before: cursor_name(text) != before)


def test_keys_are_answered_rows_stay_and_it_comes_back(terminal, plugin):
    environ, switch = plugin
    app = terminal(environ=environ, wait=r"synthetic 300")
    assert_keys_answered(app)
    for fault, words in FAULTS.items():
        switch.write_text(fault)
        app.wait(words)
        app.wait("! stale")
        assert_keys_answered(app)
        assert "synthetic 300" in app.text()
        switch.write_text("")
        app.wait(lambda text: "stale" not in text and "synthetic 300" in text)
        assert_keys_answered(app)
    began = time.monotonic()
    app.press("q")
    assert app.wait_for_end() == 0
    assert time.monotonic() - began < PATIENCE


@pytest.mark.slow
def test_a_filter_may_be_typed_in_one_burst(terminal, plugin):
    """Over SSH several keys come at once: none of them is taken for a command."""
    environ, _ = plugin
    app = terminal(environ=environ, wait=r"synthetic 300")
    app.wait(cursor_name)
    app.process.write(b"/name~^eval !state:failed\r")
    app.wait("60 of 300")
    app.wait(lambda text: "name~^eval !state:failed" in text)
    app.press("l", wait="line 19")
    app.process.write(b"/line 7\r")
    app.wait(r"\d of 2\b")
    # The field is left and has the focus again before either is told of: what is typed next is no part of the first.
    app.process.write(b"/line 18\rn/line 9\r")
    app.wait(r"^ / +line 9 +\d of 2\b")


@pytest.mark.slow
def test_a_backend_that_hangs_delays_no_local_job(terminal, plugin):
    environ, switch = plugin
    switch.write_text("hang")
    app = terminal(environ=environ, wait="No jobs yet|Asking")
    launch(app, "demo.train", {"steps": "12", "step_seconds": "0.1"})
    app.wait(r"Succeeded\s+demo-train")
    app.wait("synthetic –")
    app.press("2", wait="synthetic is not set up here   (no answer|3 earlier requests)")
    switch.write_text("")
    app.wait(r"synthetic 300")
    app.press("0", wait="demo-train")
    app.press("q")
    assert app.wait_for_end() == 0
