"""What leaves the log pane in a real terminal: the plain view in a pager, copies, saved files."""

import base64
import os
import re
import signal
import sys

import pytest
from actions import open_with, wait_top
from support.processes import processes_of_job
from support.terminal import Terminal
from support.waiting import wait_until

PAGER = """#!/bin/sh
cat > "$1/got"
echo "PAGER HAS $(wc -l < "$1/got") LINES, $2"
read answer < /dev/tty
"""


@pytest.fixture
def pager(tmp_path):
    path = tmp_path / "a pager"
    path.write_text(PAGER)
    path.chmod(0o755)
    return f"'{path}' {tmp_path} '; echo no shell'"


def logs_of_a_job(terminal, pager: str, **values: str) -> Terminal:
    app = open_with(terminal, "demo.train", values, environ={"PAGER": pager})
    # A job of few steps may have ended before anybody looks.
    wait_top(app, "Running|Succeeded")
    app.press("l", wait=r"› +Logs")
    app.wait(r"[01][│┆] .*step")
    return app


@pytest.mark.slow
def test_a_pager_has_the_terminal_and_the_app_comes_back(terminal, pager, tmp_path):
    app = logs_of_a_job(terminal, pager, steps="2000", step_seconds="0.3")
    app.press("m", wait=r"PAGER HAS \d+ LINES, ; echo no shell")
    assert re.search(r"^\d\d:\d\d:\d\d [01]\| .*step", (tmp_path / "got").read_text(), re.MULTILINE)
    app.press("enter", wait=r"› +Logs")
    app.wait("Following")
    # ctrl+c is the pager's alone: neither the app nor its job ends.
    app.press("m", wait=r"PAGER HAS")
    app.press("ctrl+c", wait=r"› +Logs")
    before = app.wait(r"Following +(\d+) lines")
    app.wait(lambda text: re.search(r"Following +(\d+) lines", text) and text != before)
    app.press("escape")
    wait_top(app, "Running")
    app.press("q", wait="Quit\\?")
    app.press("y")
    assert app.wait_for_end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_pager_does_not_hold_up_sigterm(terminal, tmp_path, stubborn):
    path = tmp_path / "stays"
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else "import signal; "
    path.write_text(f"#!{sys.executable}\n{program}print('PAGER', 'RUNS', flush=True); signal.pause()\n")
    path.chmod(0o755)
    app = logs_of_a_job(terminal, str(path), steps="3", step_seconds="0.05")
    app.press("m", wait="PAGER RUNS")
    os.kill(app.pid, signal.SIGTERM)
    assert app.wait_for_end() == 0
    wait_until(lambda: not processes_of_job(f"PAGER={path}"), "the end of the pager")


def copied(app: Terminal) -> list[str]:
    return [base64.b64decode(found).decode() for found in re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", app.raw)]


def test_lines_are_copied_and_saved(terminal, tmp_path):
    app = logs_of_a_job(terminal, "/no/such/pager --flag", steps="3", step_seconds="0.05")
    app.wait("Ended")
    app.press("v", "k", "k", wait="Selecting  3 lines")
    app.press("y", wait="Sent 3 lines to the terminal's clipboard")
    [text] = copied(app)
    assert len(text.split("\n")) == 3  # the last one may be empty: the two streams end in any order
    assert all("│" not in line for line in text.splitlines())
    app.press("S", wait=r"demo-train-\w+-merged\.log")
    app.press("enter", wait=r"Saved \d+ lines, .* B, to ")
    [path] = tmp_path.glob("demo-train-*-merged.log")
    assert "step" in path.read_text()
    app.press("m", wait="the pager /no/such/pager cannot be started: No such file or directory")
